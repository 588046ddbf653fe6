//! The newest meta that was on the disk, where the file itself does not show it any more.
//!
//! A file whose newest meta is damaged seems to stand at the one before it. But once commits have followed the newer one, the
//! pages of the older may be written over: to do again from there what was recorded would build on them. The journal knows
//! better. A link alone does not say that its meta was written after it, for a crash may have come in between; then the older
//! meta is right, and whole. What stands behind the link says so: a record, for no commit begins before the meta is on the
//! disk, or a segment that was begun on it.

use super::MetaBytes;
use super::block::EntryKind;
use super::log::{Chain, Log};
use crate::Result;

impl Log {
    /// The newest meta that was on the disk and is newer than `meta`, the newest that the file has left. `None` where there is
    /// none, or where nothing is known of `meta` here: then this may be another file's journal.
    pub(crate) fn newest_beyond(self, meta: &MetaBytes) -> Result<Option<MetaBytes>> {
        if self.is_empty() {
            return Ok(None);
        }
        let Self { folder, segments, .. } = self;
        let chain = Chain::new(folder, segments);
        let Some(located) = chain.locate(meta)? else { return Ok(None) };
        let mut newest = None;
        for index in located.segment..chain.path.len() {
            let base = chain.path[index].header.base;
            if index > located.segment && base.txid() > meta.txid() {
                newest = Some(base);
            }
            // One that was not written when this segment was begun never was.
            let mut linked = None;
            chain.entries_of(index, |entry, link| match link {
                Some((meta, _)) => linked = Some(meta),
                None if entry.kind == EntryKind::Record => newest = linked.take().or(newest),
                None => {}
            })?;
        }
        Ok(newest.filter(|newest| newest.txid() > meta.txid()))
    }
}
