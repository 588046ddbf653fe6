//! From entry to entry, checking every byte, up to the end: a tear, damage, or where nothing more was written.
//!
//! An entry that is not whole is a *tear* where nothing says that it was ever synced: reading ends there, whatever lies
//! behind. It is *damage* where something does: a later entry that says up to where the journal was synced when it was
//! written, a later segment's header that says so, or the file's meta, which is written only after its link was synced.
//! Damage is an error, and never taken for the end.

use std::path::Path;

use super::MetaBytes;
use super::block::{BLOCK_LEN, ENTRY_HEADER, EntryHeader, EntryKind, Position};
use super::judge::{Located, Place};
use super::log::{Segment, close_before, damaged, limit, unreadable};
use super::walk::{Blocks, Found, entry_at};
use crate::base::TxId;
use crate::{Error, Result};

/// How far reading came, and what it found beyond the meta.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Where the first record is that the meta does not contain; the end where there is none.
    pub(super) start: Place,
    pub(super) records: u64,
    /// Their bytes, with what fills their blocks.
    pub(super) bytes: u64,
    /// The last record, and when it was written.
    pub(super) last: TxId,
    pub(super) last_time_ms: u64,
    /// Where the last entry ends, and its checksum.
    pub(super) end: Place,
    pub(super) end_crc: u32,
    /// The number of the last entry, if it says that the database was closed.
    pub(super) closed: Option<TxId>,
    /// The last of the closes that records beyond the meta stand before: the file held these when it was closed.
    pub(super) held: Option<TxId>,
    /// The newest of the journal's transactions, where it was closed with that and the file was changed without it since.
    pub(super) changed_since: Option<TxId>,
    /// Where something begins that is not whole, if it is not simply the end of what was written.
    pub(super) torn: Option<Place>,
    /// The greatest number that any entry has: a checkpoint may have taken one for its meta.
    pub(super) newest: TxId,
    /// When the last record that the meta contains was written, as far as that was read; else when its segment was begun.
    pub(super) contains_time_ms: u64,
}

pub(super) struct Forward<'a> {
    path: &'a [Segment],
    folder: &'a Path,
    contains: TxId,
    /// The segment that names the meta.
    located: usize,
    /// Where the link of the file's meta ends: up to there all was synced.
    linked: Option<Place>,
    /// The metas that the file may have had so far: the one that reading began with, and those of links.
    known: Vec<MetaBytes>,
    reach: Reach,
    buffer: Vec<u8>,
}

impl<'a> Forward<'a> {
    /// Reads what `meta`, which is named there, does not contain.
    pub(super) fn new(
        path: &'a [Segment],
        folder: &'a Path,
        meta: &MetaBytes,
        Located { segment: located, contains, linked }: Located,
    ) -> Self {
        let (start, end) = ((0, 0), (0, 0));
        let (records, bytes, last_time_ms, end_crc, closed, held, torn) = (0, 0, 0, 0, None, None, None);
        let (last, newest) = (contains, contains);
        let contains_time_ms = 0;
        let reach = Reach {
            start,
            records,
            bytes,
            last,
            last_time_ms,
            end,
            end_crc,
            closed,
            held,
            changed_since: None,
            torn,
            newest,
            contains_time_ms,
        };
        Self { path, folder, contains, located, linked, known: vec![*meta], reach, buffer: Vec::new() }
    }

