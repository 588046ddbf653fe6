//! The list of free pages, as it lies in the file.

use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use super::page::{PageHeader, cut};
use super::{PAGE_HEADER, PageKind, Pgid};
use crate::{Error, Result};

/// The page ids that a freelist page lists, in the order they stand there.
pub(crate) fn freelist_ids(id: Pgid, bytes: &[u8]) -> Result<impl Iterator<Item = Pgid> + '_> {
    let header = PageHeader::read(bytes).ok_or_else(|| cut(id))?;
    if PageKind::of(header.flags.get()) != Some(PageKind::Freelist) {
        let what = format!("a freelist page is expected, its flags are {:#06x}", header.flags);
        return Err(Error::corrupt(id, what));
    }
    let all = &bytes[PAGE_HEADER..];
    let (count, skip) = match header.count.get() {
        0xFFFF => match U64::read_from_prefix(all) {
            Ok((count, _)) => (count.get(), size_of::<U64>()),
            Err(_) => return Err(cut(id)),
        },
        count => (u64::from(count), 0),
    };
    let fits = (all.len() - skip) / size_of::<U64>();
    let count = usize::try_from(count).ok().filter(|&count| count <= fits);
    let count =
        count.ok_or_else(|| Error::corrupt(id, format!("the freelist claims more ids than the {fits} that fit")))?;
    let ids = <[U64]>::ref_from_prefix_with_elems(&all[skip..], count).map_err(|_| cut(id))?.0;
    Ok(ids.iter().map(|id| id.get()))
}
