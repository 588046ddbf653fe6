//! One entry of a node, small and without a lifetime: where its bytes lie, and what it stands for.

use std::cmp::Ordering;

use crate::Result;
use crate::format::{ELEMENT, LeafEntry, Page, Pgid, prefix};
use crate::tree::NodeId;
use crate::tree::arena::{Bytes, Loc};

/// What a slot stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Leaf: a value, or a bucket's header and inline page. It lies behind the key.
    Value { len: u32, is_bucket: bool },
    /// Branch: a child that is as it was.
    Page(Pgid),
    /// Branch: a child that this transaction has taken apart.
    Node(NodeId),
}

/// A [`Content`]'s variant: apart from its number, so that a slot takes 32 bytes.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Value,
    Bucket,
    Page,
    Node,
}

/// One entry: where its key lies, behind it its value, and what it stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// The key's first 8 bytes as an integer: most comparisons end here, without touching the key.
    pub(super) prefix: u64,
    key: Loc,
    number: u64,
    key_len: u32,
    kind: Kind,
}

impl Slot {
    /// The entry whose key lies at `loc`, and its value, if it has one, right behind it.
    pub(crate) fn new(key: &[u8], loc: Loc, content: Content) -> Self {
        let key_len = u32::try_from(key.len()).expect("keys come from pages or are at most 32,768 bytes long");
        Self { prefix: prefix(key), key: loc, number: 0, key_len, kind: Kind::Value }.with(content)
    }

    /// Element `index` of a page, which lies at `loc`.
    pub(super) fn of_page(page: &Page<'_>, loc: Loc, index: usize) -> Result<Self> {
        let (key, content) = match page {
            Page::Leaf(leaf) => {
                let LeafEntry { key, value, is_bucket } = leaf.entry(index)?;
                let len = u32::try_from(value.len()).expect("vsize is a u32");
                (key, Content::Value { len, is_bucket })
            }
            Page::Branch(branch) => (branch.key(index)?, Content::Page(branch.child(index)?)),
        };
        Ok(Self::new(key, loc.plus(page.offset_of(key)), content))
    }

    /// The same key, standing for something else.
    pub(crate) fn with(self, content: Content) -> Self {
        let (number, kind) = match content {
            Content::Value { len, is_bucket } => (len.into(), if is_bucket { Kind::Bucket } else { Kind::Value }),
            Content::Page(id) => (id, Kind::Page),
            Content::Node(id) => (id.0.into(), Kind::Node),
        };
        Self { number, kind, ..self }
    }

    pub(crate) fn content(&self) -> Content {
        match self.kind {
            Kind::Value => Content::Value { len: self.number as u32, is_bucket: false },
            Kind::Bucket => Content::Value { len: self.number as u32, is_bucket: true },
            Kind::Page => Content::Page(self.number),
            Kind::Node => Content::Node(NodeId(self.number as u32)),
        }
    }

    pub(crate) fn key<'a>(&self, bytes: Bytes<'a>) -> &'a [u8] {
        bytes.at(self.key, self.key_len as usize)
    }

    /// The key's length, and its bytes with those of the value behind it.
    pub(crate) fn data<'a>(&self, bytes: Bytes<'a>) -> (usize, &'a [u8]) {
        let key_len = self.key_len as usize;
        (key_len, bytes.at(self.key, key_len + self.value_len()))
    }

    /// The entry that it stands for in a leaf.
    pub(crate) fn entry<'a>(&self, bytes: Bytes<'a>) -> Option<LeafEntry<'a>> {
        let Content::Value { is_bucket, .. } = self.content() else { return None };
        let (key_len, data) = self.data(bytes);
        let (key, value) = data.split_at(key_len);
        Some(LeafEntry { key, value, is_bucket })
    }

    /// Bytes of it on a page: the element, the key and the value.
    pub(crate) fn size(&self) -> usize {
        ELEMENT + self.key_len as usize + self.value_len()
    }

    fn value_len(&self) -> usize {
        match self.kind {
            Kind::Value | Kind::Bucket => self.number as usize,
            Kind::Page | Kind::Node => 0,
        }
    }

    /// How its key stands to `wanted`, whose prefix is `wanted_prefix`.
    pub(super) fn cmp(&self, bytes: Bytes<'_>, wanted_prefix: u64, wanted: &[u8]) -> Ordering {
        self.prefix.cmp(&wanted_prefix).then_with(|| {
            if self.key_len <= 8 && wanted.len() <= 8 {
                // Equal prefixes: at most trailing zero bytes differ, which the length counts.
                (self.key_len as usize).cmp(&wanted.len())
            } else {
                self.key(bytes).cmp(wanted)
            }
        })
    }
}
