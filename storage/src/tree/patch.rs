//! Changing a leaf by a patch in memory: its page stays as it is, and so do the branches that lead to it.
//!
//! That is for small entries in leaves that stay one page, of transactions that a journal makes durable. All else (what
//! splits a leaf or may merge it, buckets) takes pages apart, patched or not.

use super::patcher::MemoryStats;
use super::slots::{Content, Slot};
use super::undo::Undo;
use super::view::{Child, Root};
use super::work::Work;
use super::{BucketId, Fill, ROOT_BUCKET};
use crate::Result;
use crate::format::{
    Between, Changes, ELEMENT, Edit, LeafPage, MOST_CHANGES, MOST_PATCHES, Page, PatchHeader, PatchId, Pgid, TxId,
    begin_changes, patch_bytes,
};
use crate::pages::{MAX_DEPTH, Pages, Recents, Run};

/// Bytes of an entry at most.
const LONGEST_ENTRY: usize = 2048;
/// Pages larger than this are not patched.
const LARGEST_PAGE: usize = 1 << 15;
/// Buckets at most on the way to one whose leaves are patched.
const DEEPEST: usize = 32;

/// What is to become of an entry.
enum Plan {
    /// It cannot be done by a patch.
    Otherwise,
    /// There is none of this key to be deleted.
    NotThere,
    Patch(Planned),
}

struct Planned {
    page: Pgid,
    /// The page has no patches yet.
    is_first: bool,
    /// The page of the branch above it, if there is one.
    above: Option<Pgid>,
    header: PatchHeader,
    /// Bytes of the patch.
    bytes: usize,
    /// The change of the entry that was added.
    added: Option<usize>,
    /// How it is undone, where there is a savepoint.
    undo: Option<Old>,
}

/// A leaf that is still on its page.
pub(super) struct OnPage<'a> {
    pub(super) leaf: LeafPage<'a>,
    /// What is known of its keys.
    between: Between,
    /// The page of the branch above it, if there is one.
    above: Option<Pgid>,
    /// No branch leads to it.
    is_root: bool,
}

/// What was there before, to which a savepoint may lead back.
enum Old {
    Nothing,
    /// The entry, which is replaced or deleted.
    Value(Vec<u8>),
}

impl Work {
    /// The transaction, whose commit a journal will make durable, may patch.
    pub(crate) fn may_patch(&mut self) {
        let txid = self.base.meta.txid.saturating_add(1);
        if self.pages().page_size() <= LARGEST_PAGE
            && let Some(patcher) = &mut self.spare.patcher
        {
            patcher.begin(txid);
        }
    }

    /// What is kept in memory.
    pub(crate) fn memory_stats(&self) -> MemoryStats {
        self.spare.patcher.as_ref().map(|patcher| patcher.stats()).unwrap_or_default()
    }

    /// How many patches leaves have got.
    pub(crate) fn patched(&self) -> usize {
        self.spare.patcher.as_ref().map_or(0, |patcher| patcher.added())
    }

    /// What readers of the state `txid` need that is about to be published; nothing, where it `is_whole` in the file.
    pub(crate) fn recents(&self, txid: TxId, is_whole: bool) -> Recents {
        let patcher = self.spare.patcher.as_ref().filter(|_| !is_whole);
        patcher.map_or_else(Recents::default, |patcher| patcher.published(txid))
    }

    pub(super) fn is_patched(&self, page: Pgid) -> bool {
        self.spare.patcher.as_ref().is_some_and(|patcher| patcher.is_patched(page))
    }

    /// Puts an entry by a patch; `false`, and nothing is done, where that cannot be.
    #[inline]
    pub(super) fn put_by_patch(&mut self, bucket: BucketId, key: &[u8], value: &[u8]) -> bool {
        self.patches() && matches!(self.patch(bucket, key, Some(value)), Some(Plan::Patch(_)))
    }

    /// Deletes a value by a patch: whether there was one. `None`, and nothing is done, where that cannot be.
    #[inline]
    pub(super) fn delete_by_patch(&mut self, bucket: BucketId, key: &[u8]) -> Option<bool> {
        if !self.patches() {
            return None;
        }
        match self.patch(bucket, key, None)? {
            Plan::Otherwise => None,
            Plan::NotThere => Some(false),
            Plan::Patch(_) => Some(true),
        }
    }

    #[inline]
    fn patches(&self) -> bool {
        self.spare.patcher.as_ref().is_some_and(|patcher| patcher.is_on)
    }

    fn patch(&mut self, bucket: BucketId, key: &[u8], value: Option<&[u8]>) -> Option<Plan> {
        let may = key.len() + value.map_or(0, <[u8]>::len) <= LONGEST_ENTRY;
        let patcher = self.spare.patcher.as_mut().filter(|_| may)?;
        let mut changes = std::mem::take(&mut patcher.changes);
        let mut plan = self.plan(bucket, key, value, &mut changes).unwrap_or(Plan::Otherwise);
        if let Plan::Patch(planned) = &mut plan {
            if self.push_patch(planned, bucket, &mut changes, (key, value.unwrap_or_default())) {
                self.note_patch(bucket, key, value.is_some(), planned.undo.take());
            } else {
                plan = Plan::Otherwise;
            }
        }
        self.spare.patcher.as_mut()?.changes = changes;
        Some(plan)
    }

