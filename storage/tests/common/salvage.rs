//! What can be expected of a repair, told by a reader of the format of its own: every bucket and value of a sound file,
//! with the pages that lead to it. It trusts what it reads, and shares nothing with the engine.

use super::model::{BucketPath, Item, Model};
use std::collections::{BTreeMap, BTreeSet};

const PAGE_HEADER: usize = 16;
const ELEMENT: usize = 16;
const LEAF: u64 = 2;
const BRANCH: u64 = 1;

/// A bucket (its sequence) or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Bucket(u64),
    Value(Vec<u8>),
}

/// Something in a file, and all pages without which it cannot be had.
#[derive(Clone, Debug)]
pub struct Piece {
    pub path: BucketPath,
    pub key: Vec<u8>,
    /// Where the key is in the file, in bytes.
    pub key_place: std::ops::Range<usize>,
    pub content: Content,
    pub pages: BTreeSet<u64>,
    /// Those that its leaf and the pages above run on over: they hold keys and values, which nothing in the format can
    /// check.
    pub data_pages: BTreeSet<u64>,
}

impl Piece {
    /// Whether bytes were damaged that nothing in the format can check, and only such bytes.
    fn is_data_damaged(&self, damaged: &BTreeSet<u64>) -> bool {
        let hit: BTreeSet<u64> = self.pages.intersection(damaged).copied().collect();
        !hit.is_empty() && hit.is_subset(&self.data_pages)
    }

    /// Whether its key was damaged in such a way that it is another one now.
    pub fn has_another_key(&self, bytes: &[u8], damaged: &BTreeSet<u64>) -> bool {
        self.is_data_damaged(damaged) && bytes.get(self.key_place.clone()).is_some_and(|key| key != self.key)
    }
}

/// The pages that lead somewhere, and those of them that only hold data.
#[derive(Clone, Default)]
struct Way {
    pages: BTreeSet<u64>,
    data_pages: BTreeSet<u64>,
}

