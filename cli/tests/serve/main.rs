//! `boltkv serve`: what it is told, and what it meets.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

mod clock;
mod config;
mod failed_disk;
mod full_disk;
mod journal_full_start;
mod journal_lost;
mod journal_meta;
mod journal_permission;
mod journal_places;
mod kubernetes;
mod max_size;
mod operator;
mod reload;
mod serve;
mod serve_journal;
mod shortage;
mod systemd;
