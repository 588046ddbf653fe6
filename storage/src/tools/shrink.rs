//! Making a file smaller while it is in use.
//!
//! Write transactions of bounded size rewrite what lies above a target mark, and the lowest free
//! runs take it. Then the high-water mark is lowered over the free pages at the end, in both metas,
//! and the file is cut. Readers and writers go on between the steps; nothing is ever copied to
//! another file.

mod step;

use std::cmp::Reverse;
use std::rc::Rc;

use crate::format::{LeafPage, Page, Pgid, bucket_value};
use crate::handles::{Db, Tx};
use crate::pages::{PageSet, Spans};
use crate::{Durability, Error, Result};
use step::Step;

/// Pages that one transaction moves at the most, so that other writers wait for none of them long.
const STEP: usize = 1000;
/// Places that one look over the tree collects at the most: some megabytes of keys.
const ROUND: usize = 50_000;

/// Commits after which the mark must have settled: what is free is known after the first, both metas
/// are written by the third; other writers may raise it in between.
const MOST_LOWERINGS: usize = 8;

/// What [`Db::shrink`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrunk {
    /// Length of the file before, in bytes.
    pub before: u64,
    /// Length of the file after.
    pub after: u64,
    /// Pages that were moved to lower places.
    pub moved: u64,
}

/// A page that lies too high, by a key that leads through it.
struct Place {
    bucket: Option<Rc<Nested>>,
    key: Vec<u8>,
    /// How many pages it takes.
    pages: u64,
}

impl Place {
    /// How many places are moved with this one, which is the first of them. A commit writes the pages of all buckets around
    /// what it changes: deep down, steps of one length would write those again and again.
    fn step(&self) -> usize {
        self.bucket.as_ref().map_or(0, |bucket| bucket.depth).max(STEP)
    }
}

/// A bucket on the way to a place, and its parent.
struct Nested {
    parent: Option<Rc<Nested>>,
    name: Vec<u8>,
    /// How many buckets are around it.
    depth: usize,
}

/// One after the other: buckets may be nested deeper than a stack is.
impl Drop for Nested {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut bucket) = next.and_then(Rc::into_inner) {
            next = bucket.parent.take();
        }
    }
}

impl Nested {
    fn new(parent: Option<Rc<Self>>, name: Vec<u8>) -> Self {
        let depth = parent.as_ref().map_or(0, |parent| parent.depth + 1);
        Self { parent, name, depth }
    }
}

/// As long as it lives, commits take the lowest free pages, so that nothing new comes to lie high.
struct KeepLow<'a>(&'a Db);

impl<'a> KeepLow<'a> {
    fn new(db: &'a Db) -> Self {
        db.count_shrinking(1);
        Self(db)
    }
}

impl Drop for KeepLow<'_> {
    fn drop(&mut self) {
        self.0.count_shrinking(-1);
    }
}

impl Db {
    /// Makes the file as small as the free pages in it allow, while readers and writers go on: it
    /// moves pages from the end of the file into free pages before them, and cuts the file.
    ///
    /// It stops where no free run is large enough, and does not cut what an open read transaction
    /// can still see: call it again later, or see [`Shrunk`] for what was reached. Interrupted at
    /// any point it leaves a sound file. It costs a rewrite of what is moved, and as many commits
    /// as it takes in steps of 1,000 pages, whatever the database's durability.
    ///
    /// # Errors
    /// As [`Db::begin_mut`] and [`TxMut::commit`](crate::TxMut::commit); [`Error::Corrupt`] where the file is damaged.
    pub fn shrink(&self) -> Result<Shrunk> {
        let before = self.file_len()?;
        // Whoever may not write may not shrink. What was deleted makes room.
        while self.begin_mut()?.has_detached() {}
        // What the state on the disk still needs is not free.
        self.checkpoint()?;
        let _low = KeepLow::new(self);
        let mut moved = 0;
        let mut fewest = usize::MAX;
        loop {
            let target = self.target_mark()?;
            let places = high_places(&self.begin()?, target)?;
            // A rewrite takes along the low pages on the way to a high one, and they may come to lie high: where a
            // round does not leave fewer, the next ones could move the same pages up and down for ever.
            if places.len() >= fewest {
                break;
            }
            // A full list says nothing of how many more there are.
            if places.len() < ROUND {
                fewest = places.len();
            }
            let mut moved_now = 0;
            let mut left = &places[..];
            while let Some(first) = left.first() {
                let (step, later) = left.split_at(first.step().min(left.len()));
                moved_now += Step::new(self.begin_mut()?, target).move_down(step)?;
                left = later;
                std::thread::yield_now();
            }
            moved += moved_now;
            if moved_now == 0 {
                break;
            }
        }
        // Where pages were moved by commits that are not synced, the state on the disk still needs the old places.
        self.checkpoint()?;
        // At least once for each meta page: neither may speak of pages beyond the file's end.
        for _ in 0..MOST_LOWERINGS {
            let mut tx = self.begin_mut()?;
            tx.work.lower_mark = true;
            tx.commit_with(Durability::Always)?;
            if self.metas_agree_on_the_mark() {
                break;
            }
        }
        self.cut_file()?;
        Ok(Shrunk { before, after: self.file_len()?, moved })
    }

