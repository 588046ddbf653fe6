//! A journal that is only bytes, for fuzz targets alone.

use std::sync::Arc;

use super::FileJournal;
use crate::disk::{HeapJournalFolder, JournalFolder};
use crate::format::{META_BYTES, Meta};
use crate::handles::SegmentBytes;
use crate::journal::MetaBytes;
use crate::{Error, Result};

impl FileJournal {
    /// As [`FileJournal::find`], of copies in memory.
    ///
    /// # Errors
    /// As there.
    pub fn of_bytes(file: &[u8], segments: &SegmentBytes) -> Result<Self> {
        let folder = HeapJournalFolder::new(segments).map_err(Error::io("copy", None))?;
        let folder: Arc<dyn JournalFolder> = Arc::new(folder);
        Self::of(&folder, || newest_meta(file))
    }
}

fn newest_meta(file: &[u8]) -> Result<MetaBytes> {
    let page = |at: usize| file.get(at..)?.first_chunk::<META_BYTES>();
    let first = page(0).and_then(|page| Meta::decode(page).ok());
    let size = first.as_ref().map_or(1024, |meta| meta.page_size) as usize;
    let of = |at: usize| page(at).filter(|&page| Meta::decode(page).is_ok()).map(MetaBytes::on);
    [of(0), of(size)].into_iter().flatten().max_by_key(MetaBytes::txid).ok_or(Error::ChecksumMismatch)
}
