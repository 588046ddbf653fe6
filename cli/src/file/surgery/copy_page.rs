//! `boltkv file surgery copy-page`: one page over another.

use clap::Args;
use serde::Serialize;

use super::{OnCopy, freelist_in_doubt};
use crate::failure::{Failure, Outcome};

/// Write a page, with all that it runs on over, over another one
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery copy-page broken.db --output mended.db --from-page 8 --to-page 5")]
pub(crate) struct CopyPage {
    #[command(flatten)]
    on_copy: OnCopy,
    /// The page to be copied
    #[arg(long, value_name = "PAGE")]
    from_page: u64,
    /// The page that is written over
    #[arg(long, value_name = "PAGE")]
    to_page: u64,
}

#[derive(Serialize)]
struct Done {
    from_page: u64,
    to_page: u64,
    pages: u64,
    freelist_in_doubt: bool,
}

impl CopyPage {
    pub(crate) fn run(&self) -> Outcome {
        let (from_page, to_page) = (self.from_page, self.to_page);
        if from_page == to_page {
            return Err(Failure::usage(format!("--from-page and --to-page are the same: {from_page}")));
        }
        self.on_copy.must_have(&[from_page, to_page])?;
        let copied = self.on_copy.make(|surgery| surgery.copy_page(from_page, to_page))?;
        let (pages, in_doubt) = (copied.pages, copied.freelist_in_doubt);
        let more = if pages == 1 { String::new() } else { format!(", with the {} that it runs on over", pages - 1) };
        let mut lines = vec![format!("page {from_page} is copied to page {to_page}{more}")];
        lines.extend(freelist_in_doubt(in_doubt));
        self.on_copy.say(&Done { from_page, to_page, pages, freelist_in_doubt: in_doubt }, &lines)
    }
}
