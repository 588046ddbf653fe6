//! From a position, which is an epoch and a transaction of it, to the records behind it: what following a database needs.
//!
//! What was committed unsynced and was taken back by a crash leaves its numbers to others. The epoch tells these apart: the
//! transactions of one follow each other, and the next one begins where it was gone on from.

use super::forward::Forward;
use super::judge::Located;
use super::log::{Chain, Log, Segment};
use super::waiting::Waiting;
use crate::base::TxId;
use crate::{Error, Result};

/// A transaction, as it is told from others that have had the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JournalPosition {
    /// Drawn when the database was opened in which it was recorded.
    pub epoch: u64,
    /// Its number.
    pub txid: TxId,
}

impl Log {
    /// The position behind which the journal has everything; `None` where it has nothing.
    pub(crate) fn oldest(self) -> Option<JournalPosition> {
        let chain = Chain::new(self.folder, self.segments);
        chain.path.first().map(|oldest| JournalPosition { epoch: oldest.header.epoch, txid: oldest.header.follows })
    }

    /// What is recorded behind a position; up to where that is damaged, and why.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where that is not kept any more, or the position is not one of this journal; a segment could
    /// not be read.
    pub(crate) fn behind(self, position: JournalPosition) -> Result<(Waiting, Option<Error>)> {
        let Self { folder, segments, headless: free, .. } = self;
        let (highest, store) = segments.last().map_or((0, None), |last| (last.header.number, Some(last.header.store)));
        let Chain { path, .. } = Chain::new(folder.clone(), segments);
        let contains = position.txid;
        let oldest = path.first().map_or(0, |oldest| oldest.header.follows);
        let gap = || Error::JournalGap { folder: folder.clone(), wanted: contains, oldest };
        let first = segment_of(&path, position).ok_or_else(gap)?;
        let located = Located { segment: first, contains, linked: None };
        let (reach, damage) = Forward::new(&path, &folder, &path[first].header.base, located).read_from(first);
        Ok((Waiting { folder, path, free, store, highest, contains, first: 0, reach: Some(reach) }, damage))
    }
}

/// The newest of the segments that follow each other from which on everything behind a position is there; `None` where it is
/// not kept any more, or the position is none of theirs.
pub(super) fn segment_of(path: &[Segment], JournalPosition { epoch, txid }: JournalPosition) -> Option<usize> {
    let from = path.iter().position(|segment| segment.header.epoch == epoch)?;
    let of_epoch = path[from..].iter().take_while(|segment| segment.header.epoch == epoch).count();
    let is_beyond = path.get(from + of_epoch).is_some_and(|next| txid > next.header.follows);
    let has_all = path[from..from + of_epoch].iter().rposition(|segment| segment.header.follows <= txid);
    has_all.filter(|_| !is_beyond).map(|index| from + index)
}
