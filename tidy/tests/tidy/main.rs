//! The habits: a test that fails here says which habit, where, and what to do instead.
#![allow(clippy::panic, reason = "test code: a panic is how it reports")]

mod calls;
mod files;
mod promises;
mod prose;

/// Fails with all that was found, if anything was.
fn nothing(found: &[String], habit: &str) {
    assert!(found.is_empty(), "{habit}:\n{}", found.join("\n"));
}
