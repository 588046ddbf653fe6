//! How much there is: keys of a database, bytes of a key. Neither is kept anywhere, so both are looked at, and only so far;
//! the keys of a large database are estimated.
//! What has expired does not count.

use boltkv_protocol::resp::Writer;
use boltkv_protocol::{NEVER, Path};
use boltkv_storage::{Error, Tx};

use super::database::Database;
use super::failure::Failure;
use super::keyspace::{Held, Keyspace};
use super::work::Call;
use crate::commands::expiry::{Moment, Shown, View};
use crate::commands::number;

/// A database of so many entries is counted for INFO to its end, more are estimated: programs ask for that every few seconds.
const COUNTED: usize = 1_000;
/// Entries from which more are estimated.
const DRAWN: u64 = 256;
/// Fields of a hash that are looked at to tell how much room it takes.
const MEASURED: usize = 10_000;

/// How many keys a database has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeyCount {
    pub(crate) keys: u64,
    /// Those of them that expire, and for how long they are there yet, in the mean, in milliseconds.
    pub(crate) expires: u64,
    pub(crate) mean_left: u64,
    /// They are so many that not all were looked at.
    pub(crate) is_estimate: bool,
}

/// Keys that were looked at, each for as many as it stands for.
#[derive(Debug, Default)]
struct Sum {
    keys: u128,
    expires: u128,
    left: u128,
}

impl Sum {
    /// Adds one that is gone at `time`, or is gone already (`None`).
    fn add(&mut self, time: Option<u64>, stands_for: u128, now: u64) {
        let Some(time) = time else { return };
        self.keys = self.keys.saturating_add(stands_for);
        if time != NEVER {
            self.expires = self.expires.saturating_add(stands_for);
            self.left = self.left.saturating_add(stands_for.saturating_mul(time.saturating_sub(now).into()));
        }
    }

    /// What it tells where it was taken so many times.
    fn count(&self, times: u64, is_estimate: bool) -> KeyCount {
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        let mean = |sum: u128| narrow(sum.saturating_add((times / 2).into()) / u128::from(times.max(1)));
        let mean_left = self.left.checked_div(self.expires).map_or(0, narrow);
        KeyCount { keys: mean(self.keys), expires: mean(self.expires), mean_left, is_estimate }
    }
}

/// What there is in the databases in which there is something, of those that `may_see` says.
pub(crate) fn key_counts(tx: &Tx, now: u64, may_see: impl Fn(&Path) -> bool) -> Vec<(Database, KeyCount)> {
    let view = View::new(tx, Moment::at(now));
    let seen = Database::all().filter(|db| may_see(db.path()));
    // One that cannot be read is told by whoever asks for its keys.
    let counted = seen.filter_map(|db| count(&view, db).ok().map(|count| (db, count)));
    counted.filter(|(_, count)| count.keys > 0 || count.is_estimate).collect()
}

fn count(view: &View<'_, Tx>, db: Database) -> Result<KeyCount, Error> {
    let (shown, moment) = (view.bucket(db.path())?, view.moment());
    let mut sum = Sum::default();
    for (looked_at, entry) in shown.bucket.iter().enumerate() {
        if looked_at == COUNTED {
            return estimate(&shown, moment);
        }
        sum.add(shown.time_of(entry?.0, moment)?, 1, moment.now());
    }
    Ok(sum.count(1, false))
}

/// What some entries tell that lie evenly across the tree. Each stands for as many as there would be if all pages were like
/// those on the way to it; so the mean is right whatever they are like, and near where they are alike.
///
/// They are the same every time, as long as the tree is: the figure does not jump while nothing changes, and whoever asks
/// every few seconds has no other pages fetched from the disk.
fn estimate(shown: &Shown<'_>, moment: &Moment<'_>) -> Result<KeyCount, Error> {
    let mut sum = Sum::default();
    for number in 0..DRAWN {
        // How far it is from the beginning, in parts of 2^64.
        let mut place = (2 * number + 1) * (u64::MAX / (2 * DRAWN));
        let mut stands_for = 1_u128;
        let drawn = shown.bucket.cursor().draw(|ways| {
            stands_for = stands_for.saturating_mul(ways as u128);
            let way = (u128::from(place) * ways as u128) >> 64;
            // What is left of it lies within that way.
            place = place.wrapping_mul(ways as u64);
            usize::try_from(way).unwrap_or(ways)
        })?;
        if let Some((key, _)) = drawn {
            sum.add(shown.time_of(key, moment)?, stands_for, moment.now());
        }
    }
    Ok(sum.count(DRAWN, true))
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
