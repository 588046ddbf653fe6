//! What people hold: databases, transactions, buckets, cursors.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod alike;
mod batch;
mod bulk;
mod deep;
mod detached;
mod drivers;
mod errors;
mod fill;
mod floors;
mod handles;
mod in_memory;
mod max_size;
mod move_bucket;
mod options;
mod overwrites;
mod savepoints;
mod simulation;
mod snapshots;
mod threads;
