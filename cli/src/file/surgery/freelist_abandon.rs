//! `boltkv file surgery freelist abandon`: metas that refer to no freelist.

use boltkv_storage::tools::Surgery;
use clap::Args;
use serde::Serialize;

use super::OnCopy;
use crate::failure::Outcome;

/// Give up the stored freelist: whoever opens the file next finds the free pages by reading all others
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery freelist abandon broken.db --output abandoned.db")]
pub(crate) struct Abandon {
    #[command(flatten)]
    on_copy: OnCopy,
}

#[derive(Serialize)]
struct Done {
    /// The meta pages that were changed; one that is damaged is none of them.
    meta_pages: Vec<u64>,
}

impl Abandon {
    pub(crate) fn run(&self) -> Outcome {
        let metas = self.on_copy.make(Surgery::abandon_freelist)?.metas;
        let mut lines =
            vec!["the freelist is abandoned; the next start reads all pages to find the free ones".to_owned()];
        let damaged = metas.iter().zip(0..).filter(|&(&changed, _)| !changed);
        lines.extend(damaged.map(|(_, page): (_, u64)| format!("meta page {page} is damaged, and left as it is")));
        let meta_pages = metas.iter().zip(0..).filter_map(|(&changed, page)| changed.then_some(page)).collect();
        self.on_copy.say(&Done { meta_pages }, &lines)
    }
}
