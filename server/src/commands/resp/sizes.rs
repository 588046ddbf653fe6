//! How much there is: keys of a database, bytes of a key. Neither is kept anywhere, so both are looked at, and only so far.
//! What has expired does not count.

use boltkv_protocol::resp::Writer;
use boltkv_protocol::{NEVER, Path};
use boltkv_storage::{Error, Tx};

use super::database::Database;
use super::failure::Failure;
use super::keyspace::{Held, Keyspace};
use super::work::Call;
use crate::commands::expiry::{Moment, View};
use crate::commands::number;

/// Keys of each database that are counted for INFO: programs ask for that whenever they connect.
const COUNTED: usize = 1_000;
/// Fields of a hash that are looked at to tell how much room it takes.
const MEASURED: usize = 10_000;

/// How many keys a database has, as far as its first ones tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyCount {
    pub(crate) keys: u64,
    /// Those of them that expire, and for how long they are there yet, in the mean, in milliseconds.
    pub(crate) expires: u64,
    pub(crate) mean_left: u64,
    /// There are more entries, which were not looked at.
    pub(crate) more: bool,
}

/// What there is in the databases in which there is something, of those that `may_see` says.
pub(crate) fn key_counts(tx: &Tx, now: u64, may_see: impl Fn(&Path) -> bool) -> Vec<(Database, KeyCount)> {
    let view = View::new(tx, Moment::at(now));
    let seen = Database::all().filter(|db| may_see(db.path()));
    // One that cannot be read is told by whoever asks for its keys.
    let counted = seen.filter_map(|db| count(&view, db).ok().map(|count| (db, count)));
    counted.filter(|(_, count)| count.keys > 0 || count.more).collect()
}

fn count(view: &View<'_, Tx>, db: Database) -> Result<KeyCount, Error> {
    let (shown, moment) = (view.bucket(db.path())?, view.moment());
    let (mut count, mut left) = (KeyCount::default(), 0_u64);
    for (looked_at, entry) in shown.bucket.iter().enumerate() {
        if looked_at == COUNTED {
            count.more = true;
            break;
        }
        match shown.time_of(entry?.0, moment)? {
            None => {}
            Some(NEVER) => count.keys += 1,
            Some(time) => {
                count.keys += 1;
                count.expires += 1;
                left = left.saturating_add(time.saturating_sub(moment.now()));
            }
        }
    }
    count.mean_left = left.checked_div(count.expires).unwrap_or(0);
    Ok(count)
}

/// Answers MEMORY USAGE: the bytes of the key and of what it holds, without what pages take beside.
pub(super) fn usage(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match args.len() {
        3 => {}
        // How many fields are looked at is decided here.
        5 if args.word(3).eq_ignore_ascii_case(b"SAMPLES") => {
            let samples = number::parse(args.word(4)).ok_or_else(Failure::not_an_integer)?;
            if samples < 0 {
                return Err(Failure::syntax());
            }
        }
        _ => return Err(Failure::syntax()),
    }
    let key = args.word(2);
    match keyspace.find(key)? {
        None => out.null(),
        Some(Held::String(value)) => out.count(key.len() + value.len()),
        Some(Held::Hash(hash)) => {
            let mut bytes = key.len();
            for entry in hash.bucket.iter().take(MEASURED) {
                let (field, value) = entry?;
                if hash.is_past(field, &keyspace.moment)? {
                    continue;
                }
                bytes += field.len() + value.map_or(0, <[u8]>::len);
            }
            out.count(bytes);
        }
    }
    Ok(())
}
