//! Where the lines of an export come from and where they go; `boltkv_lines` knows how they look.
//!
//! `input` is where lines are read from, `output` where they go, `partial` what there is of an export that was not finished.

mod input;
mod output;
mod partial;

pub(crate) use input::Input;
pub(crate) use output::{Destination, write_failed};
pub(crate) use partial::Partial;
