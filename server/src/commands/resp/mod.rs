//! What the commands of the Redis dialect do.
//!
//! A database is a bucket: the first one is `default`, in which lines of text look keys up, too. A key of a value is a
//! string; a bucket within is a hash.
//!
//! - `work`: commands on their way, alone or as a transaction, and what comes of them
//! - `keyspace`: a database as commands see it: what a key holds, and changing it, whatever it holds; `hash_mut`: a hash
//!   that is changed; `database`: which
//!   bucket that is
//! - `read`, `write`: which command is done where; `strings`, `bits`, `hashes`, `keys`, `databases`: the commands, a file
//!   for each kind
//! - `set`, `numbers`, `ranges`, `lcs`: more of strings; `bitop`, `bitfield`: more of bits
//! - `times`: when keys are gone; `places`: keys that get another one; `scan`, `scans`: some keys at a time, and where it
//!   goes on; `draws`: some at random; `dump`, `rdb`: what a key holds in Redis' own form
//! - `run`: what is answered in steps: `walk`: those that look at everything, `exec`: transactions that change nothing
//! - `sizes`: how many keys the databases have, and how much room one takes
//! - `watching`: what WATCH is told
//! - `glob`: patterns; `number`: numbers as Redis reads and writes them, `long_double` those with a fraction; `failure`: what
//!   is said where something cannot be done

mod bitfield;
mod bitop;
mod bits;
mod database;
mod databases;
mod draws;
mod dump;
mod exec;
mod failure;
mod glob;
mod hash_mut;
mod hashes;
mod keys;
mod keyspace;
mod lcs;
mod long_double;
mod number;
mod numbers;
mod places;
mod ranges;
mod rdb;
mod read;
mod run;
mod scan;
mod scans;
mod set;
mod sizes;
mod strings;
mod times;
mod walk;
mod watching;
mod work;
mod write;

pub(crate) use database::Database;
pub(crate) use failure::Failure;
pub(in crate::commands) use read::answer;
pub(crate) use run::{RespRun, Stepped};
pub(crate) use scans::Owner;
pub(in crate::commands) use scans::Scans;
pub(crate) use sizes::{KeyCount, key_counts};
pub(in crate::commands) use walk::answer_short;
pub(crate) use watching::{WatchedKeys, Watching};
pub(super) use work::apply;
pub(crate) use work::{Call, Gaps, RespDone, RespWork, Transaction, What, too_large};
pub(crate) use write::write_time;

/// Those of some names that one of the patterns means, whatever their letter case.
///
/// # Errors
/// The patterns are too long to be compared with all of them.
pub(crate) fn named_so<'p, T>(
    all: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> &str,
    patterns: impl Iterator<Item = &'p [u8]> + Clone,
) -> Result<Vec<T>, Failure> {
    glob::check_all(patterns.clone())?;
    let patterns: Vec<_> = patterns.map(<[u8]>::to_ascii_lowercase).collect();
    let is_meant = |one: &T| {
        let name = name(one).to_ascii_lowercase();
        patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()))
    };
    Ok(all.into_iter().filter(is_meant).collect())
}
