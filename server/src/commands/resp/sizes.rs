//! How much there is: keys of a database, bytes of a key. Neither is kept anywhere, so both are looked at, and only so far.

use boltkv_protocol::Path;
use boltkv_protocol::resp::Writer;
use boltkv_storage::Tx;

use super::database::Database;
use super::failure::Failure;
use super::keyspace::{Held, Keyspace};
use super::work::Call;
use crate::commands::number;
use crate::commands::state::State as _;

/// Keys of each database that are counted for INFO: programs ask for that whenever they connect.
const COUNTED: usize = 1_000;
/// Fields of a hash that are looked at to tell how much room it takes.
const MEASURED: usize = 10_000;

/// How many keys the databases have in which there are some, of those that `may_see` says; and whether there are more.
pub(crate) fn key_counts(tx: &Tx, may_see: impl Fn(&Path) -> bool) -> Vec<(Database, usize, bool)> {
    let count = |db: Database| {
        let bucket = tx.bucket_at(db.path()).ok()?;
        let keys = bucket.iter().take(COUNTED + 1).take_while(Result::is_ok).count();
        (keys > 0).then_some((db, keys.min(COUNTED), keys > COUNTED))
    };
    Database::all().filter(|db| may_see(db.path())).filter_map(count).collect()
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
                bytes += field.len() + value.map_or(0, <[u8]>::len);
            }
            out.count(bytes);
        }
    }
    Ok(())
}
