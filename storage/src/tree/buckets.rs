//! The buckets that a write transaction has opened for writing.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use fnv::FnvBuildHasher;

use super::arena::{Bytes, Loc};
use super::{BucketId, Fill, NodeId, ROOT_BUCKET};

/// A bucket that was opened for writing.
pub(crate) struct BucketState {
    /// Where its header stands: `None` for the root bucket, whose header is the meta's.
    pub(crate) parent: Option<(BucketId, Name)>,
    /// The page its tree starts at, as the file has it; 0 for an inline bucket.
    pub(crate) root: u64,
    pub(crate) sequence: u64,
    /// Its only page, for an inline bucket.
    pub(crate) inline: Option<(Loc, usize)>,
    /// The root, once something in the bucket was changed.
    pub(crate) root_node: Option<NodeId>,
    pub(crate) fill: Fill,
    /// It was deleted after it was opened.
    pub(crate) deleted: bool,
    /// One of the buckets in it that were opened, and the next one of its parent's, and the one before.
    child: Option<BucketId>,
    sibling: Option<BucketId>,
    newer: Option<BucketId>,
    /// Another one whose name has the same hash.
    same_hash: Option<BucketId>,
}

/// A bucket's name: the key of its entry, where that lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    loc: Loc,
    len: usize,
}

impl Name {
    pub(crate) const fn new(loc: Loc, len: usize) -> Self {
        Self { loc, len }
    }

    /// `name` lies in a page or in the arena.
    pub(crate) fn of(name: &[u8], bytes: Bytes<'_>) -> Self {
        Self::new(bytes.loc_of(name), name.len())
    }

    pub(crate) fn get<'a>(&self, bytes: Bytes<'a>) -> &'a [u8] {
        bytes.at(self.loc, self.len)
    }
}

impl BucketState {
    pub(crate) fn new(root: u64, sequence: u64, inline: Option<(Loc, usize)>, fill: Fill) -> Self {
        Self {
            parent: None,
            root,
            sequence,
            inline,
            root_node: None,
            fill,
            deleted: false,
            child: None,
            sibling: None,
            newer: None,
            same_hash: None,
        }
    }
}

/// All of them, as they lie in one another, and by their names. Emptied, it keeps its memory.
#[derive(Default)]
pub(crate) struct Buckets {
    states: Vec<BucketState>,
    /// The last one of each hash of a parent and a name; [`BucketState::same_hash`] leads to the others.
    by_name: HashMap<u64, BucketId, FnvBuildHasher>,
}

impl Buckets {
    /// Begins with the root bucket.
    pub(crate) fn begin(mut self, root: BucketState) -> Self {
        self.states.push(root);
        self
    }

