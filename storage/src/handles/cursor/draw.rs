//! An entry by chance.

use super::Direction::Forward;
use super::{Cursor, Entry, Frame, shown};
use crate::Result;
use crate::format::LeafEntry;

impl<'tx> Cursor<'tx> {
    /// An entry drawn by chance: of the ways that there are at each level of the tree, `draw` is told how many, and says which
    /// is taken, from 0 on. It reads as many pages as the tree is deep. Entries of pages that are less full are drawn more often,
    /// by a few times at most.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// # db.update(|tx| tx.create_bucket("planets")?.put("earth", "third"))?;
    /// # let tx = db.begin()?;
    /// let middle = tx.bucket("planets")?.cursor().draw(|ways| ways / 2)?;
    /// assert_eq!(middle.map(|(name, _)| name), Some(&b"earth"[..]));
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn draw(&mut self, draw: impl FnMut(usize) -> usize) -> Result<Option<Entry<'tx>>> {
        Ok(self.go_to_drawn(draw).map_err(|error| self.bucket.located(error))?.map(shown))
    }

    fn go_to_drawn(&mut self, mut draw: impl FnMut(usize) -> usize) -> Result<Option<LeafEntry<'tx>>> {
        self.leave();
        let mut view = self.bucket.source.root(self.bucket.root)?;
        loop {
            let Some(mut at) = view.first() else { return self.go_to_end(Forward) };
            for _ in 0..draw(view.len()).min(view.len()) {
                at = view.next(at).unwrap_or(at);
            }
            if view.is_leaf() {
                self.stack.push(Frame { view, at });
                return self.entry();
            }
            view = self.push_and_follow(view, at)?;
        }
    }
}
