//! A journal that is only bytes, for fuzz targets alone.

use std::convert::Infallible;
use std::sync::Arc;

use super::{FileJournal, FileMeta};
use crate::disk::{HeapJournalFolder, JournalFolder};
use crate::format::{MetaFields, Metas};
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

fn metas_of(file: &[u8]) -> Result<FileMeta> {
    let bytes = |at: u64| usize::try_from(at).ok().and_then(|at| file.get(at..)).unwrap_or_default();
    let Ok(found) = Metas::find(|at| Ok::<_, Infallible>(MetaFields::read(bytes(at))));
    FileMeta::of(&found.ok_or(Error::ChecksumMismatch)?, |at, page| {
        page.iter_mut().zip(bytes(at)).for_each(|(to, from)| *to = *from);
        Ok(())
    })
}
