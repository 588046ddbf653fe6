//! `boltkv file surgery clear-page-elements`: some elements out of a page.

use clap::Args;

use super::OnCopy;
use super::clear_page::say;
use crate::failure::{Failure, Outcome};

/// Take some of its elements out of a leaf or branch page
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file surgery clear-page-elements broken.db --output mended.db --pageId 5 \\
      --from-index 3 --to-index 4
  boltkv file surgery clear-page-elements broken.db --output mended.db --pageId 5 \\
      --from-index 3 --to-index -1")]
pub(crate) struct ClearPageElements {
    #[command(flatten)]
    on_copy: OnCopy,
    /// The page that they are taken out of
    #[arg(long = "pageId", alias = "page-id", value_name = "PAGE", value_parser = clap::value_parser!(u64).range(2..))]
    page: u64,
    /// The first element to be cleared, counted from 0
    #[arg(long, value_name = "INDEX")]
    from_index: usize,
    /// The element behind the last one to be cleared; -1: all up to the last
    #[arg(long, value_name = "INDEX", allow_negative_numbers = true)]
    to_index: i64,
}

impl ClearPageElements {
    pub(crate) fn run(&self) -> Outcome {
        let to = match self.to_index {
            -1 => None,
            index => Some(usize::try_from(index).map_err(|_| Failure::usage("--to-index is -1, or from 0 on"))?),
        };
        self.on_copy.must_have(&[self.page])?;
        let cleared = self.on_copy.make(|surgery| surgery.clear_page_elements(self.page, self.from_index, to))?;
        say(&self.on_copy, self.page, cleared)
    }
}
