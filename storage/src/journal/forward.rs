//! From entry to entry, checking every byte, up to the end: a tear, damage, or where nothing more was written.
//!
//! An entry that is not whole is a *tear* where nothing says that it was ever synced: reading ends there, whatever lies
//! behind. It is *damage* where something does: a later entry that says up to where the journal was synced when it was
//! written, the meta itself, which is written only after its link was synced, or a segment of a later opening, which
//! syncs what it found before it goes on. Damage is an error, and never taken for the end.

use std::path::Path;

use super::block::{BLOCK_LEN, EntryHeader, EntryKind, Position};
use super::judge::Place;
use super::log::{Segment, damaged};
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
    /// The last entry says that the database was closed.
    pub(super) closed: bool,
    /// Where something begins that is not whole, if it is not simply the end of what was written.
    pub(super) torn: Option<Place>,
}

impl Reach {
    pub(super) fn nothing(contains: TxId) -> Self {
        Self {
            start: (0, 0),
            records: 0,
            bytes: 0,
            last: contains,
            last_time_ms: 0,
            end: (0, 0),
            end_crc: 0,
            closed: false,
            torn: None,
        }
    }
}

pub(super) struct Forward<'a> {
    path: &'a [Segment],
    folder: &'a Path,
    contains: TxId,
    /// Where the link of the file's meta ends: up to there all was synced.
    linked: Option<Place>,
    reach: Reach,
    buffer: Vec<u8>,
}

impl<'a> Forward<'a> {
    pub(super) fn new(path: &'a [Segment], folder: &'a Path, contains: TxId, linked: Option<Place>) -> Self {
        Self { path, folder, contains, linked, reach: Reach::nothing(contains), buffer: Vec::new() }
    }

    /// Reads from the first entry of a segment on; what the meta contains may be damaged.
    pub(super) fn read_from(mut self, first: usize) -> Result<Reach> {
        let header = &self.path[first].header;
        let (mut at, mut crc) = ((first, header.first_entry()), header.before_crc);
        self.reach.last_time_ms = header.time_ms;
        let mut start = None;
        loop {
            if let Some(next) = self.next_segment(at, crc) {
                at = next;
                continue;
            }
            let found = self.entry_at(at, crc)?;
            if let Found::Entry(entry, then) = found {
                if self.take(&entry, at)? {
                    start.get_or_insert(at);
                }
                (at, crc) = (then, entry.crc);
            } else if let Some((then, before_crc)) = self.behind_what_is_contained(at)? {
                (at, crc) = (then, before_crc);
            } else {
                self.end_at(at)?;
                break;
            }
        }
        (self.reach.end, self.reach.end_crc) = (at, crc);
        self.reach.start = start.unwrap_or(at);
        Ok(self.reach)
    }

    /// Where entries of a segment end for which the next one stands.
    fn limit(&self, index: usize) -> u64 {
        let len = self.path[index].len;
        self.path.get(index + 1).map_or(len, |next| next.header.before.offset.min(len))
    }

    /// Where the next segment's entries begin, if all of this one's were read.
    fn next_segment(&self, (index, at): Place, crc: u32) -> Option<Place> {
        let next = &self.path.get(index + 1)?.header;
        (at == self.limit(index) && crc == next.before_crc).then(|| (index + 1, next.first_entry()))
    }

    fn entry_at(&mut self, (index, at): Place, crc: u32) -> Result<Found> {
        if at >= self.limit(index) {
            return Ok(Found::Nothing);
        }
        let found = entry_at(self.path, index, at, Some(crc), &mut self.buffer);
        found.map_err(|error| unreadable(self.folder, &self.path[index], error))
    }

    /// Takes note of an entry; whether it is a record that the meta does not contain.
    fn take(&mut self, entry: &EntryHeader, (index, at): Place) -> Result<bool> {
        self.reach.closed = entry.kind == EntryKind::Closed;
        if entry.kind != EntryKind::Record {
            return Ok(false);
        }
        self.reach.last_time_ms = entry.time_ms;
        if entry.txid <= self.contains {
            return Ok(false);
        }
        let follows = if self.reach.records == 0 { entry.follows.max(self.contains) } else { entry.follows };
        if follows != self.reach.last || entry.txid <= follows {
            let (txid, last) = (entry.txid, self.reach.last);
            let what = format!("it records transaction {txid} after {}, where {last} was the last", entry.follows);
            return Err(damaged(self.folder.join(&self.path[index].name), at, what));
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
        let mut blocks = Blocks::new(&*segment.disk);
        let mut offset = at + BLOCK_LEN;
        while offset < self.limit(index) {
            let block = blocks.at(offset).map_err(|error| unreadable(self.folder, segment, error))?;
            if let Some(entry) = EntryHeader::decode(block, segment.header.generation) {
                return Ok((entry.follows <= self.contains).then_some(((index, offset), entry.before_crc)));
            }
            offset += BLOCK_LEN;
        }
        let next = self.path.get(index + 1).map(|next| &next.header);
        let next = next.filter(|next| next.follows <= self.contains);
        Ok(next.map(|next| ((index + 1, next.first_entry()), next.before_crc)))
    }

    /// Takes `at` for the end, unless something says that what is not whole there was synced.
    fn end_at(&mut self, at: Place) -> Result<()> {
        if let Some(shown_by) = self.shows_a_sync_beyond(at)? {
            let file = self.folder.join(&self.path[at.0].name);
            return Err(damaged(file, at.1, format!("it was synced, as {shown_by} shows, and is not whole")));
        }
        Ok(())
    }

    /// What shows that more was synced than what lies before `at`.
    fn shows_a_sync_beyond(&mut self, at: Place) -> Result<Option<String>> {
        if self.linked.is_some_and(|linked| linked > at) {
            return Ok(Some("the file's meta".into()));
        }
        let opened = |pair: &&[Segment]| pair[0].header.epoch != pair[1].header.epoch;
        let later = self.path[at.0..].windows(2).filter(opened).find(|pair| {
            let before = pair[1].header.before;
            self.place(before).is_some_and(|before| before > at)
        });
        if let Some(later) = later {
            return Ok(Some(format!("the header of segment {}", later[1].header.number)));
        }
        for (index, segment) in self.path.iter().enumerate().skip(at.0) {
            let mut blocks = Blocks::new(&*segment.disk);
            let mut offset = if index == at.0 { at.1 } else { BLOCK_LEN };
            while offset < segment.len {
                let block = blocks.at(offset).map_err(|error| unreadable(self.folder, segment, error))?;
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

fn unreadable(folder: &Path, segment: &Segment, error: std::io::Error) -> Error {
    Error::io("read", Some(&folder.join(&segment.name)))(error)
}
