//! What a journal keeps, and what durability promises.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod checkpoint_soon;
mod committed;
mod doubt;
mod durability;
mod errors;
mod figures;
mod folder;
mod following;
mod journal;
mod metas;
mod missing;
mod older;
mod padded;
mod twins;
