//! `boltkv file surgery revert-meta-page`: back by one transaction.

use boltkv_storage::tools::Surgery;
use clap::Args;
use serde::Serialize;

use super::OnCopy;
use crate::failure::Outcome;

/// Go back by one transaction: replace the newer meta page by the older one
///
/// A crash mostly spoils the pages of the last transaction; the state before it is whole then. A meta page that is damaged
/// is replaced by the one that is not.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery revert-meta-page broken.db --output reverted.db &&
      boltkv file check reverted.db")]
pub(crate) struct RevertMetaPage {
    #[command(flatten)]
    on_copy: OnCopy,
}

#[derive(Serialize)]
struct Done {
    meta_page: u64,
    txid: u64,
    /// The transaction that was taken back; null where the meta page was damaged.
    lost: Option<u64>,
}

impl RevertMetaPage {
    pub(crate) fn run(&self) -> Outcome {
        let reverted = self.on_copy.make(Surgery::revert_meta_page)?;
        let done = Done { meta_page: reverted.page, txid: reverted.txid, lost: reverted.lost };
        let lost = match reverted.lost {
            Some(lost) if lost == reverted.txid => "both meta pages were of it already".to_owned(),
            Some(lost) => format!("transaction {lost} is taken back"),
            None => format!("meta page {} was damaged", reverted.page),
        };
        self.on_copy.say(&done, &[format!("as transaction {} left it; {lost}", reverted.txid)])
    }
}
