//! What is in memory already is told anew, at the row's end.

use super::{Before, Filling, For, Table};
use crate::base::shared::Arc;
use crate::disk::slot_of;
use crate::format::{MOST_CHANGES, Patched, Pgid, patch_bytes};

impl Filling {
    /// Has all that a page has in memory lie in the newest slab; `false` where there is no room for that. `bytes` are for use
    /// meanwhile.
    pub(crate) fn move_on(&mut self, page: Pgid, bytes: &mut Vec<u8>) -> bool {
        let Some(at) = self.newest(page).map(|(at, _)| at) else { return true };
        let next = self.next();
        let written = self.write_moved(at, bytes);
        if written.is_none() || !self.reserve(page, bytes.len(), For::Moving { is_first: false }) {
            return false;
        }
        if self.next() != next && self.write_moved(at, bytes).is_none() {
            return false;
        }
        let Some(moved) = self.append(bytes, true) else { return false };
        self.gone(at);
        self.note(page, u64::from(moved));
        self.fill_coming(bytes.len());
        true
    }

    /// Begins another slab, so that what there is stays as it is; what that is read with, and the slots of its slabs, from the
    /// oldest on. `None` where there is no room for another.
    pub(crate) fn begin_slab(&mut self) -> Option<(Arc<Table>, Vec<u8>)> {
        self.give_back(0);
        let (table, slots) = (self.table.clone()?, self.row.iter().map(|part| part.slot).collect());
        self.go_on(For::Moving { is_first: false }).then_some((table, slots))
    }

    /// The leaf of a page was written to page `to`, of which nothing is noted, as `written` tells: has the patch of that one
    /// tell what has changed since. `None` where there is no room for that, or it is too much. `bytes` are for use meanwhile.
    pub(crate) fn rebase(&mut self, page: Pgid, to: Pgid, written: Patched<'_>, bytes: &mut Vec<u8>) -> Option<Before> {
        let at = self.newest(page)?.0;
        let table = Arc::clone(self.table.as_ref()?);
        let newest = table.patched(at)?;
        let mut changes = Vec::new();
        newest.rebase(written, &mut changes);
        let len = patch_bytes(changes.len(), newest.key_len());
        if changes.len() > MOST_CHANGES || !self.reserve(to, len, For::Moving { is_first: true }) {
            return None;
        }
        let slots = || changes.iter().filter_map(|change| change.added()).map(slot_of);
        let oldest = self.row.iter().map(|part| part.slot).find(|&slot| slots().any(|of| of == slot));
        let oldest = oldest.or(self.row.back().map(|part| part.slot))?;
        bytes.clear();
        newest.write_rebased(bytes, &changes, oldest);
        self.push(to, None, bytes)
    }

    /// What the patch at `at` would be at the end of the row.
    fn write_moved(&self, at: u32, bytes: &mut Vec<u8>) -> Option<()> {
        bytes.clear();
        let (next, slot) = self.next()?;
        self.table.as_ref()?.patched(at)?.write_moved(bytes, next, slot);
        Some(())
    }
}
