//! One way to read, whether a page is still as the file has it or a write transaction has taken it
//! apart. Everything that walks the tree goes through here.

use super::NodeId;
use super::arena::Bytes;
use super::node::Node;
use super::slots::{At, Content};
use super::work::Work;
use crate::base::BucketPath;
use crate::format::{Between, BranchPage, LeafEntry, LeafPage, Page, Pgid};
use crate::pages::{MAX_DEPTH, Pages};
use crate::{Error, Result};

/// What a transaction sees: a snapshot's pages, and over them what the write transaction changed.
#[derive(Clone, Copy)]
pub(crate) struct Source<'tx> {
    pub(crate) pages: Pages<'tx>,
    pub(crate) work: Option<&'tx Work>,
}

/// Where a subtree starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    Page(Pgid),
    Node(NodeId),
}

/// Where a bucket's tree starts.
#[derive(Clone, Copy)]
pub(crate) enum Root<'tx> {
    Tree(Child),
    /// Its first page, which was read when the bucket was opened by its name.
    Read(Page<'tx>),
    Inline(LeafPage<'tx>),
}

/// A page or a node, to be read.
#[derive(Clone, Copy)]
pub(crate) enum View<'tx> {
    Leaf(LeafPage<'tx>),
    Branch(BranchPage<'tx>),
    Node(&'tx Node, Bytes<'tx>),
}

impl<'tx> Source<'tx> {
    pub(crate) fn view(&self, child: Child) -> Result<View<'tx>> {
        match (child, self.work) {
            (Child::Node(id), Some(work)) => Ok(View::Node(work.node(id), work.bytes())),
            (Child::Node(_), None) => Err(Error::corrupt(0, "a read transaction met a node")),
            (Child::Page(id), _) => self.pages.page(id).map(View::from),
        }
    }

    /// The tree that page `id` begins, which is read now, so that nobody who looks something up has to.
    #[inline]
    pub(crate) fn tree(&self, id: Pgid) -> Root<'tx> {
        self.pages.sound_page(id).map_or(Root::Tree(Child::Page(id)), Root::Read)
    }

    pub(crate) fn root(&self, root: Root<'tx>) -> Result<View<'tx>> {
        match root {
            Root::Tree(child) => self.view(child),
            Root::Read(page) => Ok(page.into()),
            Root::Inline(leaf) => Ok(View::Leaf(leaf)),
        }
    }

    /// An error of the bucket at `root` names it, with what `wrap` puts around it, and says on which page an inline
    /// bucket lies, unless it does so already.
    #[cold]
    pub(crate) fn located(&self, root: Root<'tx>, mut error: Error, wrap: impl FnOnce(&mut BucketPath)) -> Error {
        let Some(place) = error.place_mut() else { return error };
        if place.is_empty() {
            wrap(place);
        }
        if let (Error::Corrupt { page: page @ 0, .. }, Root::Inline(leaf)) = (&mut error, root) {
            *page = self.pages.page_of(leaf.bytes());
        }
        error
    }

    /// The entry of exactly this key.
    pub(crate) fn find(&self, root: Root<'tx>, key: &[u8]) -> Result<Option<LeafEntry<'tx>>> {
        self.find_telling(root, key, Between::ANY, |_| ())
    }

    /// The same, where `between` is known of the keys; `visit` is told every page on the way, none for an inline bucket.
    pub(crate) fn find_telling(
        &self,
        root: Root<'tx>,
        key: &[u8],
        mut between: Between,
        mut visit: impl FnMut(Pgid),
    ) -> Result<Option<LeafEntry<'tx>>> {
        let (mut child, mut read) = match root {
            Root::Tree(child) => (child, None),
            Root::Read(page) => (Child::Page(page.id()), Some(page)),
            Root::Inline(leaf) => return leaf.find(key, Between::ANY),
        };
        for _ in 0..MAX_DEPTH {
            match child {
                Child::Page(id) => {
                    visit(id);
                    match read.take().or_else(|| self.pages.sound_page(id)) {
                        Some(Page::Leaf(leaf)) => return leaf.find(key, between),
                        Some(Page::Branch(branch)) => {
                            let Some(subtree) = branch.sound_child(key, between) else { return Err(branch.fault()) };
                            (child, between) = (Child::Page(subtree.page), subtree.between);
                        }
                        None => return Err(self.pages.fault(id)),
                    }
                }
                Child::Node(_) => {
                    let view = self.view(child)?;
                    visit(view.page());
                    let Some(at) = view.seek(key, &mut between)? else { return Ok(None) };
                    if view.is_leaf() {
                        return Ok(Some(view.entry(at)?).filter(|entry| entry.key == key));
                    }
                    child = view.child(at)?;
                }
            }
        }
        Err(too_deep(&self.view(child)?))
    }
}

impl<'tx> From<Page<'tx>> for View<'tx> {
    fn from(page: Page<'tx>) -> Self {
        match page {
            Page::Leaf(leaf) => Self::Leaf(leaf),
            Page::Branch(branch) => Self::Branch(branch),
        }
    }
}

