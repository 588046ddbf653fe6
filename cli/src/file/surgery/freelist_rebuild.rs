//! `boltkv file surgery freelist rebuild`: a freelist where there was none.

use boltkv_storage::tools::Surgery;
use clap::Args;
use serde::Serialize;

use super::OnCopy;
use crate::failure::Outcome;

/// Find the free pages of a file that stores no freelist, and store it
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery freelist rebuild abandoned.db --output rebuilt.db")]
pub(crate) struct Rebuild {
    #[command(flatten)]
    on_copy: OnCopy,
}

#[derive(Serialize)]
struct Done {
    free_pages: u64,
}

impl Rebuild {
    pub(crate) fn run(&self) -> Outcome {
        let free_pages = self.on_copy.make(Surgery::rebuild_freelist)?.free_pages;
        self.on_copy.say(&Done { free_pages }, &[format!("the freelist is rebuilt, with {free_pages} pages")])
    }
}
