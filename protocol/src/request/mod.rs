//! What a client can ask for, the same whichever dialect it came in. A request says nothing about how it is done or answered.
//!
//! Requests are sorted by what becomes of them, so that whoever handles one kind handles every request of it: a new request
//! that is handled nowhere does not compile. That is why these enums are not `non_exhaustive`.
//!
//! They are generic over how they hold keys and values: the server gets slices of what it received (`Request<Bytes>`), and the
//! client sends what its caller has lying somewhere (`Request<&[u8]>`), copied once, into the connection's buffer.

mod expiry;
mod operator;
mod read;
mod session;
mod snapshot;
mod stream;
mod txn;
mod write;

use std::num::NonZeroU64;

use bytes::{BufMut, Bytes, BytesMut};

pub use expiry::{ExpireCond, ExpireTo, Expiry};
pub use operator::OperatorRequest;
pub use read::ReadRequest;
pub use session::{Hello, MAGIC, SessionRequest, VERSION};
pub use snapshot::{SnapshotRead, SnapshotRequest};
pub use stream::StreamRequest;
pub(crate) use txn::put_with_len;
pub use txn::{MAX_TXN_PARTS, Txn, TxnBuilder, TxnCondition, TxnConditions, TxnError, TxnRequests};
pub use write::{Cond, WriteRequest};

use crate::field::{DecodeError, EncodeError, Fields};
use crate::frame::{FLAG_SNAPSHOT, Frame, write_frame};
use crate::{BucketOp, Expect, KeyRange, Op, Path, Scan, Watch};

/// A request, by what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<B = Bytes> {
    /// It concerns the connection itself.
    Session(SessionRequest),
    /// It is answered at once, and changes nothing.
    Read(ReadRequest<B>),
    /// It goes to the writer.
    Write(WriteRequest<B>),
    /// It is answered in steps.
    Stream(StreamRequest),
    /// It is answered from a snapshot that the connection holds open.
    OfSnapshot {
        /// The snapshot's id.
        snapshot: u64,
        /// What is read.
        read: SnapshotRead<B>,
    },
}

impl<B: AsRef<[u8]>> Request<B> {
    /// The operation's number.
    #[must_use]
    pub fn op(&self) -> Op {
        match self {
            Self::Session(request) => request.op(),
            Self::Read(request) => request.op(),
            Self::Write(request) => request.op(),
            Self::Stream(request) => request.op(),
            Self::OfSnapshot { read, .. } => read.op(),
        }
    }

    /// What its reply looks like when it succeeds; `None` for those that have none.
    #[must_use]
    pub fn expects(&self) -> Option<Expect> {
        match self {
            Self::Session(request) => request.expects(),
            Self::Read(request) => Some(request.expects()),
            Self::Write(request) => Some(request.expects()),
            Self::Stream(request) => Some(request.expects()),
            Self::OfSnapshot { read, .. } => Some(read.expects()),
        }
    }

    /// Appends the request as a frame. After an error `out` is as it was before.
    ///
    /// # Errors
    /// A field longer than the wire can carry.
    pub fn encode(&self, id: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let flags = if matches!(self, Self::OfSnapshot { .. }) { FLAG_SNAPSHOT } else { 0 };
        write_frame(out, id, self.op() as u8, flags, 0, |out| self.encode_body(out))
    }

    fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Session(request) => request.encode_body(out),
            Self::Read(request) => request.encode_body(out),
            Self::Write(request) => request.encode_body(out),
            Self::Stream(request) => request.encode_body(out),
            Self::OfSnapshot { snapshot, read } => {
                out.put_u64(*snapshot);
                read.encode_body(out)
            }
        }
    }
}

impl Request {
    /// Reads a request off a frame. Bytes after the fields it knows are ignored: later versions may put some there.
    ///
    /// # Errors
    /// With [`DecodeError::code`] `MALFORMED`: a body that ends early, a field that makes no sense, or id 0 where an answer is
    /// due. With `UNSUPPORTED`: an operation, sub-operation, flag or option that this version does not do. The connection can
    /// go on after either.
    pub fn decode(frame: Frame) -> Result<Self, DecodeError> {
        let Frame { id, op, flags, body } = frame;
        let op = Op::from_u8(op).ok_or(DecodeError::Unknown { what: "operation", number: op })?;
        if flags & !FLAG_SNAPSHOT != 0 {
            return Err(DecodeError::Unknown { what: "request flags", number: flags });
        }
        if id == 0 && !matches!(op, Op::Credit | Op::Cancel) {
            return Err(DecodeError::BadValue { field: "id", value: 0 });
        }
        if flags == FLAG_SNAPSHOT { snapshot::decode_of_snapshot(op, body) } else { decode_body(op, body) }
    }
}

