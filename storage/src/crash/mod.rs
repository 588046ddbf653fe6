//! Crashes and faults: whatever the disk loses at whatever moment, what is opened again is the last
//! state that was promised to be durable, or one that came after it; never less, never half of one.
//!
//! - `power`: random work, a power cut at every moment of it
//! - `beside`: the same while checkpoints are made beside transactions, whose leaves are in memory
//! - `checkpoints`: what becomes of that where a checkpoint leaves out a step
//! - `creation`: the same while a file is created
//! - `fault`: every single call to the disk fails once
//! - `full`: a process is killed whose disk is full, and what it left is opened with no more room
//! - `limit`: a process whose file may not grow past some length ends cleanly all the same
//! - `lost`: the journal is removed while it is used, and has no room left for anything
//! - `effects`: what was recorded of random work is made again
//! - `journal`: a journal by itself, beside a file that has nothing but metas
//!
//! `setup` says how a database is opened; `workload` makes the work of `edits`, which `watcher` follows; `model` is what it
//! should lead to, `losses` chooses what a crash takes, `explore` looks at the rest; `platters` are a whole folder of files.
//! The disk is `disk::sim`, and `ground` what lies on it: the file, and its journal.

mod beside;
mod checkpoints;
mod creation;
#[path = "../../tests/common/cursor_steps.rs"]
#[allow(unreachable_pub, reason = "shared with the integration tests")]
mod cursor_steps;
#[path = "../../tests/common/edit.rs"]
#[allow(unreachable_pub, clippy::expect_used, reason = "shared with the integration tests")]
mod edit;
mod edits;
mod effects;
mod explore;
mod fault;
#[path = "../../tests/common/followed.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    unreachable_patterns,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared with the integration tests, to which the crate is another one"
)]
mod followed;
mod full;
mod ground;
mod journal;
mod limit;
mod losses;
mod lost;
#[path = "../../tests/common/model.rs"]
#[allow(dead_code, unreachable_pub, clippy::expect_used, clippy::panic, reason = "shared with the integration tests")]
mod model;
mod platters;
mod power;
#[path = "../../tests/common/random.rs"]
#[allow(unreachable_pub, clippy::unwrap_used, reason = "shared with the integration tests")]
mod random;
mod setup;
mod watcher;
mod workload;