    /// How an entry would be put or deleted by a patch. `None` also where a page is damaged: who does it otherwise says so.
    fn plan(&self, bucket: BucketId, key: &[u8], value: Option<&[u8]>, changes: &mut Changes) -> Option<Plan> {
        let patcher = self.spare.patcher.as_ref()?;
        let page_size = self.pages().page_size();
        let OnPage { leaf, between, above, is_root } = self.leaf_on_page(bucket, key)?;
        if leaf.bytes().len() != page_size || self.state(bucket).fill != Fill::Auto {
            return None;
        }
        let newest = patcher.newest_header(leaf.id());
        debug_assert_eq!(
            leaf.patch().is_some(),
            newest.is_some(),
            "page {}: what is read and what is written differ",
            leaf.id()
        );
        if newest.is_none() && !patcher.takes_more() {
            return None;
        }
        let found = leaf.search(key, between).ok()?;
        let old = found.ok().map(|index| leaf.entry(index)).transpose().ok()?;
        if old.is_some_and(|old| old.is_bucket) {
            return None;
        }
        let edit = match (found, value) {
            (Ok(index), Some(_)) => Edit::Replace(index),
            (Err(index), Some(_)) => Edit::Insert(index),
            (Ok(index), None) => Edit::Remove(index),
            (Err(_), None) => return Some(Plan::NotThere),
        };
        // A branch names a page by its first key: bbolt finds it there by nothing else, and where they differ has two of them.
        if !is_root && matches!(edit, Edit::Remove(0) | Edit::Insert(0)) {
            return None;
        }
        let size_of = |key: &[u8], value: &[u8]| ELEMENT + key.len() + value.len();
        let (before, less) = (leaf.packed_size()?, old.map_or(0, |old| size_of(old.key, old.value)));
        let size = before + value.map_or(0, |value| size_of(key, value)) - less;
        begin_changes(changes, &leaf);
        let added = changes.make(edit);
        // What would be split, or merged with its neighbour, is taken apart.
        let is_whole = size <= page_size && (size >= before || 3 * size >= page_size && changes.len() > 1);
        let (last, number) = newest.map_or((0, 0), |(at, header)| (at, header.number));
        if !is_whole || number >= MOST_PATCHES || changes.count() > MOST_CHANGES {
            return None;
        }
        let (size, len) = (u16::try_from(size).ok()?, u16::try_from(changes.len()).ok()?);
        let header = PatchHeader::new(size, len, last, number + 1);
        let bytes = patch_bytes(changes.count(), key.len() + value.map_or(0, <[u8]>::len));
        let undo = self.undo.is_some().then(|| old.map_or(Old::Nothing, |old| Old::Value(old.value.to_vec())));
        let (page, is_first) = (leaf.id(), newest.is_none());
        Some(Plan::Patch(Planned { page, is_first, above, header, bytes, added, undo }))
    }

    /// Notes how a patch is undone: what it has replaced is copied, for the leaf may be taken apart before.
    fn note_patch(&mut self, bucket: BucketId, key: &[u8], is_put: bool, old: Option<Old>) {
        let Some(old) = old else { return };
        let is_new = matches!(old, Old::Nothing);
        let value = if let Old::Value(value) = old { value } else { Vec::new() };
        let len = u32::try_from(value.len()).expect("what is on a leaf of one page is short");
        let loc = self.arena.push(key, &value);
        let slot = Slot::new(key, loc, Content::Value { len, is_bucket: false });
        self.note(|| {
            Undo::Patched(Box::new(match (is_put, is_new) {
                (true, true) => Undo::Inserted(bucket, slot),
                (true, false) => Undo::Replaced(bucket, slot),
                (false, _) => Undo::Removed(bucket, slot),
            }))
        });
    }

    /// Takes back the patch that was added last; whether that undoes the change of its key, whose leaf was not taken apart
    /// since.
    pub(super) fn take_patch_back(&mut self, bucket: BucketId, slot: Slot) -> bool {
        if let Some(patcher) = &mut self.spare.patcher {
            patcher.take_back();
        }
        self.leaf_on_page(bucket, slot.key(self.bytes())).is_some()
    }

    /// Adds a patch; `false` where there is no room for it.
    fn push_patch(
        &mut self,
        planned: &Planned,
        bucket: BucketId,
        changes: &mut Changes,
        entry: (&[u8], &[u8]),
    ) -> bool {
        let Some(number) = self.number_for_patch(bucket) else { return false };
        let Some(patcher) = &mut self.spare.patcher else { return false };
        if !patcher.reserve(planned.page, planned.bytes, planned.is_first) {
            return false;
        }
        let header = planned.header.by(patcher.txid, number);
        patcher.push((planned.page, planned.above), header, (changes, planned.added), entry);
        true
    }

