//! What requests do, a file for each kind:
//!
//! - `read`: what is answered at once, from a snapshot
//! - `scan`: what is answered in steps, from a snapshot that it keeps
//! - `write`: what a request changes; the writer's group calls it within its transaction
//! - `refusal`: what the engine's errors are called on the wire
//!
//! Each handles every request of its kind, or does not compile. Nothing here knows who asks, and nothing here waits.

mod read;
mod refusal;
mod scan;
mod write;

pub(crate) use read::{Reader, Snapshot, fault_in};
pub(crate) use refusal::refusal;
pub(crate) use scan::{Progress, ScanRun, Source};
pub(crate) use write::{Effect, Write, apply};
