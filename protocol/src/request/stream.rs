//! What is answered in steps, by as many frames as it takes.

use bytes::{BufMut, BytesMut};

use super::Txn;
use crate::detach::detach;
use crate::field::EncodeError;
use crate::{BucketOp, Expect, Op, Path, Scan, ScanMode, Watch};

/// What is answered in steps, by as many frames as it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamRequest {
    /// Entries in key order, or their count.
    Scan(Scan),
    /// The buckets within one, as a scan; only they count.
    ListBuckets(Scan),
    /// A bucket's figures, for which all its pages are read. Its answer is one frame.
    BucketStat(Path),
    /// A transaction that only reads. Its answer is one frame all the same.
    Txn(Txn),
    /// The whole file as of one transaction, piece by piece.
    Backup,
    /// The file made smaller; how far that is, and what it came to.
    Shrink,
    /// What is committed from some position on, without end.
    Watch(Watch),
}

impl StreamRequest {
    /// What each frame of its reply looks like when it succeeds.
    #[must_use]
    pub const fn expects(&self) -> Expect {
        match self {
            Self::Scan(scan) | Self::ListBuckets(scan) => match scan.options.mode {
                ScanMode::Count => Expect::Count,
                ScanMode::Entries | ScanMode::Keys => Expect::Entries,
            },
            Self::BucketStat(_) => Expect::Stats,
            Self::Txn(_) => Expect::Txn,
            Self::Backup => Expect::Backup,
            Self::Shrink => Expect::Shrink,
            Self::Watch(_) => Expect::Watch,
        }
    }

    /// The same request, which keeps nothing of the buffer that it was read into. For whoever keeps requests.
    #[must_use]
    pub fn detached(mut self) -> Self {
        match &mut self {
            Self::Scan(scan) | Self::ListBuckets(scan) => {
                let (low, high) = scan.range.keys_mut();
                detach([Some(scan.path.wire_mut()), low, high]);
            }
            Self::BucketStat(path) => detach([Some(path.wire_mut())]),
            Self::Txn(txn) => txn.detach(),
            Self::Watch(watch) => detach([Some(watch.path.wire_mut()), Some(&mut watch.prefix)]),
            Self::Backup | Self::Shrink => {}
        }
        self
    }

    /// The operation's number.
    #[must_use]
    pub const fn op(&self) -> Op {
        match self {
            Self::Scan(_) => Op::Scan,
            Self::ListBuckets(_) | Self::BucketStat(_) => Op::Bucket,
            Self::Txn(_) => Op::Txn,
            Self::Backup => Op::Backup,
            Self::Shrink => Op::Shrink,
            Self::Watch(_) => Op::Watch,
        }
    }

    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Scan(scan) => scan.encode(out),
            Self::ListBuckets(scan) => {
                out.put_u8(BucketOp::List as u8);
                scan.encode(out)
            }
            Self::BucketStat(path) => {
                out.put_u8(BucketOp::Stat as u8);
                out.put_slice(path.as_wire());
                Ok(())
            }
            Self::Txn(txn) => txn.encode_body(out),
            Self::Watch(watch) => watch.encode(out),
            Self::Backup | Self::Shrink => Ok(()),
        }
    }
}
