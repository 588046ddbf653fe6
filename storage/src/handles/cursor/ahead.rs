//! What a cursor will look at next is fetched while it goes through a leaf: from the disk, and by the processor.

use super::{Cursor, Direction, Frame, one_on};
use crate::format::Pgid;
use crate::pages::Recents;
use crate::tree::{At, Child, View};

/// Who has stepped to so many leaves will go on: what comes next is read ahead.
const A_SCAN: u64 = 4;

impl<'tx> Cursor<'tx> {
    /// The page beside the one at `at` is likely to be next.
    pub(super) fn prefetch(&self, view: View<'tx>, at: At, direction: Direction) {
        let Some((at, id)) = beside(view, at, direction) else { return };
        self.bucket.source.pages.prefetch(id);
        if let Some(recents) = self.bucket.source.pages.recents() {
            prefetch_recents(recents, view, at, direction);
        }
    }

    /// Has what the branch above leads to read ahead: once for each branch that a scan comes to.
    #[inline]
    pub(super) fn read_ahead(&mut self, is_beside: bool) {
        self.leaves += 1;
        let is_due = if is_beside { self.leaves == A_SCAN } else { self.leaves >= A_SCAN };
        if is_due && let [.., Frame { view: View::Branch(branch), .. }, _] = self.stack.as_slice() {
            self.bucket.source.pages.read_ahead(*branch);
        }
    }
}

/// What memory has of leaves is found in steps, each of which is fetched while one leaf is gone through: where the newest
/// patch is, the patch, what it has added. The last is done for the leaf at `at`, here is what those behind it need.
#[inline(never)]
fn prefetch_recents(recents: &Recents, view: View<'_>, at: At, direction: Direction) {
    let Some((at, id)) = beside(view, at, direction) else { return };
    recents.prefetch_newest(id);
    if let Some((_, id)) = beside(view, at, direction) {
        recents.prefetch_entry(id);
    }
}

/// The page beside the one that a branch leads to at `at`, and where it does.
fn beside(view: View<'_>, at: At, direction: Direction) -> Option<(At, Pgid)> {
    let at = one_on(view, at, direction)?;
    match view.child(at) {
        Ok(Child::Page(id)) => Some((at, id)),
        _ => None,
    }
}
