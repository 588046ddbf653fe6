//! A bucket's header: the first bytes of a leaf element's value, or part of the meta.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{LeafPage, Pgid};
use crate::{Error, Result};

/// Bytes of a bucket's header.
pub(crate) const BUCKET_HEADER: usize = size_of::<BucketHeader>();

/// Root page and sequence of a bucket.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BucketHeader {
    /// 0 where the bucket is inline: its only page follows the header.
    pub(crate) root: U64,
    pub(crate) sequence: U64,
}

/// Splits a bucket's value, found in page `page`, into its header and, for an inline bucket, its page.
pub(crate) fn bucket_value(page: Pgid, value: &[u8]) -> Result<(BucketHeader, Option<LeafPage<'_>>)> {
    let (header, rest) = BucketHeader::read_from_prefix(value).map_err(|_| {
        Error::corrupt(page, format!("a bucket's value has {} bytes of its 16-byte header", value.len()))
    })?;
    let inline = if header.root == 0 { Some(LeafPage::parse_inline(page, rest)?) } else { None };
    Ok((header, inline))
}
