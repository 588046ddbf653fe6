//! A page and what memory has of it, as one page.

use super::{Patched, Piece};
use crate::format::{ELEMENT, LeafPage, PAGE_HEADER, Page, PageWriter, Pgid};
use crate::{Error, Result};

impl<'a> LeafPage<'a> {
    /// Whether it is the page that the patch is of, as far as that can be told, before anything is made of both: it has all
    /// elements that are meant, with what was added they take as many bytes, and the keys of both go on from one another.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: a write was lost, or went to a wrong place.
    pub(crate) fn check_fit(self, patch: Patched<'a>) -> Result<()> {
        if self.has_what_is_meant(patch) && self.is_in_order(patch) {
            return Ok(());
        }
        Err(Error::corrupt(self.id(), "it is not the page of which memory has changes"))
    }

    fn has_what_is_meant(self, patch: Patched<'a>) -> bool {
        if Page::Leaf(self.as_written()).packed_end().is_none() {
            return false;
        }
        let mut size = PAGE_HEADER;
        let has_all = patch.pieces().all(|piece| match piece {
            Piece::Base(elements) if elements.end <= self.as_written().len() => {
                size += Page::Leaf(self.as_written()).packed_part(elements).size();
                true
            }
            Piece::Base(_) => false,
            Piece::Added(_, data) => {
                size += ELEMENT + data.len();
                true
            }
        });
        has_all && size == patch.size() && size <= self.bytes().len()
    }

    /// Where entries are of one size, another leaf has what is meant, too.
    fn is_in_order(self, patch: Patched<'a>) -> bool {
        let mut last: Option<&[u8]> = None;
        patch.pieces().all(|piece| {
            let ends = match piece {
                Piece::Base(elements) => {
                    let key = |element| self.written_entry(element).map(|entry| entry.key);
                    key(elements.start).zip(key(elements.end - 1))
                }
                Piece::Added(key, data) => data.get(..key).map(|key| (key, key)),
            };
            ends.is_some_and(|(first, end)| last.replace(end).is_none_or(|last| last < first))
        })
    }

    /// Writes what it has become over `page`, which will be page `id`. Its own page is packed.
    pub(crate) fn write_anew(self, patch: Patched<'a>, page: &mut [u8], id: Pgid) {
        let mut writer = PageWriter::leaf(page, id, 0, patch.len());
        let base = Page::Leaf(self.as_written());
        for piece in patch.pieces() {
            match piece {
                Piece::Base(elements) => writer.packed(&base.packed_part(elements)),
                Piece::Added(key, data) => writer.entry(key, data, false),
            }
        }
        writer.finish();
    }
}