    /// The number by which patches call a bucket, if one does.
    pub(super) fn known_number(&self, bucket: BucketId) -> Option<u32> {
        let names = &self.spare.patcher.as_ref()?.names;
        self.names_up_from(bucket).iter().rev().try_fold(0, |within, name| names.known(within, name))
    }

    /// The same; it is given one where it has none.
    fn number_for_patch(&mut self, bucket: BucketId) -> Option<u32> {
        if bucket == ROOT_BUCKET {
            return Some(0);
        }
        let known = self.spare.patcher.as_ref()?.numbers.get(bucket.0 as usize).copied().flatten();
        if known.is_some() {
            return known;
        }
        let path = self.names_up_from(bucket);
        let patcher = self.spare.patcher.as_mut().filter(|_| path.len() <= DEEPEST)?;
        let names = &mut patcher.names;
        let number = path.iter().rev().try_fold(0, |within, name| names.number(within, name))?;
        let place = bucket.0 as usize;
        if patcher.numbers.len() <= place {
            patcher.numbers.resize(place + 1, None);
        }
        patcher.numbers[place] = Some(number);
        Some(number)
    }

    /// The names that lead to a bucket, its own first.
    pub(super) fn names_up_from(&self, bucket: BucketId) -> Vec<Vec<u8>> {
        let (mut names, mut next) = (Vec::new(), self.state(bucket).parent);
        while let Some((parent, name)) = next {
            names.push(name.get(self.bytes()).to_vec());
            next = self.state(parent).parent;
        }
        names
    }

    /// The leaf to which `key` belongs, if it is still on its page. `None` also for a key before all that the branches know
    /// of: a branch would have to change for it.
    pub(super) fn leaf_on_page(&self, bucket: BucketId, key: &[u8]) -> Option<OnPage<'_>> {
        let (mut above, mut is_root) = (None, true);
        let (mut child, mut between) = match self.root(bucket) {
            Root::Tree(child) => (child, Between::ANY),
            Root::Read(page) => (Child::Page(page.id()), Between::ANY),
            Root::Inline(_) => return None,
        };
        let pages = self.pages();
        for _ in 0..MAX_DEPTH {
            child = match child {
                Child::Node(id) => {
                    let node = self.node(id);
                    above = node.page.map(|run| run.start);
                    let found = node.slots.search_between(key, between, self.bytes());
                    let at = if node.is_leaf { None } else { found.or_else(|at| node.slots.prev(at).ok_or(())).ok() }?;
                    between = node.slots.between(at, self.bytes());
                    match node.slots.get(at, self.bytes())?.content() {
                        Content::Page(id) => Child::Page(id),
                        Content::Node(id) => Child::Node(id),
                        Content::Value { .. } => return None,
                    }
                }
                Child::Page(id) => match pages.sound_page(id)? {
                    Page::Leaf(leaf) => return Some(OnPage { leaf, between, above, is_root }),
                    Page::Branch(branch) => {
                        let subtree = branch.sound_child(key, between)?;
                        if subtree.index == 0 && branch.key(0).ok()? > key {
                            return None;
                        }
                        (between, above) = (subtree.between, Some(id));
                        Child::Page(subtree.page)
                    }
                },
            };
            is_root = false;
        }
        None
    }

    /// The newest patch of a page.
    pub(crate) fn newest_patch(&self, page: Pgid) -> Option<PatchId> {
        self.spare.patcher.as_ref().and_then(|patcher| patcher.newest(page))
    }

    /// The commit is about to write these pages, of which something may be in memory that was on them before.
    pub(crate) fn forget_patches(&mut self, pages: &[Run]) {
        if let Some(patcher) = &mut self.spare.patcher {
            patcher.forget(pages);
        }
    }

    /// What the commit has done is about to be shown: `is_whole` where nothing is left in memory.
    pub(crate) fn patches_committed(&mut self, is_whole: bool) {
        let Self { spare, freed, cut_off, .. } = self;
        if let Some(patcher) = &mut spare.patcher {
            patcher.names.cut_off(cut_off);
            patcher.committed(freed, &spare.branches, is_whole);
        }
    }
}

/// The leaf of a bucket in a state to which `key` belongs.
pub(crate) fn leaf_in<'a>(pages: Pages<'a>, root: Pgid, key: &[u8]) -> Result<Option<LeafPage<'a>>> {
    let mut id = root;
    for _ in 0..MAX_DEPTH {
        match pages.page(id)? {
            Page::Leaf(leaf) => return Ok(Some(leaf)),
            Page::Branch(branch) => id = branch.search(key, Between::ANY)?.page,
        }
    }
    Ok(None)
}
