//! Both metas of a file: where they are, and which of them counts.

use super::meta::{Meta, MetaFault, MetaFields};
use super::{Pgid, is_page_size};

/// What pages 0 and 1 of a file say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metas {
    page_size: u32,
    /// `None` where the file ends before.
    fields: [Option<MetaFields>; 2],
}

/// The sizes that a page may have.
pub(crate) fn page_sizes() -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|power| 1 << power).filter(|&size| is_page_size(size))
}

impl Metas {
    /// Finds them: a first one that is valid says where the second is, and otherwise a valid second one is where it says itself.
    /// `None` where neither is. `read` answers what stands at an offset.
    pub(crate) fn find<E>(mut read: impl FnMut(u64) -> Result<Option<MetaFields>, E>) -> Result<Option<Self>, E> {
        let is_of = |meta: &MetaFields, size| meta.page_size == size && meta.validated().is_ok();
        let first = read(0)?;
        if let Some(meta) = first.filter(|meta| is_of(meta, meta.page_size)) {
            return Self::of(meta.page_size, read).map(Some);
        }
        for page_size in page_sizes() {
            let second = read(page_size.into())?;
            if second.is_some_and(|meta| is_of(&meta, page_size)) {
                return Ok(Some(Self { page_size, fields: [first, second] }));
            }
        }
        Ok(None)
    }

    /// Those of a file whose pages have this size.
    pub(crate) fn of<E>(page_size: u32, mut read: impl FnMut(u64) -> Result<Option<MetaFields>, E>) -> Result<Self, E> {
        Ok(Self { page_size, fields: [read(0)?, read(page_size.into())?] })
    }

    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    /// What stands on page 0 or 1, whatever it is.
    pub(crate) fn fields(&self, page: Pgid) -> Option<MetaFields> {
        self.fields.get(usize::try_from(page).ok()?).copied().flatten()
    }

    /// The metas, where they are valid.
    pub(crate) fn valid(&self) -> [Option<Meta>; 2] {
        [0, 1].map(|page| self.meta(page).ok())
    }

    /// The meta on page 0 or 1, or why it is none.
    pub(crate) fn meta(&self, page: Pgid) -> Result<Meta, MetaFault> {
        let meta = self.fields(page).ok_or(MetaFault::Magic)?.validated()?;
        if meta.page_size == self.page_size { Ok(meta) } else { Err(MetaFault::PageSize(meta.page_size)) }
    }

    /// The one by which a database is opened: of those that are valid the one with the higher transaction number.
    pub(crate) fn newest(&self) -> Option<Meta> {
        self.valid().into_iter().flatten().max_by_key(|meta| meta.txid)
    }

    /// Why there is none by which to open one: what is wrong with one that is a meta says more than that the other is none.
    pub(crate) fn fault(&self) -> MetaFault {
        let faults = [0, 1].map(|page| self.meta(page).err());
        faults.into_iter().flatten().find(|fault| *fault != MetaFault::Magic).unwrap_or(MetaFault::Magic)
    }

    /// The page whose meta is not valid, where the other one's is.
    pub(crate) fn damaged(&self) -> Option<Pgid> {
        match self.valid() {
            [None, Some(_)] => Some(0),
            [Some(_), None] => Some(1),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn file(page_size: u32) -> Vec<u8> {
        let meta = |txid| Meta { page_size, flags: 0, root: 3, sequence: 0, freelist: 2, mark: 4, txid };
        [meta(4).encode(), meta(5).encode()].concat()
    }

    fn find(file: &[u8]) -> Option<Metas> {
        let read = |at| Ok::<_, Infallible>(file.get(usize::try_from(at).unwrap()..).and_then(MetaFields::read));
        Metas::find(read).unwrap()
    }

    #[test]
    fn the_newest_that_is_valid_counts_at_any_page_size() {
        for size in page_sizes() {
            let whole = file(size);
            let metas = find(&whole).unwrap();
            assert_eq!((metas.page_size(), metas.newest().unwrap().txid, metas.damaged()), (size, 5, None));
            for (page, left) in [(0, 5), (1, 4)] {
                let mut damaged = whole.clone();
                damaged[page * size as usize + 40] ^= 1;
                let metas = find(&damaged).unwrap();
                assert_eq!((metas.page_size(), metas.newest().unwrap().txid), (size, left));
                assert_eq!(metas.damaged(), Some(page as Pgid));
                assert_eq!(metas.meta(page as Pgid), Err(MetaFault::Checksum));
                damaged[(1 - page) * size as usize + 40] ^= 1;
                assert!(find(&damaged).is_none());
            }
        }
    }

    #[test]
    fn a_second_meta_of_another_page_size_is_none() {
        let mut other = file(1024);
        other.resize(4096, 0);
        other.splice(1024..2048, file(2048)[..1024].iter().copied());
        let metas = find(&other).unwrap();
        assert_eq!((metas.newest().unwrap().txid, metas.damaged()), (4, Some(1)));
        assert_eq!(metas.meta(1), Err(MetaFault::PageSize(2048)));
        other.truncate(1024);
        assert_eq!(find(&other).unwrap().meta(1), Err(MetaFault::Magic), "there is none");
    }
}
