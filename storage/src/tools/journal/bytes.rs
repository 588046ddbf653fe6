//! A journal that is only bytes, for fuzz targets alone.

use std::sync::Arc;

use super::{FileJournal, Metas};
use crate::disk::{HeapJournalFolder, JournalFolder};
use crate::format::{META_BYTES, Meta};
use crate::handles::SegmentBytes;
use crate::journal::DamagedPage;
use crate::{Error, Result};

impl FileJournal {
    /// As [`FileJournal::find`], of copies in memory.
    ///
    /// # Errors
    /// As there.
    pub fn of_bytes(file: &[u8], segments: &SegmentBytes) -> Result<Self> {
        let folder = HeapJournalFolder::new(segments).map_err(Error::io("copy", None))?;
        let folder: Arc<dyn JournalFolder> = Arc::new(folder);
        Self::of(&folder, || metas_of(file))
    }
}

fn metas_of(file: &[u8]) -> Result<Metas> {
    let bytes = |at: usize| file.get(at..).and_then(|page| page.first_chunk::<META_BYTES>()).copied();
    let meta = |page: &[u8; META_BYTES]| Meta::decode(page).ok();
    let size = bytes(0).as_ref().and_then(meta).map_or(1024, |meta| meta.page_size) as usize;
    let pages = [bytes(0), bytes(size)];
    let newest = pages.iter().flatten().filter_map(meta).max_by_key(|meta| meta.txid).ok_or(Error::ChecksumMismatch)?;
    let damaged = pages.into_iter().zip(0..).find_map(|(bytes, page)| {
        let bytes = bytes.filter(|bytes| meta(bytes).is_none())?;
        Some(DamagedPage { page, bytes })
    });
    Ok(Metas { newest, damaged })
}
