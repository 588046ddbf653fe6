//! What a client can ask for: one [`Request`] for every dialect, and its binary form both ways.
//!
//! A request says what is wanted and nothing about how it is done or answered.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};
use crate::frame::{Frame, write_frame};
use crate::{BucketOp, Expect, Op, Path, Scan, ScanMode};

/// The first field of HELLO: `BKV1`.
pub const MAGIC: u32 = u32::from_be_bytes(*b"BKV1");
/// The version of the protocol that this crate speaks.
pub const VERSION: u8 = 1;

/// A request, the same whichever dialect it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Opens a binary connection.
    Hello(Hello),
    /// The bytes come back.
    Ping(Bytes),
    /// One value by its key.
    Get {
        /// The bucket.
        path: Path,
        /// The key.
        key: Bytes,
    },
    /// Puts a value under a key.
    Set {
        /// The bucket.
        path: Path,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// When to do it.
        cond: Cond,
    },
    /// Removes a key; one that is not there is no error.
    Delete {
        /// The bucket.
        path: Path,
        /// The key.
        key: Bytes,
        /// When to do it.
        cond: Cond,
    },
    /// Something about buckets themselves.
    Bucket(BucketRequest),
    /// Entries in key order, or their count.
    Scan(Scan),
    /// Lets a stream send more. Has no reply.
    Credit {
        /// The id of the request that the stream answers.
        stream: u32,
        /// How many more body bytes it may send.
        bytes: u32,
    },
    /// Ends a stream early. Has no reply; the stream ends with `CANCELLED`.
    Cancel {
        /// The id of the request that the stream answers.
        stream: u32,
    },
}

/// The opening of a binary connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// [`MAGIC`], or what a stranger sent instead.
    pub magic: u32,
    /// The lowest version the client speaks.
    pub min_version: u8,
    /// The highest version the client speaks.
    pub max_version: u8,
    /// Features the client asks for, a bit each. None are defined yet.
    pub features: u32,
    /// What the client calls itself, for logs.
    pub client: Bytes,
    /// The token that says who it is; empty for none.
    pub token: Bytes,
}

impl Hello {
    /// A greeting in this crate's own version, without a token.
    #[must_use]
    pub fn new(client: impl Into<Bytes>) -> Self {
        Self {
            magic: MAGIC,
            min_version: VERSION,
            max_version: VERSION,
            features: 0,
            client: client.into(),
            token: Bytes::new(),
        }
    }

    /// The highest version that this client and this crate both speak, if any.
    #[must_use]
    pub fn common_version(&self) -> Option<u8> {
        (self.min_version..=self.max_version).contains(&VERSION).then_some(VERSION)
    }
}

/// When a write is to be done. One that fails: `CONDITION_FAILED`, and nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Cond {
    /// Always.
    #[default]
    Always,
    /// Only if the key is absent.
    IfAbsent,
    /// Only if the key is present.
    IfPresent,
    /// Only if the key's value is this.
    IfEquals(Bytes),
}

/// A request about buckets themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketRequest {
    /// Create it; its parents must exist, itself must not.
    Create(Path),
    /// Create it and its parents where they are missing.
    CreateIfMissing(Path),
    /// Delete it with all within.
    Delete(Path),
    /// The buckets within one, as a scan; only they count.
    List(Scan),
}

impl Request {
    /// The operation's number.
    #[must_use]
    pub const fn op(&self) -> Op {
        match self {
            Self::Hello(_) => Op::Hello,
            Self::Ping(_) => Op::Ping,
            Self::Get { .. } => Op::Get,
            Self::Set { .. } => Op::Set,
            Self::Delete { .. } => Op::Delete,
            Self::Bucket(_) => Op::Bucket,
            Self::Scan(_) => Op::Scan,
            Self::Credit { .. } => Op::Credit,
            Self::Cancel { .. } => Op::Cancel,
        }
    }

