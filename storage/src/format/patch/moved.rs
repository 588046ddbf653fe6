//! A patch that is told anew: elsewhere in memory, or of another page.

use zerocopy::IntoBytes as _;

use super::change::rebase;
use super::{CHANGE, Change, PATCH_HEADER, PatchHeader, Patched, entry_data, finish, push_entry, units};

impl Patched<'_> {
    /// Writes a patch into `bytes`, which are empty and will lie at `at`, that tells the same and refers to no other: with
    /// all entries that are in memory, or at least a key of the leaf. `slot` is that of its slab.
    pub(crate) fn write_moved(self, bytes: &mut Vec<u8>, at: u32, slot: u8) {
        let header = PatchHeader { before: self.at.into(), number: 1, ..self.header().since(slot) };
        bytes.resize(PATCH_HEADER, 0);
        bytes.extend_from_slice(self.changes().as_bytes());
        for (index, change) in self.changes().iter().enumerate() {
            if let Some((key, data)) = change.added().and_then(|added| entry_data(self.slabs, added)) {
                let moved = Change::new(change.at(), change.base(), at + units(bytes.len()));
                let begin = PATCH_HEADER + index * CHANGE;
                bytes[begin..begin + CHANGE].copy_from_slice(moved.as_bytes());
                push_entry(bytes, key, &[data]);
            }
        }
        if bytes.len() == PATCH_HEADER + size_of_val(self.changes()) {
            let key = header.key(self.slabs, self.at).unwrap_or_default();
            push_entry(bytes, key.len(), &[key]);
        }
        finish(bytes, &header);
    }

    /// How the leaf differs from what it was when it was written to another page, as `written` tells: its entries are now
    /// elements of that page. Into `changes`, which are empty.
    pub(crate) fn rebase(self, written: Patched<'_>, changes: &mut Vec<Change>) {
        rebase(self.changes(), self.len(), written.changes(), written.len(), changes);
    }

    /// Writes a patch into `bytes`, which are empty, that tells the same of a leaf from whose page it differs by `changes`:
    /// no more than [`MOST_CHANGES`]. It refers to nothing older than the slab `oldest`, and has a key of the leaf.
    pub(crate) fn write_rebased(self, bytes: &mut Vec<u8>, changes: &[Change], oldest: u8) {
        let count = u8::try_from(changes.len()).expect("a patch tells of few changes");
        let header = PatchHeader { before: 0.into(), number: 1, changes: count, ..self.header().since(oldest) };
        bytes.resize(PATCH_HEADER, 0);
        bytes.extend_from_slice(changes.as_bytes());
        let key = self.header().key(self.slabs, self.at).unwrap_or_default();
        push_entry(bytes, key.len(), &[key]);
        finish(bytes, &header);
    }

    /// The length of its key.
    pub(crate) fn key_len(self) -> usize {
        self.header().key(self.slabs, self.at).map_or(0, <[u8]>::len)
    }
}