    /// Where the high-water mark could be if every page in use lay below it.
    fn target_mark(&self) -> Result<Pgid> {
        let tx = self.begin_mut()?;
        let free = tx.free_spans().map_or(0, Spans::pages);
        Ok(tx.work.pages().mark().saturating_sub(free).max(4))
    }
}

/// Collects leaf pages, and branch pages, that reach beyond `target`.
fn high_places(tx: &Tx, target: Pgid) -> Result<Vec<Place>> {
    let pages = tx.source().pages;
    let seen = PageSet::new(pages.mark());
    let mut places = Vec::new();
    let mut ahead: Vec<(Pgid, Option<Rc<Nested>>)> = vec![(tx.snapshot().meta.root, None)];
    while let Some((id, bucket)) = ahead.pop() {
        if places.len() >= ROUND {
            break;
        }
        let (run, bytes) = pages.bytes(id)?;
        if !seen.insert(id) {
            return Err(Error::corrupt(id, "it is referenced twice"));
        }
        let page = Page::parse(id, bytes)?;
        if run.start + run.len > target {
            let first = if page.len() == 0 { &[] } else { page.key(0)? };
            places.push(Place { bucket: bucket.clone(), key: first.to_vec(), pages: run.len });
        }
        match page {
            Page::Branch(branch) => {
                for index in 0..branch.len() {
                    ahead.push((branch.child(index)?, bucket.clone()));
                }
            }
            Page::Leaf(leaf) => buckets_in(leaf, id, bucket.as_ref(), &mut ahead)?,
        }
    }
    // Long runs first: single pages would break up what they need.
    places.sort_by_key(|place| Reverse(place.pages));
    Ok(places)
}

