//! What goes to the writer: it is done wholly or not at all, and answered once that is durable.

use std::num::NonZeroU64;

use bytes::{BufMut, Bytes, BytesMut};

use super::{ExpireCond, ExpireTo, Expiry, Txn};
use crate::detach::detach;
use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};
use crate::{BucketOp, Expect, KeyRange, Op, Path};

/// What goes to the writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRequest<B = Bytes> {
    /// Puts a value under a key.
    Set {
        /// The bucket.
        path: Path,
        /// The key.
        key: B,
        /// The value.
        value: B,
        /// When to do it.
        cond: Cond<B>,
    },
    /// Puts a value under a key that expires.
    SetExpiring {
        /// The bucket.
        path: Path,
        /// The key.
        key: B,
        /// The value.
        value: B,
        /// When to do it.
        cond: Cond<B>,
        /// When it expires.
        expiry: Expiry,
    },
    /// Sets when a key expires. One that is not there is no error.
    Expire {
        /// The bucket.
        path: Path,
        /// The key: a value's, or that of a bucket in this one.
        key: B,
        /// When it is to expire.
        to: ExpireTo,
        /// When to do it.
        cond: ExpireCond,
    },
    /// Removes a key; one that is not there is no error.
    Delete {
        /// The bucket.
        path: Path,
        /// The key.
        key: B,
        /// When to do it.
        cond: Cond<B>,
    },
    /// Adds to the number that a key's value is, as decimal text; a key that is not there counts as 0.
    Increment {
        /// The bucket.
        path: Path,
        /// The key.
        key: B,
        /// What to add.
        delta: i64,
    },
    /// Removes the values of a range of keys, from the lowest on, as many as the server does at once.
    DeleteRange {
        /// The bucket.
        path: Path,
        /// Which keys.
        range: KeyRange,
        /// At most so many; `None` for no limit but the server's.
        limit: Option<NonZeroU64>,
    },
    /// Creates a bucket; its parents must exist, itself must not.
    CreateBucket(Path),
    /// Creates a bucket and its parents where they are missing.
    CreateBucketIfMissing(Path),
    /// Deletes a bucket with all within.
    DeleteBucket(Path),
    /// Raises a bucket's sequence by one.
    NextSequence(Path),
    /// Sets a bucket's sequence.
    SetSequence {
        /// The bucket.
        path: Path,
        /// What its sequence is to be.
        sequence: u64,
    },
    /// Moves a bucket, with all within, to another path.
    MoveBucket {
        /// Where it is.
        path: Path,
        /// Where it is to be: its new name is the last of this path.
        to: Path,
    },
    /// A transaction of which a request is a write. There is none within another.
    Txn(Txn),
}

impl WriteRequest {
    /// The same request, which keeps nothing of the buffer that it was read into but what is large in it, as a value of
    /// 16 KiB or more is. For whoever keeps requests.
    #[must_use]
    pub fn detached(mut self) -> Self {
        match &mut self {
            Self::Set { path, key, value, cond } | Self::SetExpiring { path, key, value, cond, .. } => {
                detach([Some(path.wire_mut()), Some(key), Some(value), cond.value_mut()]);
            }
            Self::Delete { path, key, cond } => detach([Some(path.wire_mut()), Some(key), cond.value_mut()]),
            Self::Increment { path, key, .. } | Self::Expire { path, key, .. } => {
                detach([Some(path.wire_mut()), Some(key)]);
            }
            Self::DeleteRange { path, range, .. } => {
                let (low, high) = range.keys_mut();
                detach([Some(path.wire_mut()), low, high]);
            }
            Self::CreateBucket(path)
            | Self::CreateBucketIfMissing(path)
            | Self::DeleteBucket(path)
            | Self::NextSequence(path)
            | Self::SetSequence { path, .. } => detach([Some(path.wire_mut())]),
            Self::MoveBucket { path, to } => detach([Some(path.wire_mut()), Some(to.wire_mut())]),
            Self::Txn(txn) => txn.detach(),
        }
        self
    }

    pub(super) fn decode_set_expiring(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::SetExpiring {
            path: Path::decode(fields)?,
            key: fields.str16("key")?,
            value: fields.bytes32("value")?,
            cond: Cond::decode(fields)?,
            expiry: Expiry::decode(fields)?,
        })
    }

    pub(super) fn decode_expire(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::Expire {
            path: Path::decode(fields)?,
            key: fields.str16("key")?,
            to: ExpireTo::decode(fields)?,
            cond: ExpireCond::decode(fields)?,
        })
    }

    /// How many bytes its paths, keys, value and condition have together.
    #[must_use]
    pub fn variable_len(&self) -> usize {
        match self {
            Self::Set { path, key, value, cond } | Self::SetExpiring { path, key, value, cond, .. } => {
                path.as_wire().len() + key.len() + value.len() + cond.variable_len()
            }
            Self::Delete { path, key, cond } => path.as_wire().len() + key.len() + cond.variable_len(),
            Self::Increment { path, key, .. } | Self::Expire { path, key, .. } => path.as_wire().len() + key.len(),
            Self::DeleteRange { path, range, .. } => path.as_wire().len() + range.variable_len(),
            Self::CreateBucket(path)
            | Self::CreateBucketIfMissing(path)
            | Self::DeleteBucket(path)
            | Self::NextSequence(path)
            | Self::SetSequence { path, .. } => path.as_wire().len(),
            Self::MoveBucket { path, to } => path.as_wire().len() + to.as_wire().len(),
            Self::Txn(txn) => txn.variable_len(),
        }
    }
}

