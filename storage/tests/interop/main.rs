//! Files that bbolt has written, and what it reads of ours.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod bytes;
mod check;
mod read;
mod turns;
mod write;
