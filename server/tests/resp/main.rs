//! The dialect of Redis.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod bits;
mod gone;
mod info;
mod keys;
mod multi;
mod numbers_and_ranges;
mod resp;
mod session;
mod steps;
mod strings;
mod transactions;
