//! Whole databases.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{RespCommand, Writer};

use super::database::Database;
use super::failure::Failure;
use super::keyspace::KeyspaceMut;
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
