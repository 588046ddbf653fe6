//! Figures about a bucket and the buckets in it: bbolt's, to the byte.

use crate::Result;
use crate::bucket::Bucket;
use crate::format::{BranchPage, LeafPage, PAGE_HEADER};
use crate::tx::{Source, Tx, View};
use crate::walk::{Allowance, buckets_in, pages};

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
        BucketStats::of(self.source, vec![*self])
    }
}

impl Tx {
    /// Counts the pages, bytes and keys of all top-level buckets whose names begin with `prefix`, and
    /// says how many buckets these are. `depth` is that of the deepest.
    ///
    /// # Errors
    /// As [`Bucket::stats`].
    pub fn bucket_stats(&self, prefix: impl AsRef<[u8]>) -> Result<(u64, BucketStats)> {
        let named: Result<Vec<_>> = self.buckets().collect();
        let wanted = named?.into_iter().filter(|(name, _)| name.starts_with(prefix.as_ref()));
        let wanted: Vec<_> = wanted.map(|(_, bucket)| bucket).collect();
        Ok((wanted.len() as u64, BucketStats::of(self.source(), wanted)?))
    }
}

/// Buckets with their names.
type Named<'tx> = Vec<(&'tx [u8], Bucket<'tx>)>;

impl BucketStats {
    /// The figures of some buckets, and of those in them.
    fn of<'tx>(source: Source<'tx>, buckets: Vec<Bucket<'tx>>) -> Result<Self> {
        let mut stats = Self::default();
        let mut allowance = Allowance::new(&source);
        // Buckets still to be counted, with the levels above them.
        let mut ahead: Vec<_> = buckets.into_iter().map(|bucket| (bucket, 0)).collect();
        while let Some((bucket, above)) = ahead.pop() {
            let (depth, inner) = stats.add_bucket(&bucket, &mut allowance)?;
            stats.depth = stats.depth.max(above + depth);
            ahead.extend(inner.into_iter().map(|(_, bucket)| (bucket, above + depth)));
        }
        let page_size = source.pages.page_size() as u64;
        stats.branch_alloc = (stats.branch_pages + stats.branch_overflow_pages) * page_size;
        stats.leaf_alloc = (stats.leaf_pages + stats.leaf_overflow_pages) * page_size;
        Ok(stats)
    }

    /// Adds one bucket's own tree; returns its levels and the buckets in it.
    fn add_bucket<'tx>(&mut self, bucket: &Bucket<'tx>, allowance: &mut Allowance) -> Result<(u64, Named<'tx>)> {
        let page_size = bucket.source.pages.page_size();
        let inline = bucket.is_inline();
        let (mut depth, mut inner) = (0, Vec::new());
        self.buckets += 1;
        self.inline_buckets += u64::from(inline);
        pages(bucket.source, bucket.root, allowance, |view, above| {
            depth = depth.max(above as u64 + 1);
            let (used, size) = extent(&view)?;
            let overflow = size.div_ceil(page_size).saturating_sub(1) as u64;
            if !view.is_leaf() {
                self.branch_pages += 1;
                self.branch_overflow_pages += overflow;
                self.branch_inuse += used as u64;
                return Ok(());
            }
            self.keys += view.len() as u64;
            if inline {
                // As in bbolt, which never puts a bucket into an inline one.
                self.inline_bucket_inuse += used as u64;
                return Ok(());
            }
            self.leaf_pages += 1;
            self.leaf_overflow_pages += overflow;
            self.leaf_inuse += used as u64;
            buckets_in(bucket, &view, &mut inner)
        })
        .map_err(|error| bucket.located(error))?;
        Ok((depth, inner))
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
    let Some(last) = leaf.len().checked_sub(1) else { return Ok(PAGE_HEADER) };
    let entry = leaf.entry(last)?;
    Ok(leaf.offset_of(entry.key) + entry.key.len() + entry.value.len())
}

fn used_by_branch(branch: &BranchPage<'_>) -> Result<usize> {
    let key = branch.key(branch.len() - 1)?;
    Ok(branch.offset_of(key) + key.len())
}
