//! What requests do, a file for each kind:
//!
//! - `read`: what is answered at once, from a snapshot
//! - `run`: what is answered in steps, from a snapshot that it keeps; `scan`: a scan; `backup`: the whole file
//! - `watch`: what is committed, as it comes
//! - `shrink`: the file made smaller; `bucket_stat`: a bucket counted
//! - `places`: how many backups, watches and so on there may be at a time, and how the threads that do them are started;
//!   `stop`: how some of these hear that nobody waits for them
//! - `write`: what a request changes; the writer's group calls it within its transaction. `values`: single keys; `buckets`:
//!   whole buckets
//! - `expiry`: when keys expire: what is shown of them, and what becomes of them
//! - `delete_range`: many values at once; `number`: what INCREMENT takes for a number
//! - `resp`: what the commands of the Redis dialect do
//! - `txn`: several requests as one; `results`: what came of them, and the memory that takes
//! - `snapshots`: those that clients hold open
//! - `state`: what all of them look at: a snapshot, or the writer's transaction
//! - `refusal`: what the engine's errors are called on the wire
//!
//! Each handles every request of its kind, or does not compile. Nothing here knows who asks, and nothing here waits.

mod backup;
mod bucket_stat;
mod buckets;
mod delete_range;
mod expiry;
mod number;
mod places;
mod read;
mod refusal;
mod resp;
mod results;
mod run;
mod scan;
mod shrink;
mod snapshots;
mod state;
mod stop;
mod txn;
mod values;
mod watch;
mod watched;
mod write;

pub(crate) use backup::{BackupRun, Backups};
pub(crate) use bucket_stat::BucketStats;
pub(crate) use expiry::{Backlog, Expiration, Timed, check_own, earliest};
pub use expiry::{Clock, KeptTime};
pub(crate) use number::parse as parse_number;
pub(crate) use read::{ColdReads, Reader, Snapshot, answer_at, fault_in, is_resident_at};
pub(crate) use refusal::refusal;
pub(crate) use resp::{
    Call, Database, Failure, Gaps, KeyCount, Owner, RespRun, RespWork, Stepped, Transaction, WatchedKeys, Watching,
    What, key_counts, named_so, too_large, write_time,
};
pub(crate) use results::{Outcome, ReplyRoom};
pub(crate) use run::{Run, Turns};
pub(crate) use scan::{Progress, ScanRun, Source};
pub(crate) use shrink::Shrinks;
pub(crate) use snapshots::{NamedSnapshot, Snapshots};
pub(crate) use watch::{WatchRun, Watches};
pub(crate) use write::{Asker, Effect, Write, apply, prefetch};