impl<'tx> View<'tx> {
    /// The page it is or was made of; 0 for a new node.
    pub(crate) fn page(&self) -> Pgid {
        match self {
            Self::Leaf(leaf) => leaf.id(),
            Self::Branch(branch) => branch.id(),
            Self::Node(node, _) => node.page.map_or(0, |run| run.start),
        }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        match self {
            Self::Leaf(_) => true,
            Self::Branch(_) => false,
            Self::Node(node, _) => node.is_leaf,
        }
    }

    /// Entries of a leaf, children of a branch.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Branch(branch) => branch.len(),
            Self::Node(node, _) => node.slots.len(),
        }
    }

    /// How many of its entries are buckets; of a branch, none.
    pub(crate) fn count_buckets(&self) -> Result<u64> {
        match self {
            Self::Leaf(leaf) => Ok(leaf.buckets() as u64),
            Self::Branch(_) => Ok(0),
            Self::Node(..) if !self.is_leaf() => Ok(0),
            Self::Node(..) => {
                let (mut count, mut next) = (0, self.first());
                while let Some(at) = next {
                    count += u64::from(self.entry(at)?.is_bucket);
                    next = self.next(at);
                }
                Ok(count)
            }
        }
    }

    pub(crate) fn first(&self) -> Option<At> {
        match self {
            Self::Node(node, _) => node.slots.first(),
            page => (page.len() > 0).then_some(in_page(0)),
        }
    }

    pub(crate) fn last(&self) -> Option<At> {
        match self {
            Self::Node(node, _) => node.slots.last(),
            page => page.len().checked_sub(1).map(in_page),
        }
    }

    pub(crate) fn next(&self, at: At) -> Option<At> {
        match self {
            Self::Node(node, _) => node.slots.next(at),
            page => ((at.index as usize + 1) < page.len()).then_some(At { chunk: 0, index: at.index + 1 }),
        }
    }

    pub(crate) fn prev(&self, at: At) -> Option<At> {
        match self {
            Self::Node(node, _) => node.slots.prev(at),
            _ => at.index.checked_sub(1).map(|index| At { chunk: 0, index }),
        }
    }

    /// In a leaf: the first entry whose key is not below `key`. In a branch: the child to go to. `between` is what is
    /// known of the keys here, and then of the child's.
    pub(crate) fn seek(&self, key: &[u8], between: &mut Between) -> Result<Option<At>> {
        match self {
            Self::Leaf(leaf) => {
                let (Ok(index) | Err(index)) = leaf.search(key, *between)?;
                Ok((index < leaf.len()).then_some(in_page(index)))
            }
            Self::Branch(branch) => {
                let subtree = branch.search(key, *between)?;
                *between = subtree.between;
                Ok(Some(in_page(subtree.index)))
            }
            Self::Node(node, bytes) if node.is_leaf => {
                let (Ok(at) | Err(at)) = node.slots.search(key, *bytes);
                Ok(node.slots.settle(at))
            }
            Self::Node(node, bytes) => Ok(node.child_for(key, *bytes)),
        }
    }

    /// The entry of a leaf.
    pub(crate) fn entry(&self, at: At) -> Result<LeafEntry<'tx>> {
        match self {
            Self::Leaf(leaf) => leaf.entry(at.index as usize),
            Self::Branch(branch) => Err(Error::corrupt(branch.id(), "a leaf page is expected, it is a branch")),
            Self::Node(node, bytes) => {
                let entry = node.slots.entry(at, *bytes);
                entry.ok_or_else(|| Error::corrupt(self.page(), "a leaf entry is expected"))
            }
        }
    }

    /// The child of a branch.
    pub(crate) fn child(&self, at: At) -> Result<Child> {
        match self {
            Self::Leaf(leaf) => Err(Error::corrupt(leaf.id(), "a branch page is expected, it is a leaf")),
            Self::Branch(branch) => branch.child(at.index as usize).map(Child::Page),
            Self::Node(node, bytes) => match node.slots.get(at, *bytes).map(|slot| slot.content()) {
                Some(Content::Page(id)) => Ok(Child::Page(id)),
                Some(Content::Node(id)) => Ok(Child::Node(id)),
                _ => Err(Error::corrupt(self.page(), "a branch entry is expected")),
            },
        }
    }
}

