//! When the oldest slabs are to be given back: as late as what comes meanwhile allows.

use super::Filling;
use crate::format::PatchHeader;

/// Slabs at the row's begin that are given back together: more of their leaves have the same branches above them.
pub(crate) const SLABS_TOGETHER: usize = 2;

/// What is known of how fast patches come.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// It was told that the oldest slabs are to be given back, and nobody has begun with it.
    is_told: bool,
    /// Bytes that were added, over all.
    pub(super) added: u64,
    /// How many there were when slabs were begun to be given back, while that is being done.
    begun_at: Option<u64>,
    /// How many came while slabs were given back: of the last times mostly that where it was most. Nothing is known at first.
    meanwhile: Option<u64>,
}

impl Due {
    /// The oldest slabs are about to be given back, or no more are; those before were.
    fn note_meanwhile(&mut self, goes_on: bool) {
        if let Some(begun_at) = self.begun_at.take() {
            self.meanwhile = Some((self.added - begun_at).max(self.meanwhile.unwrap_or(0) / 4 * 3));
        }
        self.begun_at = goes_on.then_some(self.added);
    }
}

/// The slabs that are to be given back next.
#[derive(Debug)]
pub(crate) struct Oldest {
    slots: Vec<u8>,
    /// How many patches were written to them.
    pub(crate) patches: u64,
}

impl Oldest {
    /// The slot of the first of them.
    pub(crate) fn first(&self) -> Option<u8> {
        self.slots.first().copied()
    }

    /// Whether a patch refers to something in them.
    pub(crate) fn are_meant(&self, header: &PatchHeader) -> bool {
        self.slots.contains(&header.oldest)
    }
}

impl Filling {
    /// Whether so many slabs are in use that the oldest are to be given back: so early that there is room for what came
    /// meanwhile the last times, but not before three quarters are.
    fn is_due(&self) -> bool {
        let slabs = |bytes: u64| usize::try_from(bytes / self.each as u64).unwrap_or(usize::MAX);
        let coming = self.due.meanwhile.map_or(usize::MAX, slabs);
        // One of them is just begun, and the last one is for what is moved.
        let free = coming.saturating_add(1).max(2).min(self.most / 4);
        self.row.len() >= self.most - free
    }

    /// Whether that is so, where it was not told since [`Self::oldest`] was asked for the last time.
    pub(crate) fn is_due_first(&mut self) -> bool {
        let is_first = self.is_due() && !self.due.is_told;
        self.due.is_told |= is_first;
        is_first
    }

    /// From now on it was not told.
    pub(crate) fn is_not_told(&mut self) {
        (self.due.is_told, self.due.begun_at) = (false, None);
    }

    /// The slabs that are to be given back next, where that is due.
    pub(crate) fn oldest(&mut self) -> Option<Oldest> {
        self.due.is_told = false;
        self.give_back(1);
        let parts = || self.row.iter().take(SLABS_TOGETHER.min(self.row.len().saturating_sub(1)));
        let oldest =
            Oldest { slots: parts().map(|part| part.slot).collect(), patches: parts().map(|part| part.patches).sum() };
        self.due.note_meanwhile(self.is_due());
        self.due.begun_at.map(|_| oldest)
    }
}
