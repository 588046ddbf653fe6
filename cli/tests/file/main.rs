//! The commands on files, called by their own name or as bbolt.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

mod bbolt;
mod bbolt_arguments;
mod bbolt_help;
mod bench;
mod buckets;
mod check;
mod compact;
mod damaged;
mod diff;
mod dump;
mod export;
mod get;
mod import;
mod info;
mod inspect;
mod interrupted;
mod journal;
mod keys;
mod killed;
mod locked;
mod page;
mod page_item;
mod pages;
mod path;
mod peek;
mod repair;
mod stats;
mod tools_doc;
mod tree;
