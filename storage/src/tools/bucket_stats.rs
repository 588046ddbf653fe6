//! Figures about a bucket and the buckets in it: bbolt's, to the byte.

use std::ops::ControlFlow;

use crate::Result;
use crate::format::{BranchPage, LeafPage, PAGE_HEADER};
use crate::handles::{Bucket, Tx};
use crate::tree::{Allowance, Source, View, pages_as_they_lie};

/// Pages, bytes and keys of a bucket and of all buckets in it, as bbolt counts them.
///
/// In a write transaction what was changed counts as it is in memory: a changed page as one page,
/// which commit may still split, merge or put inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BucketStats {
    /// Branch pages; one that runs on over further pages counts once.
    pub branch_pages: u64,
    /// Pages that branch pages run on over.
    pub branch_overflow_pages: u64,
    /// Leaf pages; one that runs on over further pages counts once.
    pub leaf_pages: u64,
    /// Pages that leaf pages run on over.
    pub leaf_overflow_pages: u64,
    /// Keys: those of values, and the names of buckets within buckets.
    pub keys: u64,
    /// Levels of pages, from the bucket's root to the deepest leaf of the deepest bucket in it.
    pub depth: u64,
    /// Bytes of all branch pages.
    pub branch_alloc: u64,
    /// Bytes of branch pages that hold something.
    pub branch_inuse: u64,
    /// Bytes of all leaf pages.
    pub leaf_alloc: u64,
    /// Bytes of leaf pages that hold something.
    pub leaf_inuse: u64,
    /// Buckets, the one that was asked included.
    pub buckets: u64,
    /// Buckets that lie inline in their parent's leaf.
    pub inline_buckets: u64,
    /// Bytes that inline buckets use, which are part of their parents' `leaf_inuse` too.
    pub inline_bucket_inuse: u64,
}

impl Bucket<'_> {
    /// Counts the pages, bytes and keys of this bucket and of those in it. Reads all their pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) where the file is damaged.
    pub fn stats(&self) -> Result<BucketStats> {
        let counted = self.stats_while(|_| true)?;
        Ok(counted.unwrap_or_default())
    }

    /// As [`stats`](Self::stats), for as long as `go_on` says so, which is told after each page how many bytes were read. `None`
    /// where it was stopped.
    ///
    /// Beside pages, which are not kept, it takes some megabytes, and 100 bytes for each bucket within a bucket that has pages
    /// of its own.
    ///
    /// # Errors
    /// As [`stats`](Self::stats).
    pub fn stats_while(&self, mut go_on: impl FnMut(u64) -> bool) -> Result<Option<BucketStats>> {
        let mut reached = |read| if go_on(read) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let mut count = Count::new(self.source, &mut reached);
        Ok(count.add(*self)?.is_continue().then(|| count.finish()))
    }
}

impl Tx {
    /// Counts the pages, bytes and keys of all top-level buckets whose names begin with `prefix`, and
    /// says how many buckets these are. `depth` is that of the deepest. `reached` is told how many
    /// bytes were read so far.
    ///
    /// # Errors
    /// As [`Bucket::stats`].
    pub fn bucket_stats(&self, prefix: impl AsRef<[u8]>, reached: &dyn Fn(u64)) -> Result<(u64, BucketStats)> {
        let mut told = |read| {
            reached(read);
            ControlFlow::Continue(())
        };
        let mut count = Count::new(self.source(), &mut told);
        let mut buckets = 0;
        for found in self.buckets() {
            let (name, bucket) = found?;
            if name.starts_with(prefix.as_ref()) {
                buckets += 1;
                let _: ControlFlow<()> = count.add(bucket)?;
            }
        }
        Ok((buckets, count.finish()))
    }
}

