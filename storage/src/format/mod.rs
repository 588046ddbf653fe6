//! The file's layout: views over bytes that somebody else wrote.
//!
//! Nothing in this folder trusts a byte: every offset is checked before it is followed, and what
//! does not fit is an [`Error::Corrupt`](crate::Error::Corrupt) that names the page. Nothing here
//! assumes alignment either, because inline pages sit at any offset of their parent.
//!
//! The layout is bbolt's (`internal/common` of etcd-io/bbolt v1.4.3 to v1.5.0); integers are
//! little-endian.

mod bucket;
mod encode;
mod freelist;
mod keys;
mod meta;
mod metas;
mod packed;
mod page;
mod patch;
mod search;

pub(crate) use crate::base::{Pgid, TxId};
pub(crate) use bucket::{BUCKET_HEADER, BucketHeader, bucket_value};
pub(crate) use encode::{PageWriter, freelist_page};
pub(crate) use freelist::freelist_ids;
pub use meta::MetaFields;
pub(crate) use meta::{META_BYTES, Meta, NO_FREELIST, ends_in_first_meta};
pub(crate) use metas::{Metas, page_sizes};
pub(crate) use packed::Packed;
pub(crate) use page::{BranchElement, BranchPage, LeafElement, LeafEntry, LeafPage, Page, PageHeader};
pub(crate) use patch::{
    Changes, Edit, MOST_CHANGES, MOST_PATCHES, PATCH_HEADER, PatchHeader, PatchId, Patched, Piece, begin_changes,
    patch_bytes, write_patch,
};
pub(crate) use search::{Between, alike_in_all, prefix, search};

/// Bytes of a page's header.
pub(crate) const PAGE_HEADER: usize = 16;
/// Bytes of an element in a leaf or branch page.
pub(crate) const ELEMENT: usize = 16;
/// `flags` of a leaf element whose value is a bucket.
pub(crate) const BUCKET_FLAG: u32 = 0x01;
/// The largest number of elements that a page may hold.
pub(crate) const MAX_ELEMENTS: usize = 0xFFFE;

/// Longest key and longest bucket name, in bytes.
pub const MAX_KEY_SIZE: usize = 32_768;
/// Longest value, in bytes: 2^31 - 2.
pub const MAX_VALUE_SIZE: usize = (1 << 31) - 2;

/// Smallest page size, in bytes.
pub(crate) const MIN_PAGE_SIZE: u32 = 1 << 10;
/// Largest page size, in bytes.
pub(crate) const MAX_PAGE_SIZE: u32 = 1 << 24;

/// Whether a page size is one that a file may have.
pub(crate) fn is_page_size(size: u32) -> bool {
    size.is_power_of_two() && (MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&size)
}

/// The kind a page's `flags` field gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum PageKind {
    Branch = 0x01,
    Leaf = 0x02,
    Meta = 0x04,
    Freelist = 0x10,
}

impl PageKind {
    pub(crate) fn of(flags: u16) -> Option<Self> {
        Some(match flags {
            0x01 => Self::Branch,
            0x02 => Self::Leaf,
            0x04 => Self::Meta,
            0x10 => Self::Freelist,
            _ => return None,
        })
    }
}
