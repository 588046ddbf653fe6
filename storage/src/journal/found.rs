//! What was found of a journal when it is begun anew: what its new segment follows, and which files it can be.

use std::io;

use super::block::Position;
use super::log::Segment;
use super::retain::{History, JournalKeep, JournalLimits, Needed, Used};
use super::segment::Spare;
use super::stats::JournalStats;
use super::waiting::Waiting;
use crate::base::TxId;
use crate::disk::{JournalFolder, is_no_room};

impl Waiting {
    /// What a new segment's header says of those before it.
    pub(super) fn into_found(self, keep: JournalKeep, contains: TxId, now_ms: u64) -> FoundLog {
        let last = self.last();
        let (store, highest, reach) = (self.store, self.highest, self.reach);
        let mut found = FoundLog {
            store,
            highest,
            last,
            figures: JournalStats {
                replayed: self.records(),
                changed_since: self.changed_since(),
                torn: self.torn_at().is_some(),
                ..JournalStats::default()
            },
            waiting_bytes: self.bytes(),
            needed: Needed {
                link: self.first,
                contains,
                keep,
                // A clock that went back does not go back here.
                now_ms: now_ms.max(reach.map_or(0, |reach| reach.last_time_ms)),
            },
            end: Position::default(),
            end_crc: 0,
            history: History::default(),
            free: self.free,
            last_resort: None,
        };
        let Some(reach) = reach else { return found };
        found.end = Position { segment: self.path[reach.end.0].header.number, offset: reach.end.1 };
        found.end_crc = reach.end_crc;
        let (read, behind) = self.path.split_at(reach.end.0 + 1);
        found.free.extend(behind.iter().map(Segment::name_and_len));
        for (index, segment) in read.iter().enumerate() {
            let next = read.get(index + 1).map(|next| (next.header.follows, next.header.time_ms));
            let (last, last_time_ms) = next.unwrap_or((last, reach.last_time_ms));
            let (name, len) = segment.name_and_len();
            found.history.push(Used { number: segment.header.number, name, len, last, last_time_ms });
        }
        found
    }
}

/// What a new segment goes on from.
#[derive(Debug)]
pub(super) struct FoundLog {
    pub(super) store: Option<u64>,
    pub(super) highest: u64,
    pub(super) last: TxId,
    /// What was found, in figures.
    pub(super) figures: JournalStats,
    /// With what fills their blocks: no fewer than they would count, and a checkpoint follows.
    pub(super) waiting_bytes: u64,
    /// What the next opening needs, if this one comes to nothing: it begins no further back than this one, as of [`Waiting`].
    pub(super) needed: Needed,
    pub(super) end: Position,
    pub(super) end_crc: u32,
    pub(super) history: History,
    free: Vec<(String, u64)>,
    /// The shortest segment that nobody needs.
    pub(super) last_resort: Option<Spare>,
}

impl FoundLog {
    /// The files that can be written over; what is too much, or too short, or too long, is removed, also of what was kept.
    pub(super) fn free(&mut self, folder: &dyn JournalFolder, limits: &JournalLimits) -> Vec<Spare> {
        let mut spares = Vec::new();
        for (name, len) in self.free.drain(..) {
            let is_last_resort = limits.is_last_resort(len, self.last_resort.as_ref());
            let fits = len == limits.segment_size && spares.len() < limits.most_free();
            match Spare::open(folder, &name, len) {
                Ok(spare) if is_last_resort => self.last_resort = Some(spare),
                Ok(spare) if fits => spares.push(spare),
                // One that stays takes its room, and no more.
                _ => drop(folder.remove(&name)),
            }
        }
        while let Some(used) = self.history.take_surplus(&self.needed, limits) {
            let _ = folder.remove(&used.name);
        }
        spares
    }

    /// The segment to go on in: one of those that are free, or the oldest, or a new one. A full disk is no reason not to open:
    /// what is kept for the last is taken then, or a short one is made, unless nothing is there yet that waits.
    pub(super) fn first(
        &mut self,
        free: &mut Vec<Spare>,
        folder: &dyn JournalFolder,
        limits: &JournalLimits,
    ) -> io::Result<Spare> {
        if let Some(spare) = free.pop().or_else(|| self.unneeded(folder, limits)) {
            return Ok(spare);
        }
        match Spare::make(folder, limits.segment_size) {
            Err(error) if is_no_room(&error) && self.store.is_some() => match self.last_resort.take() {
                Some(spare) => Ok(spare),
                None => Spare::make_shortest(folder, limits),
            },
            made => made,
        }
    }

    /// The number of the newest segment that may have been in use again before: see [`History::newest_unneeded`].
    pub(super) fn doubtful(&self) -> u64 {
        self.history.newest_unneeded(&Needed { link: u64::MAX, ..self.needed })
    }

    /// The oldest segment, where nobody needs it.
    fn unneeded(&mut self, folder: &dyn JournalFolder, limits: &JournalLimits) -> Option<Spare> {
        while let Some(used) = self.history.take_unneeded(&self.needed) {
            let opened = || Spare::open(folder, &used.name, used.len).ok();
            if used.len == limits.segment_size {
                return opened();
            }
            if limits.is_last_resort(used.len, self.last_resort.as_ref()) {
                self.last_resort = opened();
            } else {
                // Its room may be what is needed. One that stays takes its room, and no more.
                let _ = folder.remove(&used.name);
            }
        }
        None
    }
}
