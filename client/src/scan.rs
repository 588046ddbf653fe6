//! Which entries are wanted, and how. Nothing is sent until the stream or the count is asked for.

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol as protocol;
use boltkv_protocol::{KeyRange, Path, Reply, ScanMode, StreamRequest};
use bytes::Bytes;

use crate::bucket::wrong_shape;
use crate::delete_range::bounds;
use crate::{Client, Entries, Error};

/// A scan to be made: from [`Bucket::scan`](crate::Bucket::scan) or [`Bucket::buckets`](crate::Bucket::buckets).
#[derive(Debug, Clone)]
#[must_use = "a scan does nothing until its stream or its count is asked for"]
pub struct Scan {
    client: Client,
    wanted: protocol::Scan,
    buckets_only: bool,
    /// A limit of 0 was asked for: the wire has no way to say so, and there is nothing to ask.
    nothing: bool,
}

impl Scan {
    pub(crate) fn entries(client: Client, path: Path) -> Self {
        let wanted = protocol::Scan { path, ..protocol::Scan::default() };
        Self { client, wanted, buckets_only: false, nothing: false }
    }

    pub(crate) fn buckets(client: Client, path: Path) -> Self {
        Self { buckets_only: true, ..Self::entries(client, path) }
    }

    /// Only keys within these bounds. Replaces earlier bounds or an earlier prefix.
    pub fn range<K: AsRef<[u8]>>(mut self, low: Bound<K>, high: Bound<K>) -> Self {
        self.wanted.range = bounds(low, high);
        self
    }

    /// Only keys that start so. Replaces earlier bounds or an earlier prefix.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.wanted.range = KeyRange::prefix(Bytes::copy_from_slice(prefix.as_ref()));
        self
    }

    /// From the highest key down.
    pub fn reverse(mut self) -> Self {
        self.wanted.options.reverse = true;
        self
    }

    /// At most so many entries.
    pub fn limit(mut self, limit: u64) -> Self {
        self.wanted.options.limit = NonZeroU64::new(limit);
        self.nothing = limit == 0;
        self
    }

    /// Keys and their kind only; values are left empty.
    pub fn keys_only(mut self) -> Self {
        self.wanted.options.mode = ScanMode::Keys;
        self
    }

    /// Starts the scan, and returns its entries once the first of them are there. All of them are of one snapshot.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`, `INCOMPATIBLE_VALUE` if the path leads to a key, or as [`Error`] says.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the scan is cancelled on the server.
    pub async fn stream(self) -> Result<Entries, Error> {
        if self.nothing {
            return Ok(Entries::none());
        }
        let client = self.client.clone();
        Entries::open(&client, self.request()).await
    }

    /// Counts the entries on the server.
    ///
    /// # Errors
    /// As for [`stream`](Self::stream).
    ///
    /// # Cancellation
    /// As for [`stream`](Self::stream). Of many counts at once, as many run as the server takes streams of one connection; the
    /// others wait for their turn.
    pub async fn count(self) -> Result<u64, Error> {
        if self.nothing {
            return Ok(0);
        }
        let client = self.client.clone();
        match client.call(self.counting().request()).await? {
            Reply::Count(count) => Ok(count),
            _ => Err(wrong_shape()),
        }
    }

    /// Whether there is nothing to ask.
    pub(crate) const fn is_of_nothing(&self) -> bool {
        self.nothing
    }

    pub(crate) fn counting(mut self) -> Self {
        self.wanted.options.mode = ScanMode::Count;
        self
    }

    pub(crate) fn request(self) -> StreamRequest {
        let list_or_scan = if self.buckets_only { StreamRequest::ListBuckets } else { StreamRequest::Scan };
        list_or_scan(self.wanted)
    }
}
