//! A journal that is only bytes, for fuzz targets alone.

use std::sync::Arc;

use super::{FileJournal, Metas};
use crate::disk::{HeapJournalFolder, JournalFolder};
use crate::format::{META_BYTES, Meta};
use crate::handles::SegmentBytes;
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
    let page = |at: usize| file.get(at..)?.first_chunk::<META_BYTES>().and_then(|page| Meta::decode(page).ok());
    let size = page(0).map_or(1024, |meta| meta.page_size) as usize;
    let metas = [page(0), page(size)];
    let newest = metas.into_iter().flatten().max_by_key(|meta| meta.txid).ok_or(Error::ChecksumMismatch)?;
    Ok(Metas { newest, damaged: metas.into_iter().zip(0..).find_map(|(meta, page)| meta.is_none().then_some(page)) })
}
