//! `boltkv file surgery clear-page`: all elements out of a page.

use boltkv_storage::tools::Cleared;
use clap::Args;
use serde::Serialize;

use super::{OnCopy, freelist_in_doubt};
use crate::failure::Outcome;

/// Take all elements out of a leaf or branch page
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery clear-page broken.db --output mended.db --pageId 5")]
pub(crate) struct ClearPage {
    #[command(flatten)]
    on_copy: OnCopy,
    /// The page to be cleared
    #[arg(long = "pageId", alias = "page-id", value_name = "PAGE", value_parser = clap::value_parser!(u64).range(2..))]
    page: u64,
}

#[derive(Serialize)]
struct Done {
    page: u64,
    cleared: u16,
    left: u16,
    freelist_in_doubt: bool,
}

impl ClearPage {
    pub(crate) fn run(&self) -> Outcome {
        self.on_copy.must_have(&[self.page])?;
        let cleared = self.on_copy.make(|surgery| surgery.clear_page(self.page))?;
        say(&self.on_copy, self.page, cleared)
    }
}

/// Says what was cleared.
pub(super) fn say(on_copy: &OnCopy, page: u64, cleared: Cleared) -> Outcome {
    let Cleared { elements, left, is_branch, freelist_in_doubt: in_doubt, .. } = cleared;
    let done = Done { page, cleared: elements, left, freelist_in_doubt: in_doubt };
    let noun = if elements == 1 { "element" } else { "elements" };
    let mut lines = vec![format!("page {page}: {elements} {noun} cleared, {left} left")];
    if is_branch && left == 0 {
        lines.push("a branch without elements cannot be read: clear the element that leads to it, too".into());
    }
    lines.extend(freelist_in_doubt(in_doubt));
    on_copy.say(&done, &lines)
}