/// Adds the buckets of a leaf that have pages of their own. (An inline one lies within the leaf.)
fn buckets_in(
    leaf: LeafPage<'_>,
    page: Pgid,
    parent: Option<&Rc<Nested>>,
    ahead: &mut Vec<(Pgid, Option<Rc<Nested>>)>,
) -> Result<()> {
    for index in 0..leaf.len() {
        let entry = leaf.entry(index)?;
        if entry.is_bucket
            && let (header, None) = bucket_value(page, entry.value)?
        {
            let nested = Nested::new(parent.cloned(), entry.key.to_vec());
            ahead.push((header.root.get(), Some(Rc::new(nested))));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::Nested;
    use crate::{Db, Options};

    fn key(number: u32) -> [u8; 4] {
        number.to_be_bytes()
    }

    /// 2,000 keys in two buckets, one of which is deleted again.
    fn half_empty(db: &Db) {
        db.update(|tx| {
            tx.create_bucket("gone")?.put("large", vec![1; 400_000])?;
            let mut kept = tx.create_bucket("kept")?;
            for number in 0..2000 {
                kept.put(key(number), vec![2; 100])?;
            }
            let mut inner = kept.create_bucket("inner")?;
            for number in 0..500 {
                inner.put(key(number), vec![3; 200])?;
            }
            inner.put("overflow", vec![4; 20_000])
        })
        .unwrap();
        db.update(|tx| tx.delete_bucket("gone")).unwrap();
    }

    fn assert_all_there(db: &Db) {
        let tx = db.begin().unwrap();
        let kept = tx.bucket("kept").unwrap();
        assert_eq!(kept.iter().count(), 2001);
        let inner = kept.bucket("inner").unwrap();
        assert!((0..500).all(|number| inner.get(key(number)).unwrap() == Some(&[3; 200])));
        assert_eq!(inner.get("overflow").unwrap().map(<[u8]>::len), Some(20_000));
        assert_eq!(tx.check().unwrap(), []);
    }

    /// With one meta damaged, the other one must still lead to everything.
    fn assert_either_meta_opens(file: &std::path::Path) {
        for meta in 0..2 {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[meta * 4096 + 20] ^= 0xFF;
            let damaged = file.with_extension("damaged");
            std::fs::write(&damaged, bytes).unwrap();
            assert_all_there(&Db::open(&damaged).unwrap());
        }
    }

    #[test]
    fn a_half_empty_file_becomes_about_as_small_as_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = Db::open(&file).unwrap();
        half_empty(&db);
        let used = 4096 * (db.stats().pages - db.stats().free_pages.unwrap() - db.stats().pending_pages.unwrap());
        let shrunk = db.shrink().unwrap();
        assert_eq!(shrunk.after, std::fs::metadata(&file).unwrap().len());
        assert!(shrunk.after < shrunk.before && shrunk.after <= used + 16 * 4096, "{shrunk:?}, {used} used");
        assert_all_there(&db);
        let again = db.shrink().unwrap();
        assert!(again.after <= shrunk.after, "{again:?} after {shrunk:?}");
        drop(db);
        let db = Db::open(&file).unwrap();
        assert_all_there(&db);
        db.update(|tx| tx.create_bucket("more")?.put("k", vec![0; 1_000_000])).unwrap();
        assert_all_there(&db);
    }

    #[test]
    fn either_meta_alone_opens_the_file_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = Db::open(&file).unwrap();
        half_empty(&db);
        db.shrink().unwrap();
        drop(db);
        assert_either_meta_opens(&file);
    }

    #[test]
    fn commits_that_are_not_synced_are_taken_along() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = Options::new().durability(crate::Durability::Never).open(&file).unwrap();
        half_empty(&db);
        let shrunk = db.shrink().unwrap();
        assert!(shrunk.after < shrunk.before, "{shrunk:?}");
        assert_either_meta_opens(&file);
    }

    #[test]
    fn what_a_reader_can_see_is_not_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("db");
        let db = Db::open(&file).unwrap();
        half_empty(&db);
        let reader = db.begin().unwrap();
        let shrunk = db.shrink().unwrap();
        assert!(shrunk.after >= reader.size());
        assert_eq!(reader.bucket("kept").unwrap().iter().flatten().count(), 2001);
        assert_eq!(reader.check().unwrap(), []);
        drop(reader);
        let later = db.shrink().unwrap();
        assert!(later.after < shrunk.after, "{later:?} after {shrunk:?}");
        assert_all_there(&db);
    }

    #[test]
    fn buckets_nested_deeper_than_a_stack_is_are_let_go() {
        let nest = |parent, _| Some(Rc::new(Nested::new(parent, Vec::new())));
        let deepest = (0..=1_000_000).fold(None, nest);
        assert_eq!(deepest.as_ref().map(|bucket| bucket.depth), Some(1_000_000));
        drop(deepest);
    }

    #[test]
    fn a_database_in_memory_can_be_shrunk_too() {
        let db = Options::new().open_in_memory().unwrap();
        half_empty(&db);
        let shrunk = db.shrink().unwrap();
        assert!(shrunk.after < shrunk.before);
        assert_all_there(&db);
        half_empty_again(&db);
        assert_all_there(&db);
    }

    fn half_empty_again(db: &Db) {
        db.update(|tx| tx.create_bucket("more")?.put("large", vec![1; 300_000])).unwrap();
        db.update(|tx| tx.delete_bucket("more")).unwrap();
    }
}
