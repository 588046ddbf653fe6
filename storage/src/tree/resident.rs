//! Which of the pages that a look-up reads are in memory, and bringing them there: for those who must not wait for the disk.
//! Damage is no matter here: the look-up itself tells of it.

use super::view::{Child, Root, Source};
use crate::format::{Between, Page, Pgid};
use crate::pages::MAX_DEPTH;

impl<'tx> Source<'tx> {
    /// Whether all pages that [`Self::find`] reads for this key are in memory.
    pub(crate) fn is_resident(&self, root: Root<'tx>, key: &[u8]) -> bool {
        let Some(mut id) = first_page(root) else { return true };
        let mut between = Between::ANY;
        for _ in 0..MAX_DEPTH {
            if !self.pages.is_resident(id) {
                return false;
            }
            let Some(child) = self.below(id, key, between) else { return true };
            (id, between) = child;
        }
        true
    }

    /// Waits until the pages that [`Self::find`] reads for these keys are in memory. On each level of the tree, all that
    /// are wanted are asked of the disk at once.
    pub(crate) fn fault_in(&self, root: Root<'tx>, keys: &[impl AsRef<[u8]>]) {
        let Some(first) = first_page(root) else { return };
        let mut places: Vec<_> = keys.iter().map(|key| (key.as_ref(), first, Between::ANY)).collect();
        for _ in 0..MAX_DEPTH {
            let mut level: Vec<_> = places.iter().map(|(_, id, _)| *id).collect();
            level.sort_unstable();
            level.dedup();
            // A single page is not asked for ahead: whoever looks at it next waits for it anyway.
            let ahead = if level.len() > 1 { level.as_slice() } else { &[] };
            for id in ahead {
                self.pages.read_page_ahead(*id);
            }
            for id in level {
                self.pages.fault_in(id);
            }
            places.retain_mut(|(key, id, between)| {
                let child = self.below(*id, key, *between);
                child.map(|child| (*id, *between) = child).is_some()
            });
            if places.is_empty() {
                return;
            }
        }
    }

    /// Has the processor fetch what [`Self::find`] reads for these keys in the leaves: of all of them at once, level by
    /// level, where one look-up after the other would wait for the memory.
    pub(crate) fn prefetch(&self, root: Root<'tx>, keys: &[impl AsRef<[u8]>]) {
        let Some(first) = first_page(root) else { return };
        let mut places: Vec<_> = keys.iter().map(|key| (key.as_ref(), first, Between::ANY)).collect();
        for _ in 0..MAX_DEPTH {
            for (_, id, _) in &places {
                self.pages.prefetch_header(*id);
            }
            places.retain_mut(|(key, id, between)| {
                let branch = self.pages.branch_or_prefetch(*id);
                let below = branch.and_then(|branch| branch.sound_child(key, *between));
                below.map(|below| (*id, *between) = (below.page, below.between)).is_some()
            });
            if places.is_empty() {
                return;
            }
        }
    }

    /// The page to go to from page `id`; `None` from a leaf, and where the way is damaged or leads to a node.
    fn below(&self, id: Pgid, key: &[u8], between: Between) -> Option<(Pgid, Between)> {
        match self.pages.sound_page(id)? {
            Page::Branch(branch) => branch.sound_child(key, between).map(|below| (below.page, below.between)),
            Page::Leaf(_) => None,
        }
    }
}

/// The page that a bucket's tree begins with; `None` where it lies inline, or is a node, which is in memory.
fn first_page(root: Root<'_>) -> Option<Pgid> {
    match root {
        Root::Tree(Child::Page(id)) => Some(id),
        Root::Read(page) => Some(page.id()),
        Root::Tree(Child::Node(_)) | Root::Inline(_) => None,
    }
}
