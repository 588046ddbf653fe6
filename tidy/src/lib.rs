//! The habits of this repository, as tests: `cargo test -p boltkv-tidy`. What clippy can see is clippy's (`clippy.toml`
//! and the lints in `Cargo.toml`); here is what depends on where a file lies, or on what else there is.
//!
//! # Rooms
//! - `files`: every file of a kind in the repository; `source`: a Rust file without its comments and texts
//! - `modules`: which file leads to which
//! - `tests/tidy/`: a habit a file; a habit that has exceptions lists them with reasons, and a list may only shrink
//!
//! Nothing here may need a crate, a network or another program: it must stay the fastest test of all.

pub mod files;
pub mod modules;
pub mod source;