/// Reads what an operation asks for off its body.
fn decode_body(op: Op, body: Bytes) -> Result<Request, DecodeError> {
    let mut fields = Fields::new(body);
    Ok(match op {
        Op::Hello => SessionRequest::Hello(Hello::decode(&mut fields)?).into(),
        Op::Credit => SessionRequest::Credit { stream: fields.u32("stream")?, bytes: fields.u32("bytes")? }.into(),
        Op::Cancel => SessionRequest::Cancel { stream: fields.u32("stream")? }.into(),
        Op::Ping => ReadRequest::Ping(fields.into_rest()).into(),
        Op::Get => ReadRequest::Get { path: Path::decode(&mut fields)?, key: fields.str16("key")? }.into(),
        Op::Set => WriteRequest::Set {
            path: Path::decode(&mut fields)?,
            key: fields.str16("key")?,
            value: fields.bytes32("value")?,
            cond: Cond::decode(&mut fields)?,
        }
        .into(),
        Op::Delete => WriteRequest::Delete {
            path: Path::decode(&mut fields)?,
            key: fields.str16("key")?,
            cond: Cond::decode(&mut fields)?,
        }
        .into(),
        Op::Increment => WriteRequest::Increment {
            path: Path::decode(&mut fields)?,
            key: fields.str16("key")?,
            delta: fields.i64("delta")?,
        }
        .into(),
        Op::SetExpiring => WriteRequest::decode_set_expiring(&mut fields)?.into(),
        Op::Expire => WriteRequest::decode_expire(&mut fields)?.into(),
        Op::ExpiryTime => {
            ReadRequest::ExpiryTime { path: Path::decode(&mut fields)?, key: fields.str16("key")? }.into()
        }
        Op::DeleteRange => WriteRequest::DeleteRange {
            path: Path::decode(&mut fields)?,
            range: KeyRange::decode(&mut fields)?,
            limit: NonZeroU64::new(fields.u64("limit")?),
        }
        .into(),
        Op::Stats => SessionRequest::Stats.into(),
        Op::ClientList => SessionRequest::Operator(OperatorRequest::decode_list(&mut fields)?).into(),
        Op::ClientKill => SessionRequest::Operator(OperatorRequest::decode_kill(&mut fields)?).into(),
        Op::SlowlogGet => SessionRequest::Operator(OperatorRequest::decode_slow_log(&mut fields)?).into(),
        Op::SlowlogReset => SessionRequest::Operator(OperatorRequest::ResetSlowLog).into(),
        Op::Bucket => decode_bucket(&mut fields)?,
        Op::Scan => StreamRequest::Scan(Scan::decode(&mut fields)?).into(),
        Op::Txn => Txn::decode(&mut fields)?.into(),
        Op::Backup => StreamRequest::Backup.into(),
        Op::Snapshot => SessionRequest::Snapshot(SnapshotRequest::decode(&mut fields)?).into(),
        Op::Shrink => StreamRequest::Shrink.into(),
        Op::Watch => StreamRequest::Watch(Watch::decode(&mut fields)?).into(),
    })
}

/// A request about buckets themselves: the first byte of the body says which.
fn decode_bucket(fields: &mut Fields) -> Result<Request, DecodeError> {
    let number = fields.u8("sub")?;
    let sub = BucketOp::from_u8(number).ok_or(DecodeError::Unknown { what: "BUCKET sub-operation", number })?;
    Ok(match sub {
        BucketOp::Create => WriteRequest::CreateBucket(Path::decode(fields)?).into(),
        BucketOp::CreateIfMissing => WriteRequest::CreateBucketIfMissing(Path::decode(fields)?).into(),
        BucketOp::Delete => WriteRequest::DeleteBucket(Path::decode(fields)?).into(),
        BucketOp::List => StreamRequest::ListBuckets(Scan::decode(fields)?).into(),
        BucketOp::NextSequence => WriteRequest::NextSequence(Path::decode(fields)?).into(),
        BucketOp::SetSequence => {
            WriteRequest::SetSequence { path: Path::decode(fields)?, sequence: fields.u64("sequence")? }.into()
        }
        BucketOp::GetSequence => ReadRequest::Sequence(Path::decode(fields)?).into(),
        BucketOp::Move => WriteRequest::MoveBucket { path: Path::decode(fields)?, to: Path::decode(fields)? }.into(),
        BucketOp::Stat => StreamRequest::BucketStat(Path::decode(fields)?).into(),
    })
}

impl From<SessionRequest> for Request {
    fn from(request: SessionRequest) -> Self {
        Self::Session(request)
    }
}

impl<B> From<OperatorRequest> for Request<B> {
    fn from(request: OperatorRequest) -> Self {
        Self::Session(SessionRequest::Operator(request))
    }
}

impl<B> From<ReadRequest<B>> for Request<B> {
    fn from(request: ReadRequest<B>) -> Self {
        Self::Read(request)
    }
}

impl<B> From<WriteRequest<B>> for Request<B> {
    fn from(request: WriteRequest<B>) -> Self {
        Self::Write(request)
    }
}

impl<B> From<StreamRequest> for Request<B> {
    fn from(request: StreamRequest) -> Self {
        Self::Stream(request)
    }
}
