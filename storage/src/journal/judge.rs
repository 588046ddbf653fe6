//! From a meta to the records that follow it, all of them found to be whole.

use super::MetaBytes;
use super::block::{BLOCK_LEN, EntryHeader, EntryKind};
use super::forward::{Forward, Reach};
use super::log::{Chain, Log, Segment, damaged, limit, shows_a_sync_of, unreadable};
use super::newest::NEWEST_OF_NEW;
use super::segment::SHORTEST_SEGMENT;
use super::waiting::Waiting;
use super::walk::{Blocks, Payload};
use crate::base::TxId;
use crate::{Error, Result};

/// The length of a file that is removed, for no segment is so short.
const OF_NO_USE: u64 = 0;

/// A place among the segments: which of them, and the offset in it.
pub(super) type Place = (usize, u64);

/// Where a meta was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located {
    pub(super) segment: usize,
    pub(super) contains: TxId,
    /// Where its link ends, if it is one.
    pub(super) linked: Option<Place>,
}

/// Where reading begins.
enum Reading {
    /// With this segment.
    From(usize, Located),
    /// The meta is known, and contains this; but the segment with the first records beyond it is missing, and was never synced.
    Torn(TxId),
    /// The meta is not there.
    Unknown,
}

impl Log {
    /// What is recorded beyond `meta`, the newest in the database's file.
    ///
    /// # Errors
    /// No entry and no header names that meta: the journal is another file's, or the file was changed without it, and not
    /// after a clean close. Or what follows it is damaged, or missing; or the file lacks what it held. Nothing is changed.
    pub(crate) fn after(self, meta: &MetaBytes) -> Result<Waiting> {
        self.refuse_new(meta)?;
        let (waiting, damage) = self.after_up_to_damage(meta)?;
        match waiting.reach.and_then(|reach| reach.held) {
            Some(held) => Err(Error::FileOlderThanJournal { folder: waiting.folder, file: meta.txid(), held }),
            None => damage.map_or(Ok(waiting), Err),
        }
    }

    /// The same, up to where what follows the meta is damaged or cannot be read, and why.
    ///
    /// # Errors
    /// As above, but for these.
    pub(crate) fn after_up_to_damage(self, meta: &MetaBytes) -> Result<(Waiting, Option<Error>)> {
        if self.is_empty() {
            return Ok((self.discarded(meta.txid()), None));
        }
        let Self { folder, segments, headless, .. } = self;
        let (store, highest) = (Some(segments[0].header.store), segments[segments.len() - 1].header.number);
        let mut chain = Chain::new(folder.clone(), segments);
        let (mut free, mut found, mut known, mut gap) = (headless, Vec::new(), None, None);
        let mut is_cut = false;
        loop {
            match chain.reading_place(meta)? {
                Reading::From(first, located) => {
                    let (contains, first_number) = (located.contains, chain.path[first].header.number);
                    let (mut reach, damage) = Forward::new(&chain.path, &folder, meta, located).read_from(first);
                    if is_cut || ends_where_its_file_was_cut(&chain, &free, reach.end) {
                        reach.torn = reach.torn.or(Some(reach.end));
                    }
                    let reach = Some(reach);
                    free.extend(chain.others.iter().map(Segment::name_and_len));
                    let first = first_number;
                    let waiting = Waiting { folder, path: chain.path, free, store, highest, contains, first, reach };
                    return Ok((waiting, damage.or(gap)));
                }
                Reading::Torn(contains) => known = known.or(Some(contains)),
                Reading::Unknown => {
                    let closed = chain.closed(highest, meta.txid())?;
                    // Of an older copy of the file segments know that these do not lead to.
                    let is_older = !chain.others.is_empty() && chain.others_name(meta)?;
                    if let Some(reach) = closed.filter(|_| !is_older) {
                        free.extend(chain.others.iter().map(Segment::name_and_len));
                        let (contains, reach, first) = (meta.txid(), Some(reach), highest);
                        let waiting =
                            Waiting { folder, path: chain.path, free, store, highest, contains, first, reach };
                        return Ok((waiting, None));
                    }
                    if is_older && (closed.is_some() || chain.shows_a_gap()?) {
                        gap = gap.or_else(|| chain.gap());
                    }
                    chain.add_newest_metas(&mut found)?;
                }
            }
            free.extend(chain.path.iter().map(Segment::name_and_len));
            if chain.others.is_empty() || chain.missing.is_none() {
                break;
            }
            // What cannot be reached from here was not on the disk when the machine stopped, or shows a gap. What was, may be
            // there. And what stands here is behind what is not.
            is_cut = is_cut || chain.has_entries()?;
            chain = Chain::new(folder.clone(), chain.others);
        }
        free.extend(chain.others.iter().map(Segment::name_and_len));
        match known {
            // Of what followed the meta nothing was ever synced, and the first of it is lost.
            Some(contains) => {
                Ok((Waiting { folder, path: Vec::new(), free, store, highest, contains, first: 0, reach: None }, None))
            }
            None => Err(Error::JournalDoesNotFit { folder, file: meta.txid(), found }),
        }
    }

