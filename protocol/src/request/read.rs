//! What is answered at once, with one reply, and changes nothing.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{EncodeError, put_str16};
use crate::{BucketOp, Expect, Op, Path};

/// What is answered at once, with one reply, and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadRequest<B = Bytes> {
    /// The bytes come back.
    Ping(B),
    /// One value by its key.
    Get {
        /// The bucket.
        path: Path,
        /// The key.
        key: B,
    },
    /// A bucket's sequence.
    Sequence(Path),
    /// When a key expires.
    ExpiryTime {
        /// The bucket.
        path: Path,
        /// The key: a value's, or that of a bucket in this one.
        key: B,
    },
}

impl<B: AsRef<[u8]>> ReadRequest<B> {
    /// What its reply looks like when it succeeds.
    #[must_use]
    pub fn expects(&self) -> Expect {
        match self {
            Self::Ping(_) => Expect::Pong,
            Self::Get { .. } => Expect::Value,
            Self::Sequence(_) => Expect::Count,
            Self::ExpiryTime { .. } => Expect::ExpiryTime,
        }
    }

    /// The operation's number.
    #[must_use]
    pub fn op(&self) -> Op {
        match self {
            Self::Ping(_) => Op::Ping,
            Self::Get { .. } => Op::Get,
            Self::Sequence(_) => Op::Bucket,
            Self::ExpiryTime { .. } => Op::ExpiryTime,
        }
    }

    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Ping(bytes) => {
                out.put_slice(bytes.as_ref());
                Ok(())
            }
            Self::Get { path, key } | Self::ExpiryTime { path, key } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())
            }
            Self::Sequence(path) => {
                out.put_u8(BucketOp::GetSequence as u8);
                out.put_slice(path.as_wire());
                Ok(())
            }
        }
    }
}
