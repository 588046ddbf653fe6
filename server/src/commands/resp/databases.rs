//! Whole databases.

use boltkv_protocol::resp::{RespCommand, Writer};
use boltkv_protocol::{ErrorCode, Path};
use boltkv_storage::Error;

use super::database::Database;
use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::number;
use super::work::Call;

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.command {
        RespCommand::FlushDb => {
            when(call)?;
            keyspace.clear()?;
        }
        RespCommand::FlushAll => {
            when(call)?;
            for db in Database::all() {
                keyspace.in_database(db, KeyspaceMut::clear)?;
            }
        }
        RespCommand::SwapDb => {
            let (one, other) = (number(call, 1, "first")?, number(call, 2, "second")?);
            let (one, other) = (Database::numbered(one)?, Database::numbered(other)?);
            if one != other {
                keyspace.in_database(one, |keyspace| keyspace.swap(other))?;
            }
        }
        _ => return Err(Failure::unsupported(call.spec.name)),
    }
    out.ok();
    Ok(())
}

/// Both words mean the same here: the keys are gone at once, and their pages are freed bit by bit.
fn when(call: &Call) -> Result<(), Failure> {
    match (call.args.len(), call.args.word(1).to_ascii_lowercase().as_slice()) {
        (1, _) | (2, b"async" | b"sync") => Ok(()),
        _ => Err(Failure::syntax()),
    }
}

fn number(call: &Call, at: usize, which: &str) -> Result<i64, Failure> {
    let number = number::integer(call.args.word(at)).ok().filter(|number| i32::try_from(*number).is_ok());
    number.ok_or_else(|| Failure::new(ErrorCode::Malformed, format!("ERR invalid {which} DB index")))
}

impl KeyspaceMut<'_, '_> {
    /// Has another database take this one's place, and this one that one's.
    fn swap(&mut self, other: Database) -> Result<(), Failure> {
        self.tell_of_swap(other)?;
        let aside = self.free_name()?;
        for (from, to) in [(self.db.path(), &aside), (other.path(), self.db.path()), (&aside, other.path())] {
            let name = |path: &Path| path.names().next().unwrap_or_default().to_vec();
            match self.timed.tx.move_bucket_as::<&[u8]>(name(from), &[], &[], name(to)) {
                Ok(()) => self.timed.move_bucket(from, to)?,
                Err(Error::BucketNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.changed = true;
        Ok(())
    }

    /// A key changes where it is in one of both databases; where it is in neither, it still is.
    fn tell_of_swap(&mut self, other: Database) -> Result<(), Failure> {
        let view = self.timed.view();
        let both = [Keyspace::of(&view, self.db)?, Keyspace::of(&view, other)?];
        for db in [self.db, other] {
            self.watched.touch_if(db.path(), |key| Ok(both[0].exists(key)? || both[1].exists(key)?))?;
        }
        Ok(())
    }

    /// A name at the top that nothing has.
    fn free_name(&self) -> Result<Path, Failure> {
        let mut number = 0_u64;
        loop {
            let name = format!("boltkv.swap.{number}");
            match self.timed.tx.bucket(&name) {
                // So short a name always makes a path.
                Err(Error::BucketNotFound { .. }) => return Ok(Path::from_names([name]).unwrap_or_default()),
                Err(Error::IncompatibleValue { .. }) | Ok(_) => number += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
