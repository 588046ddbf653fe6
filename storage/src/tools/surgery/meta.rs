//! Surgery on the two metas: going back by one transaction, and setting single fields.

use super::{Change, Changes, Surgery, refused};
use crate::format::{MetaFields, PAGE_HEADER, Pgid, TxId, is_page_size};
use crate::tools::raw::RawFile;
use crate::{Error, Result};

/// What [`Surgery::revert_meta_page`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reverted {
    /// The meta page, 0 or 1, that was replaced by the other one.
    pub page: Pgid,
    /// The transaction whose state the copy is in.
    pub txid: TxId,
    /// The transaction that was taken back; `None` where the replaced meta was damaged, so that
    /// nothing that could be opened was taken back.
    pub lost: Option<TxId>,
}

/// Which fields of a meta [`Surgery::update_meta`] sets; the others stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetaChange {
    /// Bytes of a page.
    pub page_size: Option<u32>,
    /// The page of the root bucket's root. Its sequence, which nobody uses, becomes 0.
    pub root: Option<Pgid>,
    /// The page of the freelist; 2^64 - 1: it is not stored.
    pub freelist: Option<Pgid>,
    /// The first page id never used.
    pub high_water_mark: Option<Pgid>,
}

/// What [`Surgery::update_meta`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetaUpdated {
    /// Whether anything was changed.
    pub changed: bool,
    /// The meta as the copy has it.
    pub meta: MetaFields,
    /// The page size of the other meta, where it differs: only one of them can be right.
    pub other_page_size: Option<u32>,
}

impl Surgery {
    /// Replaces the newer meta by the older one, which takes back the latest transaction: often the
    /// one whose pages a crash has spoilt. A meta that is damaged is replaced by the one that is
    /// not, whatever number it claims to have (bbolt believes the number).
    ///
    /// # Errors
    /// [`Error::Surgery`] where both metas are damaged; otherwise as [`Self::copy_page`].
    pub fn revert_meta_page(&self) -> Result<Reverted> {
        self.operate(reverted)
    }

    /// Sets fields of the meta on page 0 or 1, and its magic number, version, flags and checksum to
    /// what they have to be. Whether the new values make sense is not looked at.
    ///
    /// # Errors
    /// [`Error::Surgery`] for another page; [`Error::InvalidPageSize`]; otherwise as
    /// [`Self::copy_page`].
    pub fn update_meta(&self, page: Pgid, change: &MetaChange) -> Result<MetaUpdated> {
        self.operate(|file| updated(file, page, change))
    }
}

/// Where the fields of a meta begin in the file.
fn fields_at(file: &RawFile, page: Pgid) -> u64 {
    page * u64::from(file.page_size()) + PAGE_HEADER as u64
}

/// The metas that are not damaged.
pub(super) fn valid_metas(file: &RawFile) -> Result<[Option<MetaFields>; 2]> {
    let valid = |page| file.meta(page).filter(|meta| meta.fault().is_none() && meta.page_size == file.page_size());
    match [valid(0), valid(1)] {
        [None, None] => Err(refused("both meta pages are damaged: nothing in the file says which one to go by")),
        metas => Ok(metas),
    }
}

fn reverted(file: &RawFile) -> Result<(Reverted, Changes)> {
    let (kept, page, lost) = match valid_metas(file)? {
        [Some(first), Some(second)] if first.txid < second.txid => (first, 1, Some(second.txid)),
        [Some(first), Some(second)] => (second, 0, Some(first.txid)),
        [Some(first), None] => (first, 1, None),
        [None, second] => (second.ok_or(Error::ChecksumMismatch)?, 0, None),
    };
    let page_size = u64::from(file.page_size());
    let changes = vec![
        Change::Copy { from: (1 - page) * page_size, len: page_size, to: page * page_size },
        Change::Write { at: page * page_size, bytes: page.to_le_bytes().into() },
    ];
    Ok((Reverted { page, txid: kept.txid, lost }, changes))
}

fn updated(file: &RawFile, page: Pgid, change: &MetaChange) -> Result<(MetaUpdated, Changes)> {
    let Some(before) = file.meta(page) else {
        return Err(refused(format!("page {page} is no meta page of the file: they are 0 and 1")));
    };
    let mut meta = before;
    if let Some(page_size) = change.page_size {
        if !is_page_size(page_size) {
            return Err(Error::InvalidPageSize { found: page_size.into() });
        }
        meta.page_size = page_size;
    }
    if let Some(root) = change.root {
        (meta.root, meta.sequence) = (root, 0);
    }
    meta.freelist = change.freelist.unwrap_or(meta.freelist);
    meta.high_water_mark = change.high_water_mark.unwrap_or(meta.high_water_mark);
    meta.make_valid();
    let changes = vec![Change::Write { at: fields_at(file, page), bytes: meta.bytes() }];
    let other = file.meta(1 - page).map(|other| other.page_size);
    let other_page_size = other.filter(|&other| other != meta.page_size);
    Ok((MetaUpdated { changed: meta != before, meta, other_page_size }, changes))
}

/// The change that gives up the freelist of a meta.
pub(super) fn without_freelist(file: &RawFile, page: Pgid, mut meta: MetaFields) -> Change {
    meta.freelist = crate::format::NO_FREELIST;
    meta.checksum = meta.computed_checksum();
    Change::Write { at: fields_at(file, page), bytes: meta.bytes() }
}
