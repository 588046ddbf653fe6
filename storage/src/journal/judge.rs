//! From a meta to the records that follow it, all of them found to be whole.

use std::io;
use std::path::PathBuf;

use super::MetaBytes;
use super::block::{BLOCK_LEN, EntryHeader, EntryKind, Position};
use super::forward::{Forward, Reach};
use super::log::{Log, Segment, damaged};
use super::replay::Records;
use super::retain::{History, JournalLimits, Used};
use super::segment::Spare;
use super::walk::{Blocks, Payload};
use crate::base::TxId;
use crate::disk::JournalFolder;
use crate::{Error, Result};

/// How many of the metas that were found an error names.
const MOST_NAMED: usize = 8;

/// A place among the segments: which of them, and the offset in it.
pub(super) type Place = (usize, u64);

/// What is recorded beyond a meta.
#[derive(Debug)]
pub(crate) struct Waiting {
    log: Log,
    contains: TxId,
    reach: Reach,
    /// Whether new segments follow what was read.
    goes_on: bool,
}

/// Where a meta was found.
#[derive(Debug, Clone, Copy)]
struct Located {
    segment: usize,
    contains: TxId,
    /// Where its link ends, if it is one.
    linked: Option<Place>,
}

impl Log {
    /// What is recorded beyond `meta`, the newest in the database's file.
    ///
    /// # Errors
    /// No entry and no header names that meta: the journal is another file's, or the file was changed without it, and not
    /// after a clean close. Or what
    /// follows it is damaged, or missing. Nothing is changed by looking.
    pub(crate) fn after(self, meta: &MetaBytes) -> Result<Waiting> {
        if self.is_empty() {
            return Ok(self.discarded(meta.txid()));
        }
        let Some(located) = self.locate(meta)? else {
            let newest = self.path.len() - 1;
            let reach = Forward::new(&self.path, &self.folder, TxId::MAX, None).read_from(newest)?;
            if reach.closed && reach.end.0 == newest {
                // The file held everything, and was changed without the journal since.
                let reach = Reach { records: 0, last: meta.txid(), ..reach };
                return Ok(Waiting { log: self, contains: meta.txid(), reach, goes_on: true });
            }
            let (folder, found) = (self.folder.clone(), self.newest_metas()?);
            return Err(Error::JournalDoesNotFit { folder, file: meta.txid(), found });
        };
        let first = self.first_needed(&located)?;
        let reach = Forward::new(&self.path, &self.folder, located.contains, located.linked).read_from(first)?;
        Ok(Waiting { log: self, contains: located.contains, reach, goes_on: true })
    }

    /// Whatever is recorded here is not read, and will be written over; `contains` is the last transaction in the file.
    pub(crate) fn discarded(self, contains: TxId) -> Waiting {
        Waiting { log: self, contains, reach: Reach::nothing(contains), goes_on: false }
    }

