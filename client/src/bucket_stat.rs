//! A bucket's figures.

use boltkv_protocol::Reply;
use bytes::Bytes;

use crate::Error;
use crate::bucket::wrong_shape;

/// A bucket's figures: see [`Bucket::stat`](crate::Bucket::stat). All but the sequence count the buckets within it, too, as
/// bbolt's do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BucketStat {
    /// Keys: those of values, and the names of buckets within buckets.
    pub keys: u64,
    /// The bucket's own sequence.
    pub sequence: u64,
    /// Levels of pages, from the bucket's root to the deepest leaf of the deepest bucket in it.
    pub depth: u64,
    /// Branch pages; one that runs on over further pages counts once.
    pub branch_pages: u64,
    /// Pages that branch pages run on over.
    pub branch_overflow_pages: u64,
    /// Bytes of all branch pages.
    pub branch_alloc: u64,
    /// Bytes of branch pages that hold something.
    pub branch_inuse: u64,
    /// Leaf pages; one that runs on over further pages counts once.
    pub leaf_pages: u64,
    /// Pages that leaf pages run on over.
    pub leaf_overflow_pages: u64,
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

impl BucketStat {
    /// All of it as names and numbers, as the server tells them.
    #[must_use]
    pub fn figures(mut self) -> [(&'static str, u64); 14] {
        self.by_name().map(|(name, figure)| (name, *figure))
    }

    fn by_name(&mut self) -> [(&'static str, &mut u64); 14] {
        [
            ("keys", &mut self.keys),
            ("sequence", &mut self.sequence),
            ("depth", &mut self.depth),
            ("branch_pages", &mut self.branch_pages),
            ("branch_overflow_pages", &mut self.branch_overflow_pages),
            ("branch_alloc", &mut self.branch_alloc),
            ("branch_inuse", &mut self.branch_inuse),
            ("leaf_pages", &mut self.leaf_pages),
            ("leaf_overflow_pages", &mut self.leaf_overflow_pages),
            ("leaf_alloc", &mut self.leaf_alloc),
            ("leaf_inuse", &mut self.leaf_inuse),
            ("buckets", &mut self.buckets),
            ("inline_buckets", &mut self.inline_buckets),
            ("inline_bucket_inuse", &mut self.inline_bucket_inuse),
        ]
    }

    pub(crate) fn of(reply: &Reply) -> Result<Self, Error> {
        let Reply::Stats(figures) = reply else { return Err(wrong_shape()) };
        let mut stat = Self::default();
        for (name, figure) in stat.by_name() {
            // A later server may tell more, in another order.
            let told = figures.iter().find(|(told, _)| told == name);
            *figure = told.and_then(|(_, figure)| parse(figure)).ok_or_else(wrong_shape)?;
        }
        Ok(stat)
    }
}

fn parse(figure: &Bytes) -> Option<u64> {
    std::str::from_utf8(figure).ok()?.parse().ok()
}
