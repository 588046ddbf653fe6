//! What the commands of the Redis dialect do.
//!
//! A database is a bucket: the first one is `default`, in which lines of text look keys up, too. A key of a value is a
//! string; a bucket within is a hash.
//!
//! - `work`: commands on their way, alone or as a transaction, and what comes of them
//! - `keyspace`: a database as commands see it: what a key holds, and changing it, whatever it holds; `database`: which
//!   bucket that is
//! - `read`, `write`: which command is done where; `strings`, `bits`, `hashes`, `keys`, `databases`: the commands, a file
//!   for each kind
//! - `set`, `numbers`, `ranges`, `lcs`: more of strings; `bitop`, `bitfield`: more of bits
//! - `walk`: those that look at everything, in steps
//! - `watching`: what WATCH is told
//! - `glob`: patterns; `number`: numbers as Redis reads and writes them, `long_double` those with a fraction; `failure`: what
//!   is said where something cannot be done

mod bitfield;
mod bitop;
mod bits;
mod database;
mod databases;
mod failure;
mod glob;
mod hashes;
mod keys;
mod keyspace;
mod lcs;
mod long_double;
mod number;
mod numbers;
mod ranges;
mod read;
mod set;
mod strings;
mod walk;
mod watching;
mod work;
mod write;

pub(crate) use database::Database;
pub(crate) use failure::Failure;
pub(in crate::commands) use read::answer;
pub(crate) use walk::{RespRun, Stepped};
pub(crate) use watching::{WatchedKeys, Watching};
pub(super) use work::apply;
pub(crate) use work::{Call, RespDone, RespWork, What};
