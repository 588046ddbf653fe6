//! One way to read, whether a page is still as the file has it or a write transaction has taken it
//! apart. Everything that walks the tree goes through here.

use super::NodeId;
use super::arena::Bytes;
use super::node::Node;
use super::pages::{MAX_DEPTH, Pages};
use super::slots::{At, Content};
use super::work::Work;
use crate::format::{BranchPage, LeafEntry, LeafPage, Page, Pgid};
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
            (Child::Page(id), _) => Ok(match self.pages.page(id)? {
                Page::Leaf(leaf) => View::Leaf(leaf),
                Page::Branch(branch) => View::Branch(branch),
            }),
        }
    }

    pub(crate) fn root(&self, root: Root<'tx>) -> Result<View<'tx>> {
        match root {
            Root::Tree(child) => self.view(child),
            Root::Inline(leaf) => Ok(View::Leaf(leaf)),
        }
    }

    /// The entry of exactly this key.
    pub(crate) fn find(&self, root: Root<'tx>, key: &[u8]) -> Result<Option<LeafEntry<'tx>>> {
        self.find_telling(root, key, |_| ())
    }

    /// The same; `visit` is told every page on the way, none for an inline bucket.
    pub(crate) fn find_telling(
        &self,
        root: Root<'tx>,
        key: &[u8],
        mut visit: impl FnMut(Pgid),
    ) -> Result<Option<LeafEntry<'tx>>> {
        let mut view = self.root(root)?;
        let inline = matches!(root, Root::Inline(_));
        for _ in 0..MAX_DEPTH {
            if !inline {
                visit(view.page());
            }
            match view {
                View::Leaf(leaf) => return leaf.search(key)?.ok().map(|index| leaf.entry(index)).transpose(),
                View::Branch(branch) => view = self.view(Child::Page(branch.child(branch.search(key)?)?))?,
                View::Node(node, bytes) if node.is_leaf => {
                    return node.slots.search(key, bytes).ok().map(|at| view.entry(at)).transpose();
                }
                View::Node(node, bytes) => match node.child_for(key, bytes) {
                    Some(at) => view = self.view(view.child(at)?)?,
                    None => return Ok(None),
                },
            }
        }
        Err(too_deep(&view))
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
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.len(),
            Self::Branch(branch) => branch.len(),
            Self::Node(node, _) => node.slots.len(),
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

    /// In a leaf: the first entry whose key is not below `key`. In a branch: the child to go to.
    pub(crate) fn seek(&self, key: &[u8]) -> Result<Option<At>> {
        match self {
            Self::Leaf(leaf) => {
                let (Ok(index) | Err(index)) = leaf.search(key)?;
                Ok((index < leaf.len()).then_some(in_page(index)))
            }
            Self::Branch(branch) => Ok(Some(in_page(branch.search(key)?))),
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