    /// Looks for a meta among links and headers, from the newest segment back.
    fn locate(&self, meta: &MetaBytes) -> Result<Option<Located>> {
        for (segment, of) in self.path.iter().enumerate().rev() {
            let mut newest = None;
            self.links_of(segment, |contains, found, end| {
                if found == *meta {
                    newest = Some(Located { segment, contains, linked: Some(end) });
                }
            })?;
            if newest.is_none() && of.header.base == *meta {
                newest = Some(Located { segment, contains: of.header.contains, linked: None });
            }
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Calls with each whole link that begins in a segment, also behind what is not whole.
    fn links_of(&self, index: usize, mut each: impl FnMut(TxId, MetaBytes, Place)) -> Result<()> {
        let segment = &self.path[index];
        let read = |error| Error::io("read", Some(&self.folder.join(&segment.name)))(error);
        let limit = self.path.get(index + 1).map_or(segment.len, |next| next.header.before.offset.min(segment.len));
        let mut blocks = Blocks::new(&*segment.disk);
        let mut at = segment.header.first_entry();
        while at < limit {
            let entry = EntryHeader::decode(blocks.at(at).map_err(read)?, segment.header.generation);
            let Some(entry) = entry else {
                at += BLOCK_LEN;
                continue;
            };
            let payload = Payload::new(&self.path, index, at, &entry);
            if entry.kind == EntryKind::Link {
                if let Some(meta) = meta_of(&entry, blocks.at(at).map_err(read)?) {
                    each(entry.txid, meta, (index, at + BLOCK_LEN));
                }
                at += BLOCK_LEN;
                continue;
            }
            // A record that is not all there has nothing behind it in this segment, or it is torn and its length says nothing
            // of where the next one is.
            at = match payload.skip() {
                Some((then, offset)) if then == index => offset,
                _ => at + BLOCK_LEN,
            };
        }
        Ok(())
    }

    /// The numbers of the newest metas that were found.
    fn newest_metas(&self) -> Result<Vec<TxId>> {
        let mut found = Vec::new();
        for index in (0..self.path.len()).rev() {
            let mut here = vec![self.path[index].header.base.txid()];
            self.links_of(index, |_, meta, _| here.push(meta.txid()))?;
            found.extend(here.into_iter().rev());
            found.dedup();
            if found.len() >= MOST_NAMED {
                found.truncate(MOST_NAMED);
                break;
            }
        }
        Ok(found)
    }

    /// The segment with which reading begins so that no record beyond `contains` is passed over.
    fn first_needed(&self, located: &Located) -> Result<usize> {
        let has_all = |segment: &Segment| segment.header.follows <= located.contains;
        let first = self.path[..=located.segment].iter().rposition(has_all);
        first.ok_or_else(|| {
            let oldest = &self.path[0];
            let what = match self.missing {
                Some(number) => format!("segment {number}, which it follows, is missing or its header is damaged"),
                None => "records before it are missing".into(),
            };
            damaged(self.folder.join(&oldest.name), 0, what)
        })
    }
}

/// The meta of a link that is whole.
fn meta_of(entry: &EntryHeader, block: &[u8]) -> Option<MetaBytes> {
    let payload = block.get(super::block::ENTRY_HEADER..)?.first_chunk::<64>()?;
    let is_whole = entry.payload == payload.len() as u64 && crc32c::crc32c(payload) == entry.payload_crc;
    is_whole.then_some(MetaBytes(*payload))
}

impl Waiting {
    /// Whether no record waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.reach.records == 0
    }

    /// The last transaction that the database's file contains.
    pub(crate) fn contains(&self) -> TxId {
        self.contains
    }

    /// Whether the database was closed, so that others may change its file.
    pub(crate) fn is_closed(&self) -> bool {
        self.log.is_empty() || self.reach.closed
    }

    /// How many records wait, and their bytes with what fills their blocks.
    pub(crate) fn records(&self) -> u64 {
        self.reach.records
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.reach.bytes
    }

    /// The last transaction that waits; where none does, the last one in the file.
    pub(crate) fn last(&self) -> TxId {
        self.reach.last.max(self.contains)
    }

    /// Where reading ended at something that is not whole and was never synced.
    pub(crate) fn torn_at(&self) -> Option<(PathBuf, u64)> {
        let (segment, offset) = self.reach.torn?;
        Some((self.log.folder.join(&self.log.path[segment].name), offset))
    }

    /// The records, in the order of their numbers.
    pub(crate) fn iter(&self) -> Records<'_> {
        Records::new(&self.log.path, &self.log.folder, self.reach.start, self.contains, self.reach.records)
    }

    /// Syncs what was read. A process that was killed may have left it in the system's cache only.
    pub(super) fn sync(&self) -> io::Result<()> {
        let read = if self.goes_on { self.reach.start.0..self.reach.end.0 + 1 } else { 0..0 };
        self.log.path[read].iter().try_for_each(|segment| segment.disk.sync())
    }

    /// What a new segment's header says of those before it.
    pub(super) fn into_found(self) -> FoundLog {
        let (store, highest) = (self.log.path.first().map(|segment| segment.header.store), self.log.highest);
        let last = self.last();
        let Self { log, reach, goes_on, .. } = self;
        let mut found = FoundLog {
            store,
            highest,
            last,
            last_time_ms: reach.last_time_ms,
            waiting_bytes: reach.bytes,
            end: Position::default(),
            end_crc: 0,
            history: History::default(),
            free: log.free,
        };
        let used = if goes_on { reach.end.0 + 1 } else { 0 };
        if goes_on {
            found.end = Position { segment: log.path[reach.end.0].header.number, offset: reach.end.1 };
            found.end_crc = reach.end_crc;
        }
        for (index, segment) in log.path.iter().enumerate() {
            let (name, len) = (segment.name.clone(), segment.len);
            if index >= used {
                found.free.push((name, len));
                continue;
            }
            let next = log.path.get(index + 1).filter(|_| index + 1 < used).map(|next| next.header);
            let (last, last_time_ms) = next.map_or((last, reach.last_time_ms), |next| (next.follows, next.time_ms));
            found.history.push(Used { name, len, last, last_time_ms });
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
    pub(super) last_time_ms: u64,
    pub(super) waiting_bytes: u64,
    pub(super) end: Position,
    pub(super) end_crc: u32,
    pub(super) history: History,
    free: Vec<(String, u64)>,
}

impl FoundLog {
    /// The files that can be written over; what is too much, or too short, or too long, is removed.
    pub(super) fn free(&mut self, folder: &dyn JournalFolder, limits: &JournalLimits) -> Vec<Spare> {
        let mut spares = Vec::new();
        for (name, len) in self.free.drain(..) {
            let fits = len == limits.segment_size && spares.len() < limits.most_free();
            match folder.open(&name) {
                Ok(disk) if fits => spares.push(Spare { name, disk, len }),
                // One that stays takes its room, and no more.
                _ => drop(folder.remove(&name)),
            }
        }
        spares
    }
}