/// What was counted so far, and what there is still to be counted.
struct Count<'tx, 'r> {
    source: Source<'tx>,
    allowance: Allowance,
    stats: BucketStats,
    /// Buckets with pages of their own, with the levels above them. (Inline ones are counted where
    /// they are found: a leaf can hold a great many.)
    ahead: Vec<(Bucket<'tx>, u64)>,
    /// Bytes that were read so far, and who wants to know.
    read: u64,
    reached: &'r mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl<'tx, 'r> Count<'tx, 'r> {
    fn new(source: Source<'tx>, reached: &'r mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        let allowance = Allowance::new(&source);
        Self { source, allowance, stats: BucketStats::default(), ahead: Vec::new(), read: 0, reached }
    }

    /// Counts a bucket and all in it, until who waits has enough of it.
    fn add(&mut self, bucket: Bucket<'tx>) -> Result<ControlFlow<()>> {
        if bucket.is_inline() {
            self.stats.depth = self.stats.depth.max(1);
            self.stats.add_inline(&bucket)?;
            return Ok(ControlFlow::Continue(()));
        }
        self.ahead.push((bucket, 0));
        while let Some((bucket, above)) = self.ahead.pop() {
            if self.add_tree(&bucket, above)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Counts a bucket's own pages and the inline buckets in them, and notes the others.
    fn add_tree(&mut self, bucket: &Bucket<'tx>, above: u64) -> Result<ControlFlow<()>> {
        let Self { source, allowance, stats, ahead, read, reached } = self;
        let page_size = source.pages.page_size();
        let noted = ahead.len();
        let (mut depth, mut below) = (0, 0);
        stats.buckets += 1;
        let ended = pages_as_they_lie(*source, bucket.root, allowance, |view, levels| {
            depth = depth.max(levels as u64 + 1);
            *read += stats.add_page(&view, page_size)?;
            if reached(*read).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let has_buckets = view.count_buckets()? > 0;
            let mut next = if has_buckets { view.first() } else { None };
            while let Some(at) = next {
                let entry = view.entry(at)?;
                next = view.next(at);
                if !entry.is_bucket {
                    continue;
                }
                let inner = bucket.bucket_of(entry)?;
                if inner.is_inline() {
                    stats.add_inline(&inner)?;
                    below = 1;
                } else {
                    ahead.push((inner, 0));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
        .map_err(|error| bucket.located(error))?;
        for (_, levels) in &mut ahead[noted..] {
            *levels = above + depth;
        }
        stats.depth = stats.depth.max(above + depth + below);
        Ok(ended)
    }

    fn finish(self) -> BucketStats {
        let page_size = self.source.pages.page_size() as u64;
        let stats = self.stats;
        BucketStats {
            branch_alloc: (stats.branch_pages + stats.branch_overflow_pages) * page_size,
            leaf_alloc: (stats.leaf_pages + stats.leaf_overflow_pages) * page_size,
            ..stats
        }
    }
}

impl BucketStats {
    /// Counts a page of a tree; returns its bytes.
    fn add_page(&mut self, view: &View<'_>, page_size: usize) -> Result<u64> {
        let (used, size) = extent(view)?;
        let overflow = size.div_ceil(page_size).saturating_sub(1) as u64;
        if view.is_leaf() {
            self.keys += view.len() as u64;
            self.leaf_pages += 1;
            self.leaf_overflow_pages += overflow;
            self.leaf_inuse += used as u64;
        } else {
            self.branch_pages += 1;
            self.branch_overflow_pages += overflow;
            self.branch_inuse += used as u64;
        }
        Ok(size as u64)
    }

    /// Counts an inline bucket. Its own entries are keys, even if they are buckets: as in bbolt, which
    /// never puts a bucket into an inline one.
    fn add_inline(&mut self, bucket: &Bucket<'_>) -> Result<()> {
        let view = bucket.source.root(bucket.root)?;
        let (used, _) = extent(&view).map_err(|error| bucket.located(error))?;
        self.buckets += 1;
        self.inline_buckets += 1;
        self.keys += view.len() as u64;
        self.inline_bucket_inuse += used as u64;
        Ok(())
    }
}

/// Bytes of a page that hold something, and all bytes of it.
fn extent(view: &View<'_>) -> Result<(usize, usize)> {
    Ok(match view {
        View::Leaf(leaf) => (used_by_leaf(leaf)?, leaf.bytes().len()),
        View::Branch(branch) => (used_by_branch(branch)?, branch.bytes().len()),
        View::Node(node, _) => (node.size(), node.size()),
    })
}

/// Up to where the last element's data reaches: writers leave no gaps before it.
fn used_by_leaf(leaf: &LeafPage<'_>) -> Result<usize> {
    if let Some(patch) = leaf.patch() {
        return Ok(patch.size());
    }
    let Some(last) = leaf.len().checked_sub(1) else { return Ok(PAGE_HEADER) };
    let entry = leaf.entry(last)?;
    Ok(leaf.offset_of(entry.key) + entry.key.len() + entry.value.len())
}

fn used_by_branch(branch: &BranchPage<'_>) -> Result<usize> {
    let key = branch.key(branch.len() - 1)?;
    Ok(branch.offset_of(key) + key.len())
}

#[cfg(test)]
mod tests {
    use crate::{Options, Result};

    #[test]
    fn counting_stops_when_nobody_waits_any_more() -> Result<()> {
        let db = Options::new().open_in_memory()?;
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..1000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [7; 100]))
        })?;
        let tx = db.begin()?;
        let bucket = tx.bucket("b")?;
        let all = bucket.stats()?;
        assert_eq!(bucket.stats_while(|_| true)?, Some(all));
        let (mut pages, most) = (0, all.leaf_pages / 2);
        let stopped = bucket.stats_while(|_| {
            pages += 1;
            pages < most
        });
        assert_eq!((stopped?, pages), (None, most));
        Ok(())
    }
}