    /// Reads from the first entry of a segment on; what the meta contains may be damaged. Where something else is, how far it
    /// came, and why no further.
    pub(super) fn read_from(mut self, first: usize) -> (Reach, Option<Error>) {
        let segment = &self.path[first];
        let (mut at, mut crc) = ((first, segment.first_entry()), segment.header.before_crc);
        self.reach.last_time_ms = segment.header.time_ms;
        self.reach.contains_time_ms = segment.header.time_ms;
        let mut start = None;
        let damage = loop {
            match self.step(at, crc, &mut start) {
                Ok(Some(then)) => (at, crc) = then,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        (self.reach.end, self.reach.end_crc) = (at, crc);
        self.reach.start = start.unwrap_or(at);
        (self.reach, damage)
    }

    /// From one entry, or segment, to the next; `None` at the end.
    fn step(&mut self, at: Place, crc: u32, start: &mut Option<Place>) -> Result<Option<(Place, u32)>> {
        if let Some(next) = self.next_segment(at, crc) {
            self.enter(next.0)?;
            close_before(self.path, next.0);
            return Ok(Some((next, crc)));
        }
        if let Found::Entry(entry, then) = self.entry_at(at, crc)? {
            self.know(&entry, at)?;
            if self.take(&entry, at)? {
                start.get_or_insert(at);
            }
            return Ok(Some((then, entry.crc)));
        }
        let behind = self.behind_what_is_contained(at)?;
        if behind.is_none() {
            self.end_at(at)?;
        }
        Ok(behind)
    }

    /// Where the next segment's entries begin, if all of this one's were read.
    fn next_segment(&self, (index, at): Place, crc: u32) -> Option<Place> {
        let next = self.path.get(index + 1)?;
        (at == limit(self.path, index) && crc == next.header.before_crc).then(|| (index + 1, next.first_entry()))
    }

    /// Goes on in a segment. Where an opening began it, the file was as its base says: as one of the links before says, too,
    /// unless others have changed the file after a clean close, or it was replaced.
    fn enter(&mut self, index: usize) -> Result<()> {
        let (header, before) = (&self.path[index].header, &self.path[index - 1].header);
        if header.epoch == before.epoch {
            return Ok(());
        }
        if index > self.located && !self.known.contains(&header.base) {
            // Others changed it after a clean close, and an older copy has its place now.
            if self.reach.closed.is_some() {
                self.reach.held = Some(header.contains);
            }
            let file = self.folder.join(self.path[index].file.name());
            return Err(Error::JournalDisjoint { file, contains: header.contains, last: self.reach.last });
        }
        // The checkpoint before may have taken a number.
        if header.follows == header.contains {
            self.reach.last = self.reach.last.max(header.follows);
        }
        Ok(())
    }

    /// Takes note of the meta of a link.
    fn know(&mut self, entry: &EntryHeader, (index, at): Place) -> Result<()> {
        self.reach.newest = self.reach.newest.max(entry.txid);
        if entry.kind != EntryKind::Link {
            return Ok(());
        }
        let segment = &self.path[index];
        let mut meta = [0; 64];
        let read = segment.file.read_at(&mut meta, at + ENTRY_HEADER as u64);
        if read.map_err(unreadable(self.folder, segment))? == meta.len() {
            self.known.push(MetaBytes(meta));
        }
        Ok(())
    }

    fn entry_at(&mut self, (index, at): Place, crc: u32) -> Result<Found> {
        if at >= limit(self.path, index) {
            return Ok(Found::Nothing);
        }
        let found = entry_at(self.path, index, at, Some(crc), &mut self.buffer);
        found.map_err(unreadable(self.folder, &self.path[index]))
    }

    /// Takes note of an entry; whether it is a record that the meta does not contain.
    fn take(&mut self, entry: &EntryHeader, (index, at): Place) -> Result<bool> {
        self.reach.closed = (entry.kind == EntryKind::Closed).then_some(entry.txid);
        if self.reach.closed.is_some() && self.reach.records > 0 {
            self.reach.held = self.reach.closed;
        }
        if entry.kind != EntryKind::Record {
            return Ok(false);
        }
        self.reach.last_time_ms = entry.time_ms;
        if entry.txid <= self.contains {
            self.reach.contains_time_ms = entry.time_ms;
            return Ok(false);
        }
        let follows = if self.reach.records == 0 { entry.follows.max(self.contains) } else { entry.follows };
        if follows != self.reach.last || entry.txid <= follows {
            let (txid, last) = (entry.txid, self.reach.last);
            let what = format!("it records transaction {txid} after {}, where {last} was the last", entry.follows);
            return Err(damaged(self.folder.join(self.path[index].file.name()), at, what));
        }
        self.reach.last = entry.txid;
        self.reach.records += 1;
        self.reach.bytes = self.reach.bytes.saturating_add(entry.len().unwrap_or(u64::MAX));
        Ok(true)
    }

    /// Where reading can go on behind something that is not whole, because all records in it are in the file.
    fn behind_what_is_contained(&self, (index, at): Place) -> Result<Option<(Place, u32)>> {
        if self.reach.records > 0 {
            return Ok(None);
        }
        let segment = &self.path[index];
        let mut blocks = Blocks::new(&segment.file);
        let mut offset = at + BLOCK_LEN;
        while offset < limit(self.path, index) {
            let block = blocks.at(offset).map_err(unreadable(self.folder, segment))?;
            if let Some(entry) = EntryHeader::decode(block, segment.header.generation) {
                return Ok((entry.follows <= self.contains).then_some(((index, offset), entry.before_crc)));
            }
            offset += BLOCK_LEN;
        }
        let next = self.path.get(index + 1).filter(|next| next.header.follows <= self.contains);
        Ok(next.map(|next| ((index + 1, next.first_entry()), next.header.before_crc)))
    }

    /// Takes `at` for the end, unless something says that what is not whole there was synced.
    fn end_at(&mut self, at: Place) -> Result<()> {
        if let Some(shown_by) = self.shows_a_sync_beyond(at)? {
            let file = self.folder.join(self.path[at.0].file.name());
            return Err(damaged(file, at.1, format!("it was synced, as {shown_by} shows, and is not whole")));
        }
        Ok(())
    }

    /// What shows that more was synced than what lies before `at`.
    fn shows_a_sync_beyond(&mut self, at: Place) -> Result<Option<String>> {
        if self.linked.is_some_and(|linked| linked > at) {
            return Ok(Some("the file's meta".into()));
        }
        for later in &self.path[at.0 + 1..] {
            if self.place(later.header.synced).is_some_and(|synced| synced > at) {
                return Ok(Some(format!("the header of segment {}", later.header.number)));
            }
        }
        for (index, segment) in self.path.iter().enumerate().skip(at.0) {
            let mut blocks = Blocks::new(&segment.file);
            let mut offset = if index == at.0 { at.1 } else { BLOCK_LEN };
            while offset < segment.len {
                let block = blocks.at(offset).map_err(unreadable(self.folder, segment))?;
                if let Some(entry) = EntryHeader::decode(block, segment.header.generation) {
                    // Something was written here, and it is not the end of what was.
                    self.reach.torn = Some(at);
                    if self.place(entry.synced).is_some_and(|synced| synced > at) {
                        let number = segment.header.number;
                        return Ok(Some(format!("the entry at {}", Position { segment: number, offset })));
                    }
                }
                offset += BLOCK_LEN;
            }
        }
        Ok(None)
    }

    fn place(&self, position: Position) -> Option<Place> {
        let is_it = |segment: &Segment| segment.header.number == position.segment;
        self.path.iter().position(is_it).map(|index| (index, position.offset))
    }
}
