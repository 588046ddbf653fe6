//! `boltkv file surgery`, beside what bbolt makes of the same file.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
#[macro_use]
mod common;

mod clear_page;
mod clear_page_elements;
mod copy_page;
mod freelist_abandon;
mod freelist_rebuild;
mod meta_update;
mod meta_validate;
mod revert_meta_page;
