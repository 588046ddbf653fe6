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
use crate::Result;
use crate::base::TxId;
use crate::format::{Meta, Pgid};

impl Log {
    /// The meta that stood in this slot of a file whose newest one left is `meta`; `None` as below.
    pub(crate) fn meta_in(&self, slot: Pgid, left: &Meta) -> Result<Option<Meta>> {
        let next = self.next_after(&MetaBytes::of(left))?.and_then(|next| next.meta());
        Ok(next.filter(|next| next.slot() == slot && next.page_size == left.page_size))
    }

    /// The newest meta that was on the disk, where it is the next one after `meta`, the newest that the file has left. `None`
    /// where there is none, where the file is an older copy, or where nothing is known of `meta` here: then this may be
    /// another file's journal.
    fn next_after(&self, meta: &MetaBytes) -> Result<Option<MetaBytes>> {
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
                None if entry.kind == EntryKind::Record => {
                    linked.take().into_iter().for_each(|meta| written.note(meta));
                }
                None => {}
            })?;
            segment.file.close();
            if !written.is_last {
                break;
            }
        }
        Ok(written.next.filter(|_| written.is_last))
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
