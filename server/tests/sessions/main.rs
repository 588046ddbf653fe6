//! What a connection is answered, and when, in the binary and the text dialect.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod any_file;
mod backup;
mod binary;
mod bucket_stat;
mod closing;
mod credit;
mod crowding;
mod dialects;
mod document;
mod expiry;
mod figures_document;
mod garbage;
mod limits;
mod max_size;
mod moves;
mod multi;
mod netcat;
mod operator;
mod patience;
mod pipelining;
mod shrink;
mod snapshots;
mod text;
mod tls;
mod txn;
mod txn_beside;
mod watch;
