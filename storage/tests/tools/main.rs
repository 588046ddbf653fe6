//! What works on whole files, sound and damaged ones.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod backup;
mod check;
mod check_threads;
mod compact;
mod damage;
mod inspect;
mod raw;
mod repair;
mod repair_odd;
mod restore;
mod shrink;
mod surgery;
