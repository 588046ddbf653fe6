//! The commands that a server is asked with.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

mod admin;
mod backup;
mod bucket;
mod delete;
mod expire;
mod get;
mod help;
mod import_export;
mod import_times;
mod incr;
mod ping;
mod restore;
mod resume;
mod scan;
mod set;
mod shrink;
mod stats;
mod tls;
mod tls_again;
mod token;
mod txn;
mod unix_socket;
mod unreachable;
mod watch;