    /// Whatever is recorded here is not read, and will be written over; `contains` is the last transaction in the file.
    pub(crate) fn discarded(self, contains: TxId) -> Waiting {
        // What does not belong together is not left for the next opening, which would refuse it.
        let is_kept = self.check().is_ok();
        let Self { folder, segments, headless, .. } = self;
        let store = segments.first().map(|segment| segment.header.store);
        let highest = segments.last().map_or(0, |segment| segment.header.number);
        let files = headless.into_iter().chain(segments.iter().map(Segment::name_and_len));
        let free = files.map(|(name, len)| (name, if is_kept { len } else { OF_NO_USE })).collect();
        Waiting { folder, path: Vec::new(), free, store, highest, contains, first: 0, reach: None }
    }
}

/// Whether reading came to the end of the newest segment's file, which is not as long as the others: a segment has its length
/// before it is used, so that somebody has made it shorter, and what was behind there may have been synced.
fn ends_where_its_file_was_cut(chain: &Chain, free: &[(String, u64)], (segment, offset): Place) -> bool {
    let Some(newest) = chain.path.last().filter(|_| segment + 1 == chain.path.len()) else { return false };
    let others = chain.path.iter().chain(&chain.others).map(|segment| segment.len);
    let longest = others.chain(free.iter().map(|&(_, len)| len)).max();
    let is_short = longest.is_some_and(|longest| newest.len < longest) && newest.len != SHORTEST_SEGMENT;
    offset + BLOCK_LEN > newest.len && (is_short || !newest.len.is_multiple_of(BLOCK_LEN))
}

impl Chain {
    /// Where reading begins so that no record beyond a meta is passed over.
    fn reading_place(&self, meta: &MetaBytes) -> Result<Reading> {
        let Some(located) = self.locate(meta)? else { return Ok(Reading::Unknown) };
        let has_all = |segment: &Segment| segment.header.follows <= located.contains;
        if let Some(first) = self.path[..=located.segment].iter().rposition(has_all) {
            return Ok(Reading::From(first, located));
        }
        let Some(gap) = self.gap() else {
            let oldest = self.folder.join(self.path[0].file.name());
            return Err(damaged(oldest, 0, "records before it are missing".into()));
        };
        if located.linked.is_some() || self.shows_a_gap()? { Err(gap) } else { Ok(Reading::Torn(located.contains)) }
    }

    /// What is wrong where the oldest segment follows one that was synced, and is not there.
    fn gap(&self) -> Option<Error> {
        let (missing, oldest) = (self.missing?, self.folder.join(self.path[0].file.name()));
        let what = format!("segment {missing}, which it follows, was synced, and is missing or its header is damaged");
        Some(damaged(oldest, 0, what))
    }

