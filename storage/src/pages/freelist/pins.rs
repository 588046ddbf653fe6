//! Who can still reach a page that was freed.

use super::Run;
use crate::format::TxId;

/// A run that waits: freed by `freed_by`, allocated by `allocated_by` (0: not known).
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) run: Run,
    pub(super) allocated_by: TxId,
    pub(super) freed_by: TxId,
    /// The keeper that has a copy instead; 0: none.
    pub(super) copied_for: TxId,
}

impl Waiting {
    /// Somebody who can still reach the run: the newest of the readers, or a keeper.
    pub(super) fn pinned_by(&self, pins: &Pins) -> Option<Pin> {
        let Pins { readers, keepers } = pins;
        let older = readers.partition_point(|&reader| reader < self.freed_by);
        let newest = readers[..older].last().copied().filter(|&reader| reader >= self.allocated_by);
        newest.map(Pin::Reader).or_else(|| {
            let reaches = |keeper: TxId| (self.allocated_by..self.freed_by).contains(&keeper);
            let keeper = keepers.iter().flatten().copied().find(|&keeper| reaches(keeper) && keeper != self.copied_for);
            keeper.map(Pin::Keeper)
        })
    }
}

/// Whose pages stay as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins {
    /// Ascending, without repetition.
    pub(crate) readers: Vec<TxId>,
    /// States of the file.
    pub(crate) keepers: [Option<TxId>; 2],
}

/// Somebody who can reach pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pin {
    Reader(TxId),
    Keeper(TxId),
}

impl Pins {
    pub(super) fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.keepers == [None; 2]
    }

    pub(super) fn has(&self, pin: Pin) -> bool {
        match pin {
            Pin::Reader(reader) => self.readers.binary_search(&reader).is_ok(),
            Pin::Keeper(keeper) => self.keepers.contains(&Some(keeper)),
        }
    }
}