    /// Whether it goes to the writer.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        match self {
            Self::Set { .. } | Self::Delete { .. } => true,
            Self::Bucket(bucket) => !matches!(bucket, BucketRequest::List(_)),
            _ => false,
        }
    }

    /// What its reply looks like when it succeeds; `None` for those that have none.
    #[must_use]
    pub const fn expects(&self) -> Option<Expect> {
        Some(match self {
            Self::Hello(_) => Expect::Hello,
            Self::Ping(_) => Expect::Pong,
            Self::Get { .. } => Expect::Value,
            Self::Delete { .. } => Expect::Deleted,
            Self::Bucket(BucketRequest::List(scan)) | Self::Scan(scan) => match scan.options.mode {
                ScanMode::Count => Expect::Count,
                ScanMode::Entries | ScanMode::Keys => Expect::Entries,
            },
            Self::Set { .. } | Self::Bucket(_) => Expect::Written,
            Self::Credit { .. } | Self::Cancel { .. } => return None,
        })
    }

    /// Reads a request off a frame. Bytes after the fields it knows are ignored: later versions may put some there.
    ///
    /// # Errors
    /// With [`DecodeError::code`] `MALFORMED`: a body that ends early, a field that makes no sense, or id 0 where an answer is
    /// due. With `UNSUPPORTED`: an operation, sub-operation, flag or option that this version does not do. The connection can
    /// go on after either.
    pub fn decode(frame: Frame) -> Result<Self, DecodeError> {
        let Frame { id, op, flags, body } = frame;
        let op = Op::from_u8(op).ok_or(DecodeError::Unknown { what: "operation", number: op })?;
        if flags != 0 {
            return Err(DecodeError::Unknown { what: "request flags", number: flags });
        }
        if id == 0 && !matches!(op, Op::Credit | Op::Cancel) {
            return Err(DecodeError::BadValue { field: "id", value: 0 });
        }
        let mut fields = Fields::new(body);
        Ok(match op {
            Op::Hello => Self::Hello(decode_hello(&mut fields)?),
            Op::Ping => Self::Ping(fields.into_rest()),
            Op::Get => Self::Get { path: Path::decode(&mut fields)?, key: fields.str16("key")? },
            Op::Set => Self::Set {
                path: Path::decode(&mut fields)?,
                key: fields.str16("key")?,
                value: fields.bytes32("value")?,
                cond: Cond::decode(&mut fields)?,
            },
            Op::Delete => Self::Delete {
                path: Path::decode(&mut fields)?,
                key: fields.str16("key")?,
                cond: Cond::decode(&mut fields)?,
            },
            Op::Bucket => Self::Bucket(BucketRequest::decode(&mut fields)?),
            Op::Scan => Self::Scan(Scan::decode(&mut fields)?),
            Op::Credit => Self::Credit { stream: fields.u32("stream")?, bytes: fields.u32("bytes")? },
            Op::Cancel => Self::Cancel { stream: fields.u32("stream")? },
            Op::DeleteRange | Op::Txn | Op::Snapshot | Op::Stats | Op::Backup => {
                return Err(DecodeError::NotYet { name: op.name() });
            }
        })
    }

    /// Appends the request as a frame. After an error `out` is as it was before.
    ///
    /// # Errors
    /// A field longer than the wire can carry.
    pub fn encode(&self, id: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        write_frame(out, id, self.op() as u8, 0, |out| self.encode_body(out))
    }

    fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Hello(hello) => encode_hello(hello, out)?,
            Self::Ping(bytes) => out.put_slice(bytes),
            Self::Get { path, key } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key)?;
            }
            Self::Set { path, key, value, cond } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key)?;
                put_bytes32(out, "value", value)?;
                cond.encode(out)?;
            }
            Self::Delete { path, key, cond } => {
                out.put_slice(path.as_wire());
                put_str16(out, "key", key)?;
                cond.encode(out)?;
            }
            Self::Bucket(bucket) => bucket.encode(out)?,
            Self::Scan(scan) => scan.encode(out)?,
            Self::Credit { stream, bytes } => {
                out.put_u32(*stream);
                out.put_u32(*bytes);
            }
            Self::Cancel { stream } => out.put_u32(*stream),
        }
        Ok(())
    }
}

fn decode_hello(fields: &mut Fields) -> Result<Hello, DecodeError> {
    let magic = fields.u32("magic")?;
    if magic != MAGIC {
        return Err(DecodeError::BadValue { field: "magic", value: magic.into() });
    }
    Ok(Hello {
        magic,
        min_version: fields.u8("min version")?,
        max_version: fields.u8("max version")?,
        features: fields.u32("features")?,
        client: fields.str16("client name")?,
        token: fields.str16("token")?,
    })
}

fn encode_hello(hello: &Hello, out: &mut BytesMut) -> Result<(), EncodeError> {
    out.put_u32(hello.magic);
    out.put_u8(hello.min_version);
    out.put_u8(hello.max_version);
    out.put_u32(hello.features);
    put_str16(out, "client name", &hello.client)?;
    put_str16(out, "token", &hello.token)
}

impl Cond {
    /// Whether a key whose value is `current` (`None`: absent) meets the condition.
    #[must_use]
    pub fn holds(&self, current: Option<&[u8]>) -> bool {
        match self {
            Self::Always => true,
            Self::IfAbsent => current.is_none(),
            Self::IfPresent => current.is_some(),
            Self::IfEquals(value) => current == Some(&**value),
        }
    }

    fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
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

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Always => out.put_u8(0),
            Self::IfAbsent => out.put_u8(1),
            Self::IfPresent => out.put_u8(2),
            Self::IfEquals(value) => {
                out.put_u8(3);
                put_bytes32(out, "cond", value)?;
            }
        }
        Ok(())
    }
}

impl BucketRequest {
    fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let number = fields.u8("sub")?;
        let sub = BucketOp::from_u8(number).ok_or(DecodeError::Unknown { what: "BUCKET sub-operation", number })?;
        Ok(match sub {
            BucketOp::Create => Self::Create(Path::decode(fields)?),
            BucketOp::CreateIfMissing => Self::CreateIfMissing(Path::decode(fields)?),
            BucketOp::Delete => Self::Delete(Path::decode(fields)?),
            BucketOp::List => Self::List(Scan::decode(fields)?),
            BucketOp::Stat | BucketOp::NextSequence | BucketOp::SetSequence | BucketOp::Move => {
                return Err(DecodeError::NotYet { name: sub.name() });
            }
        })
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let (sub, path) = match self {
            Self::Create(path) => (BucketOp::Create, path),
            Self::CreateIfMissing(path) => (BucketOp::CreateIfMissing, path),
            Self::Delete(path) => (BucketOp::Delete, path),
            Self::List(scan) => {
                out.put_u8(BucketOp::List as u8);
                return scan.encode(out);
            }
        };
        out.put_u8(sub as u8);
        out.put_slice(path.as_wire());
        Ok(())
    }
}