    /// Whether what the oldest segment follows is not there, and was synced: it was not lost with the machine's power.
    fn shows_a_gap(&self) -> Result<bool> {
        let Some(missing) = self.missing else { return Ok(false) };
        for segment in &self.path {
            if shows_a_sync_of(segment, missing).map_err(unreadable(&self.folder, segment))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether segments name a meta that these do not lead to.
    fn others_name(&self, meta: &MetaBytes) -> Result<bool> {
        let mut others = self.others.clone();
        while !others.is_empty() {
            let chain = Self::new(self.folder.clone(), others);
            if chain.locate(meta)?.is_some() {
                return Ok(true);
            }
            others = chain.others;
        }
        Ok(false)
    }

    /// The end of the segments, if they lead up to the newest one and end with a close: the file held everything then, and was
    /// changed without the journal since.
    pub(super) fn closed(&self, highest: u64, newest: TxId) -> Result<Option<Reach>> {
        let last = self.path.len() - 1;
        // All new files are alike: one that was never written to is not the one that was closed and changed since.
        if self.path[last].header.number != highest || newest <= NEWEST_OF_NEW {
            return Ok(None);
        }
        let meta = self.path[last].header.base;
        let everything = Located { segment: last, contains: TxId::MAX, linked: None };
        let (reach, damage) = Forward::new(&self.path, &self.folder, &meta, everything).read_from(last);
        damage.map_or(Ok(()), Err)?;
        // Who writes to a file counts on. What has a lower number is another file, or a copy of which the journal knows nothing.
        let changed_since = reach.closed.filter(|&closed| reach.end.0 == last && newest > closed);
        Ok(changed_since.map(|_| Reach { records: 0, last: newest, changed_since, ..reach }))
    }

    /// Whether the link of a meta of that number that reached the file can be in a segment, as far as headers tell. What is
    /// kept for long is not read for it.
    ///
    /// A link is newer than the base of its segment. Its meta is written before the next link is; so where, behind it, a base
    /// is followed by another one, that is this meta or a later one, unless the file was changed by others and went back.
    fn can_name(&self, index: usize, txid: TxId) -> bool {
        let base = |segment: &Segment| segment.header.base.txid();
        let behind = &self.path[index + 1..];
        let next = behind.first().map(base);
        let then = behind.iter().map(base).find(|&then| Some(then) != next);
        base(&self.path[index]) < txid && then.is_none_or(|then| then >= txid || Some(then) < next)
    }

    /// Looks for a meta among links and headers, from the newest segment back.
    pub(super) fn locate(&self, meta: &MetaBytes) -> Result<Option<Located>> {
        for (segment, of) in self.path.iter().enumerate().rev() {
            let mut newest = None;
            if self.can_name(segment, meta.txid()) {
                self.links_of(segment, |contains, found, end| {
                    if found == *meta {
                        newest = Some(Located { segment, contains, linked: Some(end) });
                    }
                })?;
            }
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
    pub(super) fn links_of(&self, index: usize, mut each: impl FnMut(TxId, MetaBytes, Place)) -> Result<()> {
        self.entries_of(index, |entry, link| {
            if let Some((meta, end)) = link {
                each(entry.txid, meta, end);
            }
        })
    }

    /// Whether anything was recorded in them.
    fn has_entries(&self) -> Result<bool> {
        let mut has = false;
        for index in 0..self.path.len() {
            self.entries_of(index, |_, _| has = true)?;
            if has {
                break;
            }
        }
        Ok(has)
    }

    /// The same of every entry: a link with its meta, if it is whole, and where it ends.
    pub(super) fn entries_of(
        &self,
        index: usize,
        mut each: impl FnMut(&EntryHeader, Option<(MetaBytes, Place)>),
    ) -> Result<()> {
        let segment = &self.path[index];
        let limit = limit(&self.path, index);
        let mut blocks = Blocks::new(&segment.file);
        let mut at = segment.first_entry();
        while at < limit {
            let entry = EntryHeader::decode(
                blocks.at(at).map_err(unreadable(&self.folder, segment))?,
                segment.header.generation,
            );
            let Some(entry) = entry else {
                at += BLOCK_LEN;
                continue;
            };
            let payload = Payload::new(&self.path, index, at, &entry);
            if entry.kind == EntryKind::Link {
                let meta = meta_of(&entry, blocks.at(at).map_err(unreadable(&self.folder, segment))?);
                each(&entry, meta.map(|meta| (meta, (index, at + BLOCK_LEN))));
                at += BLOCK_LEN;
                continue;
            }
            each(&entry, None);
            // A record that is not all there has nothing behind it in this segment, or it is torn and its length says nothing
            // of where the next one is.
            at = match payload.skip() {
                Some((then, offset)) if then == index => offset,
                _ => at + BLOCK_LEN,
            };
        }
        Ok(())
    }
}

/// The meta of a link that is whole.
fn meta_of(entry: &EntryHeader, block: &[u8]) -> Option<MetaBytes> {
    let payload = block.get(super::block::ENTRY_HEADER..)?.first_chunk::<64>()?;
    let is_whole = entry.payload == payload.len() as u64 && crc32c::crc32c(payload) == entry.payload_crc;
    is_whole.then_some(MetaBytes(*payload))
}
