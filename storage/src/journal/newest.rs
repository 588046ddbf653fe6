//! The newest meta that was on the disk, where the file itself does not show it any more.
//!
//! A file whose newest meta is damaged seems to stand at the one before it. But once commits have followed the newer one, the
//! pages of the older may be written over: to do again from there what was recorded would build on them. The journal knows
//! better. A link alone does not say that its meta was written after it, for a crash may have come in between; then the older
//! meta is right, and whole. What stands behind the link says so: a record, for no commit begins before the meta is on the
//! disk, or a segment that was begun on it.
//!
//! A file has its last two metas. So where the journal knows of more than one that was on the disk after the one that is left,
//! this is an older copy of the file, which was put in its place and has not the pages of any of them.

use super::MetaBytes;
use super::block::EntryKind;
use super::log::{Chain, Log};
use crate::base::TxId;
use crate::format::{META_BYTES, Meta, MetaFields, Pgid};
use crate::{Error, Result};

/// How many of the metas that were found an error names.
const MOST_NAMED: usize = 8;

/// The transaction of a file that was created, and never written to since.
pub(super) const NEWEST_OF_NEW: TxId = 1;

/// A page of a file where a meta should be, and none is that is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DamagedPage {
    pub(crate) page: Pgid,
    /// What stands there.
    pub(crate) bytes: [u8; META_BYTES],
}

impl DamagedPage {
    /// Whether enough of a meta is left here: all that says where its transaction's pages are, or its checksum.
    fn shows(&self, meta: &Meta) -> bool {
        let fields = MetaFields::read(&meta.encode()).zip(MetaFields::read(&self.bytes));
        let places = |meta: &MetaFields| (meta.txid, meta.root, meta.freelist, meta.high_water_mark);
        fields.is_some_and(|(of, left)| of.checksum == left.checksum || places(&of) == places(&left))
    }
}

impl Log {
    /// The meta that stood on a damaged page of a file whose newest one left is `left`; `None` where nothing is known of it.
    ///
    /// # Errors
    /// [`Error::MetaLost`] where it was a newer one than the one that is left, and it is not known which.
    pub(crate) fn meta_on(&self, damaged: &DamagedPage, left: &Meta) -> Result<Option<Meta>> {
        let fits = |meta: &Meta| meta.slot() == damaged.page && meta.page_size == left.page_size;
        if let Some(written) = self.written(&MetaBytes::of(left))? {
            let next = written.next.filter(|_| written.is_last).and_then(|next| next.meta());
            return Ok(next.filter(fits));
        }
        // The one that is left is named no more: the page itself must show what it was.
        let Some((newest, linked)) = self.newest_written(left)? else { return Ok(None) };
        let is_it = |meta: &Meta| fits(meta) && meta.txid > left.txid && damaged.shows(meta);
        let shown = [linked, Some(newest)].into_iter().flatten().filter_map(|meta| meta.meta()).find(is_it);
        if shown.is_none() && newest.txid() > left.txid {
            let (page, left, newest, folder) = (damaged.page, left.txid, newest.txid(), self.folder.clone());
            return Err(Error::MetaLost { page, left, newest, folder });
        }
        Ok(shown)
    }

    /// The newest meta that was on the disk, and one that may have been, which was linked behind it. `None` where others may
    /// have changed the file since, after a clean close.
    fn newest_written(&self, left: &Meta) -> Result<Option<(MetaBytes, Option<MetaBytes>)>> {
        let Some(highest) = self.segments.last().map(|newest| newest.header.number) else { return Ok(None) };
        let chain = Chain::new(self.folder.clone(), self.segments.clone());
        if chain.closed(highest, left.txid)?.is_some() {
            return Ok(None);
        }
        let last = chain.path.len() - 1;
        let (mut newest, mut linked) = (chain.path[last].header.base, None);
        chain.entries_of(last, |entry, link| match link {
            Some((meta, _)) => linked = Some(meta),
            None if entry.kind != EntryKind::Link => newest = linked.take().unwrap_or(newest),
            None => {}
        })?;
        Ok(Some((newest, linked)))
    }

    /// All new files are alike, so that any of them seems to be the one that this journal was begun with. One that was never
    /// written to is not, where that one's next meta was on the disk.
    pub(super) fn refuse_new(&self, meta: &MetaBytes) -> Result<()> {
        if meta.txid() > NEWEST_OF_NEW {
            return Ok(());
        }
        let Some(next) = self.written(meta)?.and_then(|written| written.next) else { return Ok(()) };
        let (folder, file) = (self.folder.clone(), meta.txid());
        Err(Error::FileOlderThanJournal { folder, file, held: next.txid() })
    }

    /// What was on the disk after `meta`. `None` where nothing is known of it here: then this may be another file's journal.
    fn written(&self, meta: &MetaBytes) -> Result<Option<Written>> {
        if self.is_empty() {
            return Ok(None);
        }
        let chain = Chain::new(self.folder.clone(), self.segments.clone());
        let Some(located) = chain.locate(meta)? else { return Ok(None) };
        let mut written = Written { after: meta.txid(), next: None, is_last: true };
        for index in located.segment..chain.path.len() {
            let segment = &chain.path[index];
            if index > located.segment {
                written.note(segment.header.base);
            }
            // One that was not written when this segment was begun never was.
            let mut linked = None;
            chain.entries_of(index, |entry, link| match link {
                Some((meta, _)) => linked = Some(meta),
                // A close, too, comes only once that is on the disk.
                None if entry.kind != EntryKind::Link => {
                    linked.take().into_iter().for_each(|meta| written.note(meta));
                }
                None => {}
            })?;
            segment.file.close();
            if !written.is_last {
                break;
            }
        }
        Ok(Some(written))
    }
}

impl Chain {
    /// Adds the numbers of the newest metas that are there: those in the headers, and the links of the newest segment.
    pub(super) fn add_newest_metas(&self, found: &mut Vec<TxId>) -> Result<()> {
        for index in (0..self.path.len()).rev() {
            let mut here = vec![self.path[index].header.base.txid()];
            if index + 1 == self.path.len() {
                self.links_of(index, |_, meta, _| here.push(meta.txid()))?;
            }
            found.extend(here.into_iter().rev());
            found.dedup();
            if found.len() >= MOST_NAMED {
                found.truncate(MOST_NAMED);
                break;
            }
        }
        Ok(())
    }
}

/// The metas that were on the disk after one.
struct Written {
    after: TxId,
    next: Option<MetaBytes>,
    /// None came after the next one.
    is_last: bool,
}

impl Written {
    fn note(&mut self, meta: MetaBytes) {
        if meta.txid() > self.after {
            let next = *self.next.get_or_insert(meta);
            self.is_last &= next == meta;
        }
    }
}