/// A place in a page.
pub(crate) fn in_page(index: usize) -> At {
    At { chunk: 0, index: u32::try_from(index).expect("a page has at most 65,535 elements") }
}

#[cold]
pub(crate) fn too_deep(view: &View<'_>) -> Error {
    Error::corrupt(view.page(), format!("the tree is deeper than {MAX_DEPTH} levels: it goes in circles"))
}

#[cfg(test)]
mod tests {
    use crate::{Error, Options};

    /// Trees of several levels, with keys that lie evenly, unevenly, and behind what all have in common.
    #[test]
    fn every_key_is_found_whatever_its_shape_and_what_is_not_there_is_not() -> crate::Result<()> {
        type Shape = fn(u64) -> Vec<u8>;
        let shapes: [(&str, Shape); 6] = [
            ("integers", |n| (n * 2).to_be_bytes().to_vec()),
            ("spread", |n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec()),
            ("text", |n| format!("user:{n:010}:name").into_bytes()),
            ("of many lengths", |n| format!("{:x}", n * n).into_bytes()),
            ("in clumps", |n| [&(n / 1000).to_le_bytes()[..], &(n % 1000).to_be_bytes()].concat()),
            ("long and alike", |n| [&[b'k'; 300][..], &n.to_be_bytes(), &[0; 20]].concat()),
        ];
        let db = Options::new().open_in_memory()?;
        for (name, key) in shapes {
            db.update(|tx| {
                let mut bucket = tx.create_bucket(name)?;
                (0..10_000).try_for_each(|n| bucket.put(key(n), n.to_be_bytes()))
            })?;
            db.view(|tx| {
                let bucket = tx.bucket(name)?;
                for n in 0..10_000 {
                    let key = key(n);
                    assert_eq!(bucket.get(&key)?, Some(&n.to_be_bytes()[..]), "{name}: {n}");
                    assert_eq!(bucket.cursor().seek(&key)?.map(|(found, _)| found), Some(&key[..]), "{name}: {n}");
                    for gap in [[&key[..], b"\0"].concat(), key[..key.len() - 1].to_vec()] {
                        let next = bucket.cursor().seek(&gap)?;
                        assert!(next.is_none_or(|(found, _)| found >= &gap[..]), "{name}: {n}");
                        assert_eq!(bucket.get(&gap)?.is_some(), next.is_some_and(|(found, _)| found == gap));
                    }
                }
                assert_eq!((bucket.get(b"")?, bucket.get([0xff; 400])?), (None, None), "{name}");
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }
}