/// When a write is to be done. One that fails: `CONDITION_FAILED`, and nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cond<B = Bytes> {
    /// Always.
    #[default]
    Always,
    /// Only if the key is absent.
    IfAbsent,
    /// Only if the key is present.
    IfPresent,
    /// Only if the key's value is this.
    IfEquals(B),
}

impl<B: AsRef<[u8]>> WriteRequest<B> {
    /// What its reply looks like when it succeeds.
    #[must_use]
    pub fn expects(&self) -> Expect {
        match self {
            Self::Delete { .. } => Expect::Deleted,
            Self::Txn(_) => Expect::Txn,
            Self::Increment { .. } => Expect::Number,
            Self::DeleteRange { .. } => Expect::DeletedRange,
            Self::NextSequence(_) => Expect::Sequence,
            Self::Expire { .. } => Expect::ExpirySet,
            Self::Set { .. }
            | Self::SetExpiring { .. }
            | Self::CreateBucket(_)
            | Self::CreateBucketIfMissing(_)
            | Self::DeleteBucket(_)
            | Self::SetSequence { .. }
            | Self::MoveBucket { .. } => Expect::Written,
        }
    }

    /// The operation's number.
    #[must_use]
    pub fn op(&self) -> Op {
        match self {
            Self::Set { .. } => Op::Set,
            Self::SetExpiring { .. } => Op::SetExpiring,
            Self::Expire { .. } => Op::Expire,
            Self::Delete { .. } => Op::Delete,
            Self::Increment { .. } => Op::Increment,
            Self::DeleteRange { .. } => Op::DeleteRange,
            Self::CreateBucket(_)
            | Self::CreateBucketIfMissing(_)
            | Self::DeleteBucket(_)
            | Self::NextSequence(_)
            | Self::SetSequence { .. }
            | Self::MoveBucket { .. } => Op::Bucket,
            Self::Txn(_) => Op::Txn,
        }
    }

    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Set { path, key, value, cond } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())?;
                put_bytes32(out, "value", value.as_ref())?;
                cond.encode(out)
            }
            Self::SetExpiring { path, key, value, cond, expiry } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())?;
                put_bytes32(out, "value", value.as_ref())?;
                cond.encode(out)?;
                expiry.encode(out);
                Ok(())
            }
            Self::Expire { path, key, to, cond } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())?;
                to.encode(out);
                cond.encode(out);
                Ok(())
            }
            Self::Delete { path, key, cond } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())?;
                cond.encode(out)
            }
            Self::Increment { path, key, delta } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key.as_ref())?;
                out.put_i64(*delta);
                Ok(())
            }
            Self::DeleteRange { path, range, limit } => {
                out.put_slice(path.as_wire());
                range.encode(out)?;
                out.put_u64(limit.map_or(0, NonZeroU64::get));
                Ok(())
            }
            Self::CreateBucket(path) => put_bucket(BucketOp::Create, path, out),
            Self::CreateBucketIfMissing(path) => put_bucket(BucketOp::CreateIfMissing, path, out),
            Self::DeleteBucket(path) => put_bucket(BucketOp::Delete, path, out),
            Self::NextSequence(path) => put_bucket(BucketOp::NextSequence, path, out),
            Self::SetSequence { path, sequence } => {
                put_bucket(BucketOp::SetSequence, path, out)?;
                out.put_u64(*sequence);
                Ok(())
            }
            Self::MoveBucket { path, to } => {
                put_bucket(BucketOp::Move, path, out)?;
                out.put_slice(to.as_wire());
                Ok(())
            }
            Self::Txn(txn) => txn.encode_body(out),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the other requests' bodies can be too long, and it stands beside them")]
fn put_bucket(sub: BucketOp, path: &Path, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_u8(sub as u8);
    out.put_slice(path.as_wire());
    Ok(())
}

impl<B: AsRef<[u8]>> Cond<B> {
    /// The same condition, its value borrowed.
    #[must_use]
    pub fn as_slice(&self) -> Cond<&[u8]> {
        match self {
            Self::Always => Cond::Always,
            Self::IfAbsent => Cond::IfAbsent,
            Self::IfPresent => Cond::IfPresent,
            Self::IfEquals(value) => Cond::IfEquals(value.as_ref()),
        }
    }

    /// Whether a key whose value is `current` (`None`: absent) meets the condition.
    #[must_use]
    pub fn holds(&self, current: Option<&[u8]>) -> bool {
        match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfPresent => current.is_some(),
            Self::IfEquals(value) => current == Some(value.as_ref()),
        }
    }

    pub(super) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Always => out.put_u8(0),
            Self::IfAbsent => out.put_u8(1),
            Self::IfPresent => out.put_u8(2),
            Self::IfEquals(value) => {
                out.put_u8(3);
                put_bytes32(out, "cond", value.as_ref())?;
            }
        }
        Ok(())
    }
}

impl Cond {
    const fn value_mut(&mut self) -> Option<&mut Bytes> {
        if let Self::IfEquals(value) = self { Some(value) } else { None }
    }

    const fn variable_len(&self) -> usize {
        if let Self::IfEquals(value) = self { value.len() } else { 0 }
    }

    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(match fields.u8("cond")? {
            0 => Self::Always,
            1 => Self::IfAbsent,
            2 => Self::IfPresent,
            3 => Self::IfEquals(fields.bytes32("cond")?),
            kind => {
                return Err(DecodeError::BadValue { field: "cond", value: kind.into() });
            }
        })
    }
}
