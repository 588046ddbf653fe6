//! Where the lines of an export come from and where they go; `boltkv_lines` knows how they look.
//!
//! `input` is where lines are read from, `output` where they go, `place` what an output's name leads to, `partial` what there
//! is of an export that was not finished.

mod input;
mod output;
mod partial;
mod place;

pub(crate) use input::Input;
pub(crate) use output::{Destination, write_failed};
pub(crate) use partial::Partial;