    /// Without what is in it; memory for up to `most` of them is kept.
    pub(crate) fn emptied(mut self, most: usize) -> Self {
        self.states.clear();
        self.by_name.clear();
        self.states.shrink_to(most);
        self.by_name.shrink_to(most);
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &BucketState> {
        self.states.iter()
    }

    pub(crate) fn get(&self, id: BucketId) -> &BucketState {
        &self.states[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: BucketId) -> &mut BucketState {
        &mut self.states[id.0 as usize]
    }

    /// The bucket that was opened in `parent` under this name.
    pub(crate) fn opened(&self, parent: BucketId, name: &[u8], bytes: Bytes<'_>) -> Option<BucketId> {
        let mut next = self.by_name.get(&hash(parent, name)).copied();
        while let Some(id) = next {
            let state = self.get(id);
            if state.parent.is_some_and(|(above, its)| above == parent && its.get(bytes) == name) {
                return Some(id);
            }
            next = state.same_hash;
        }
        None
    }

    /// Adds one that was opened in `parent`.
    pub(crate) fn open(&mut self, mut state: BucketState, parent: BucketId, name: Name, bytes: Bytes<'_>) -> BucketId {
        let id = BucketId(u32::try_from(self.states.len()).expect("fewer than 2^32 buckets fit in memory"));
        state.parent = Some((parent, name));
        self.states.push(state);
        self.put_below(id, parent);
        self.name(id, bytes);
        id
    }

    fn put_below(&mut self, id: BucketId, parent: BucketId) {
        let sibling = self.get_mut(parent).child.replace(id);
        let state = self.get_mut(id);
        (state.sibling, state.newer) = (sibling, None);
        if let Some(sibling) = sibling {
            self.get_mut(sibling).newer = Some(id);
        }
    }

    fn take_from(&mut self, id: BucketId, parent: BucketId) {
        let BucketState { sibling, newer, .. } = *self.get(id);
        match newer {
            Some(newer) => self.get_mut(newer).sibling = sibling,
            None => self.get_mut(parent).child = sibling,
        }
        if let Some(sibling) = sibling {
            self.get_mut(sibling).newer = newer;
        }
    }

    /// From now on it is found by its name.
    pub(crate) fn name(&mut self, id: BucketId, bytes: Bytes<'_>) {
        if let Some((parent, name)) = self.get(id).parent {
            let same_hash = self.by_name.insert(hash(parent, name.get(bytes)), id);
            self.get_mut(id).same_hash = same_hash;
        }
    }

    /// From now on it is not found by its name.
    pub(crate) fn forget_name(&mut self, id: BucketId, bytes: Bytes<'_>) {
        let Some((parent, name)) = self.get(id).parent else { return };
        let hash = hash(parent, name.get(bytes));
        let rest = self.get_mut(id).same_hash.take();
        let Some(first) = self.by_name.get_mut(&hash) else { return };
        if *first == id {
            match rest {
                Some(rest) => *first = rest,
                None => drop(self.by_name.remove(&hash)),
            }
            return;
        }
        let mut before = *first;
        while let Some(next) = self.get(before).same_hash {
            if next == id {
                self.get_mut(before).same_hash = rest;
                return;
            }
            before = next;
        }
    }

    /// Those that were opened in a bucket, also those that were deleted since; the last one first.
    pub(crate) fn children(&self, id: BucketId) -> impl Iterator<Item = BucketId> + '_ {
        std::iter::successors(self.get(id).child, |child| self.get(*child).sibling)
    }

    /// Makes it one of another bucket's, of this name. Whose it was, and its name there: `None` for the root bucket, which
    /// stays where it is.
    pub(crate) fn relink(
        &mut self,
        id: BucketId,
        to: BucketId,
        name: Name,
        bytes: Bytes<'_>,
    ) -> Option<(BucketId, Name)> {
        let before @ (from, _) = self.get(id).parent?;
        self.forget_name(id, bytes);
        self.take_from(id, from);
        self.get_mut(id).parent = Some((to, name));
        self.put_below(id, to);
        self.name(id, bytes);
        Some(before)
    }

    /// Puts all of them into `order`, which is empty: the root bucket, and each after its parent.
    pub(crate) fn top_down(&self, order: &mut Vec<BucketId>) {
        order.push(ROOT_BUCKET);
        let mut next = 0;
        while let Some(&bucket) = order.get(next) {
            order.extend(self.children(bucket));
            next += 1;
        }
    }
}

fn hash(parent: BucketId, name: &[u8]) -> u64 {
    let mut hasher = FnvBuildHasher::default().build_hasher();
    parent.0.hash(&mut hasher);
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::tree::arena::Arena;

    #[test]
    fn buckets_are_found_by_their_names_and_below_their_parents_wherever_they_are_moved() {
        let db = Options::new().open_in_memory().unwrap();
        let tx = db.begin().unwrap();
        let mut arena = Arena::default();
        let names: Vec<String> = (0..100).map(|n| format!("bucket {n}")).collect();
        let locs: Vec<_> = names.iter().map(|name| arena.push(name.as_bytes(), b"")).collect();
        let bytes = Bytes { pages: tx.source().pages, arena: &arena };
        let state = || BucketState::new(0, 0, None, Fill::Auto);
        let mut buckets = Buckets::default().begin(state());
        let name = |n: usize| Name { loc: locs[n], len: names[n].len() };
        let ids: Vec<_> = (0..100).map(|n| buckets.open(state(), ROOT_BUCKET, name(n), bytes)).collect();
        let found = |buckets: &Buckets, parent, n: usize| buckets.opened(parent, names[n].as_bytes(), bytes);

        for n in (1..100).step_by(2) {
            assert_eq!(buckets.relink(ids[n], ids[n - 1], name(n), bytes).map(|before| before.0), Some(ROOT_BUCKET));
        }
        for n in 0..100 {
            let (parent, other) = if n % 2 == 0 { (ROOT_BUCKET, ids[0]) } else { (ids[n - 1], ROOT_BUCKET) };
            assert_eq!((found(&buckets, parent, n), found(&buckets, other, n)), (Some(ids[n]), None), "{n}");
        }
        let mut order = Vec::new();
        buckets.top_down(&mut order);
        assert_eq!(order.len(), 101);
        let place = |id| order.iter().position(|other| *other == id).unwrap();
        assert!((1..100).step_by(2).all(|n| place(ids[n - 1]) < place(ids[n])));

        buckets.forget_name(ids[7], bytes);
        assert_eq!(found(&buckets, ids[6], 7), None);
        buckets.name(ids[7], bytes);
        assert_eq!(found(&buckets, ids[6], 7), Some(ids[7]));

        // Another name, where it is.
        buckets.relink(ids[7], ids[6], name(9), bytes);
        assert_eq!((found(&buckets, ids[6], 7), found(&buckets, ids[6], 9)), (None, Some(ids[7])));
        order.clear();
        buckets.top_down(&mut order);
        assert_eq!(order.len(), 101);
    }

    #[test]
    fn names_with_one_hash_are_told_apart() {
        let db = Options::new().open_in_memory().unwrap();
        let tx = db.begin().unwrap();
        let mut arena = Arena::default();
        let locs = [arena.push(b"a", b""), arena.push(b"b", b""), arena.push(b"c", b"")];
        let bytes = Bytes { pages: tx.source().pages, arena: &arena };
        let state = || BucketState::new(0, 0, None, Fill::Auto);
        let mut buckets = Buckets::default().begin(state());
        let [a, b, c] = locs.map(|loc| buckets.open(state(), ROOT_BUCKET, Name { loc, len: 1 }, bytes));
        // All three are filed under the hash of "a", as names whose hashes collide are.
        buckets.by_name.retain(|hash, _| *hash == self::hash(ROOT_BUCKET, b"a"));
        buckets.by_name.values_mut().for_each(|first| *first = c);
        (buckets.get_mut(c).same_hash, buckets.get_mut(b).same_hash) = (Some(b), Some(a));
        assert_eq!(buckets.opened(ROOT_BUCKET, b"a", bytes), Some(a));
        buckets.forget_name(a, bytes);
        assert_eq!(buckets.opened(ROOT_BUCKET, b"a", bytes), None);
        assert_eq!(buckets.get(b).same_hash, None);
    }
}
