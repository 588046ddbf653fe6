//! The tests of bbolt, done again.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod bucket;
mod cursor;
mod db;
mod document;
mod tx;