/// A sound file.
pub struct Sound {
    pub bytes: Vec<u8>,
    pub page_size: usize,
    /// In the newest transaction.
    pub pieces: Vec<Piece>,
    /// In the one before it, which a repair goes back to where the newest root cannot be read.
    older: Vec<Piece>,
    /// Where the pages of inline buckets begin, in bytes.
    pub inline_pages: Vec<usize>,
    /// Every pair of key and value on any leaf, those on free pages among them.
    pub ever: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Sound {
    pub fn new(bytes: Vec<u8>, page_size: usize) -> Self {
        let (pieces, older, inline_pages, ever) = Default::default();
        let mut sound = Self { bytes, page_size, pieces, older, inline_pages, ever };
        let older_root = sound.meta_field(1 - sound.newest_meta(), 16);
        sound.bucket(older_root, &Vec::new(), &Way::default());
        sound.older = std::mem::take(&mut sound.pieces);
        sound.inline_pages.clear();
        sound.bucket(sound.root(), &Vec::new(), &Way::default());
        for page in 2..sound.pages() {
            let is_leaf = sound.number(page * page_size, 8) == page as u64
                && sound.number(page * page_size + 8, 2) == LEAF
                && sound.page(page as u64).len() + page * page_size <= sound.bytes.len();
            if is_leaf {
                sound.pairs_of(page as u64);
            }
        }
        sound
    }

    pub fn pages(&self) -> usize {
        self.bytes.len() / self.page_size
    }

    /// Pages below the newest high-water mark.
    pub fn mark(&self) -> u64 {
        self.meta_field(self.newest_meta(), 40)
    }

    pub fn root(&self) -> u64 {
        self.meta_field(self.newest_meta(), 16)
    }

    /// The slot of the newest meta.
    pub fn newest_meta(&self) -> usize {
        usize::from(self.meta_field(1, 48) > self.meta_field(0, 48))
    }

    /// A field of a meta, at so many bytes from its magic number.
    pub fn meta_field(&self, meta: usize, at: usize) -> u64 {
        self.number(meta * self.page_size + PAGE_HEADER + at, 8)
    }

    /// All pages that lead to anything.
    pub fn used(&self) -> BTreeSet<u64> {
        self.pieces.iter().flat_map(|piece| piece.pages.iter().copied()).collect()
    }

    pub fn number(&self, at: usize, width: usize) -> u64 {
        let mut number = [0; 8];
        number[..width].copy_from_slice(&self.bytes[at..at + width]);
        u64::from_le_bytes(number)
    }

    fn run(&self, page: u64) -> std::ops::Range<u64> {
        let at = usize::try_from(page).unwrap() * self.page_size;
        page..page + 1 + self.number(at + 12, 4)
    }

    fn page(&self, page: u64) -> std::ops::Range<usize> {
        let run = self.run(page);
        let place = |page: u64| usize::try_from(page).unwrap() * self.page_size;
        place(run.start)..place(run.end)
    }

    fn bucket(&mut self, root: u64, path: &BucketPath, above: &Way) {
        let at = self.page(root).start;
        let mut way = above.clone();
        way.pages.extend(self.run(root));
        way.data_pages.extend(self.run(root).skip(1));
        if self.number(at + 8, 2) == BRANCH {
            for index in 0..self.count(at) {
                let child = self.number(at + PAGE_HEADER + index * ELEMENT + 8, 8);
                self.bucket(child, path, &way);
            }
            return;
        }
        self.leaf(at, path, &way);
    }

    fn leaf(&mut self, at: usize, path: &BucketPath, way: &Way) {
        for index in 0..self.count(at) {
            let (is_bucket, key, value) = self.element(at, index);
            let key_bytes = self.bytes[key.clone()].to_vec();
            let content = if is_bucket {
                Content::Bucket(self.number(value.start + 8, 8))
            } else {
                Content::Value(self.bytes[value.clone()].to_vec())
            };
            self.pieces.push(Piece {
                path: path.clone(),
                key: key_bytes.clone(),
                key_place: key,
                content,
                pages: way.pages.clone(),
                data_pages: way.data_pages.clone(),
            });
            if is_bucket {
                let path = path.iter().cloned().chain([key_bytes]).collect();
                match self.number(value.start, 8) {
                    0 => {
                        self.inline_pages.push(value.start + 16);
                        self.leaf(value.start + 16, &path, way);
                    }
                    root => self.bucket(root, &path, way),
                }
            }
        }
    }

    fn count(&self, at: usize) -> usize {
        usize::try_from(self.number(at + 10, 2)).unwrap()
    }

    fn element(&self, at: usize, index: usize) -> (bool, std::ops::Range<usize>, std::ops::Range<usize>) {
        let element = at + PAGE_HEADER + index * ELEMENT;
        let field = |at: usize| usize::try_from(self.number(element + at, 4)).unwrap();
        let key = element + field(4);
        let value = key + field(8);
        (field(0) & 1 == 1, key..value, value..value + field(12))
    }

    /// Notes what is on a leaf, in use or not, and in the inline buckets on it.
    fn pairs_of(&mut self, page: u64) {
        let mut ahead = vec![self.page(page).start];
        while let Some(at) = ahead.pop() {
            for index in 0..self.count(at) {
                let (is_bucket, key, value) = self.element(at, index);
                if value.end > self.bytes.len() {
                    break;
                }
                if !is_bucket {
                    self.ever.insert((self.bytes[key].to_vec(), self.bytes[value].to_vec()));
                } else if self.number(value.start, 8) == 0 {
                    ahead.push(value.start + 16);
                }
            }
        }
    }

    /// What has to be in a repaired file though these pages were damaged.
    pub fn untouched<'a>(&'a self, damaged: &'a BTreeSet<u64>) -> impl Iterator<Item = &'a Piece> {
        self.pieces.iter().filter(|piece| piece.pages.is_disjoint(damaged))
    }

    /// Whether a key and its value may be new, because they are what now stands in the place of damaged ones.
    pub fn may_be_new(&self, bytes: &[u8], damaged: &BTreeSet<u64>, path: &[Vec<u8>], key: &[u8]) -> bool {
        let mut pieces =
            self.pieces.iter().chain(&self.older).filter(|piece| piece.path == path && piece.is_data_damaged(damaged));
        pieces.any(|piece| bytes.get(piece.key_place.clone()) == Some(key))
    }

    /// Pages in which some bytes differ from those of the sound file.
    pub fn damaged_pages(&self, damaged: &[u8]) -> BTreeSet<u64> {
        let pages = self.bytes.chunks(self.page_size).enumerate();
        let differ =
            pages.filter(|(page, bytes)| damaged.get(page * self.page_size..).is_none_or(|d| !d.starts_with(bytes)));
        differ.map(|(page, _)| page as u64).collect()
    }
}

/// What a model has at a path.
pub fn lookup(model: &Model, path: &[Vec<u8>], key: &[u8]) -> Option<Content> {
    Some(match model.bucket(path).ok()?.items.get(key)? {
        Item::Value(value) => Content::Value(value.clone()),
        Item::Bucket(bucket) => Content::Bucket(bucket.sequence),
    })
}

/// Every value of a model, by path and key.
pub fn values(model: &Model) -> BTreeMap<(BucketPath, Vec<u8>), Vec<u8>> {
    let mut values = BTreeMap::new();
    for path in model.bucket_paths() {
        for (key, value) in model.bucket(&path).unwrap().entries() {
            if let Some(value) = value {
                values.insert((path.clone(), key.to_vec()), value.to_vec());
            }
        }
    }
    values
}
