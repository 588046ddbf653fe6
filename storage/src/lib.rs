//! An embedded key-value store in one file: a B+tree with snapshots, one writer and any number of
//! readers. The file is exactly that of Go's [bbolt](https://github.com/etcd-io/bbolt): each opens,
//! checks and writes what the other wrote.
//!
//! ```
//! # fn main() -> boltkv_storage::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("app.db");
//! use boltkv_storage::Db;
//!
//! let db = Db::open(&path)?;
//!
//! // One write transaction at a time; it is durable when `update` returns.
//! db.update(|tx| {
//!     let mut planets = tx.create_bucket("planets")?;
//!     planets.put("earth", "third")?;
//!     planets.put("mars", "fourth")
//! })?;
//!
//! // Readers see one state, whatever is written meanwhile, and nobody waits for anybody.
//! let before = db.begin()?;
//! db.update(|tx| tx.bucket_mut("planets")?.delete("mars"))?;
//! assert_eq!(before.bucket("planets")?.get("mars")?, Some(&b"fourth"[..]));
//! assert_eq!(db.begin()?.bucket("planets")?.get("mars")?, None);
//! # Ok(()) }
//! ```
//!
//! [`guide`] has more small programs to begin with.
//!
//! # Rooms
//! From the bottom up; each uses only those below it:
//! - `base`: errors, numbers; `format`: the file's layout, as views over bytes that check every bound
//! - `disk`: what touches the operating system, and the map: the crate's only unsafe code
//! - `journal`: what was committed and is not in the file yet
//! - `pages`: those of a snapshot, the free ones, and which of them are taken next
//! - `tree`: nodes, how they are found, visited, changed, split and merged
//! - `check`: looking for damage, on several threads
//! - `store`: the open file: its newest state and its readers, its one writer, commit, options
//! - `handles`: what people hold: `Db`, `Tx`, `Bucket`, `Cursor`, `Range`
//! - [`tools`], apart: what works on whole files: backup, compaction, repair, surgery, shrinking, inspection
//!
//! # What is promised
//! - A commit that returned is in the file, or in its journal where one is kept, after a crash or power cut too (as far
//!   as the disk keeps its word about `fdatasync`). One that did not return is there wholly or not at all.
//! - No file, however damaged, makes the crate panic, run for ever or read outside of the file.
//! - An operation that returns an error has changed nothing.
//!
//! # What does not compile
//! Where bbolt's documentation warns, the borrow checker refuses. A value does not outlive its
//! transaction:
//!
//! ```compile_fail,E0505
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let tx = db.begin()?;
//! let value = tx.bucket("planets")?.get("earth")?;
//! drop(tx);
//! println!("{value:?}"); // borrowed from the transaction that is gone
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! A bucket is not written while something that was read from it is in use:
//!
//! ```compile_fail,E0502
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let mut tx = db.begin_mut()?;
//! let mut planets = tx.create_bucket("planets")?;
//! let value = planets.get("earth")?;
//! planets.put("mars", "fourth")?; // `value` is still borrowed
//! println!("{value:?}");
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! A read transaction neither writes nor commits:
//!
//! ```compile_fail,E0599
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let tx = db.begin()?;
//! tx.commit()?; // only a `TxMut` has it
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! A transaction that was committed is gone:
//!
//! ```compile_fail,E0382
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let mut tx = db.begin_mut()?;
//! tx.create_bucket("planets")?;
//! tx.commit()?;
//! tx.create_bucket("moons")?; // `commit` has consumed it
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! And so is every bucket of it; none can be in use when it is committed:
//!
//! ```compile_fail,E0505
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let mut tx = db.begin_mut()?;
//! let mut planets = tx.create_bucket("planets")?;
//! tx.commit()?; // `planets` borrows from it
//! planets.put("earth", "third")?;
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! What `update` and `view` only lend is not ended by hand:
//!
//! ```compile_fail,E0507
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! db.update(|tx| tx.commit().map(|_| ()))?; // `update` commits it
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
//!
//! Two buckets are not open for writing at once ([handles](BucketHandle) take turns):
//!
//! ```compile_fail,E0499
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! let mut tx = db.begin_mut()?;
//! let mut planets = tx.create_bucket("planets")?;
//! let mut moons = tx.create_bucket("moons")?; // `planets` is still in use
//! planets.put("earth", "third")?;
//! moons.put("luna", "first")?;
//! # Ok::<_, boltkv_storage::Error>(())
//! ```
#![expect(clippy::cast_possible_truncation, reason = "only u64 to usize, which are the same: see below")]

// Offsets in a file are `u64`, in a map `usize`; a 32-bit process could not map a file of any size.
const _: () = assert!(usize::BITS == 64, "boltkv needs a 64-bit platform");

// What the crash simulation shares with the integration tests names the crate.
#[cfg(test)]
extern crate self as boltkv_storage;

// Its programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/engine.md")]
struct Page;

mod base;
mod check;
#[cfg(test)]
mod crash;
mod disk;
mod format;
pub mod guide;
mod handles;
mod journal;
mod pages;
mod store;
pub mod tools;
mod tree;

pub use base::{BucketPath, Error, Pgid, Result, TxId};
pub use check::{CheckOptions, Problem};
pub use disk::{Advice, remove_unfinished_files};
pub use format::{MAX_KEY_SIZE, MAX_VALUE_SIZE};
#[cfg(fuzzing)]
pub use handles::SegmentBytes;
pub use handles::{
    Bucket, BucketHandle, BucketMut, Buckets, Cursor, CursorMut, Db, Deleted, Entry, KeyRange, Range, Tx, TxMut, Walk,
};
pub use journal::{JournalKeep, JournalPosition};
pub use store::{
    CommitStats, DamagedMeta, Displaced, Durability, FreelistStored, JournalFigures, JournalOptions, Options, Stats,
};
pub use tools::bucket_stats::BucketStats;
pub use tools::inspect::{BucketStructure, PageInfo, PageInfos, PageType, Structure};
pub use tools::journal::{
    Committed, CommittedChanges, CommittedTransaction, Follower, FollowerStop, JournalChange, JournalEffect,
};
pub use tools::shrink::{Shrinking, Shrunk};
pub use tree::{Fill, Savepoint};
