//! Several requests as one transaction: all of them are done, or none is.
//!
//! A transaction stays as it is on the wire, looked over once when it is read, and its parts are read off it one by one. So
//! it takes no more memory than its bytes, of however many parts it says it is.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Cond, Request, StreamRequest, WriteRequest, decode_body};
use crate::detach::detach;
use crate::field::{DecodeError, EncodeError, Fields, put_str16};
use crate::frame::HEADER_LEN;
use crate::{BucketOp, Expect, Op, Path};

/// The most conditions that a transaction has, and the most requests: their number is a `u16`.
pub const MAX_TXN_PARTS: usize = u16::MAX as usize;

/// Several requests as one transaction, in their order, and the conditions under which they are done.
///
/// Conditions see the state before it; each request sees what those before it did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Txn {
    conditions: Parts,
    requests: Parts,
    writes: bool,
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnCondition<B = Bytes> {
    /// The bucket.
    pub path: Path,
    /// The key.
    pub key: B,
    /// What is to be so of it.
    pub cond: Cond<B>,
}

/// Why something cannot become a part of a transaction, which is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TxnError {
    /// A field is longer than the wire can carry.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// There are as many of them as can be.
    #[error("a transaction has at most {MAX_TXN_PARTS} {what}")]
    TooMany {
        /// Conditions or requests.
        what: &'static str,
    },
    /// It is done by itself only.
    #[error("{name} cannot be part of a transaction")]
    NotWithin {
        /// The operation's name.
        name: &'static str,
    },
}

/// Conditions or requests, as on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Parts {
    count: u16,
    wire: Bytes,
}

/// The conditions of a transaction, read off one by one.
#[derive(Debug, Clone)]
pub struct TxnConditions(Left);

/// The requests of a transaction, read off one by one. Each is a read, a write or a stream.
#[derive(Debug, Clone)]
pub struct TxnRequests(Left);

/// What is left of some parts.
#[derive(Debug, Clone)]
struct Left {
    count: u16,
    fields: Fields,
}

impl Txn {
    /// A transaction of nothing, to be added to.
    #[must_use]
    pub fn builder() -> TxnBuilder {
        TxnBuilder::default()
    }

    /// Its conditions, in their order.
    #[must_use]
    pub fn conditions(&self) -> TxnConditions {
        TxnConditions(self.conditions.left())
    }

    /// Its requests, in their order.
    #[must_use]
    pub fn requests(&self) -> TxnRequests {
        TxnRequests(self.requests.left())
    }

    /// Whether a request of it is a write.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.writes
    }

    /// How many bytes its parts have together.
    #[must_use]
    pub const fn variable_len(&self) -> usize {
        self.conditions.wire.len() + self.requests.wire.len()
    }

    /// The same transaction, its requests' bytes held as `hold` says. For whoever keeps account of memory.
    #[must_use]
    pub fn held(mut self, hold: impl FnOnce(Bytes) -> Bytes) -> Self {
        self.requests.wire = hold(self.requests.wire);
        self
    }

    /// What each of its results looks like.
    pub fn expects(&self) -> impl Iterator<Item = Expect> + use<> {
        self.requests().filter_map(|request| request.expects())
    }

    pub(super) fn detach(&mut self) {
        detach([Some(&mut self.conditions.wire), Some(&mut self.requests.wire)]);
    }

    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let mut writes = false;
        let conditions = Parts::decode(fields, "number of conditions", "condition", |fields| {
            TxnCondition::decode(fields).map(drop)
        })?;
        let requests = Parts::decode(fields, "number of requests", "request", |fields| {
            writes |= matches!(decode_request(fields)?, Request::Write(_));
            Ok(())
        })?;
        Ok(Self { conditions, requests, writes })
    }

    #[expect(clippy::unnecessary_wraps, reason = "other requests' bodies can be too long, and it stands beside them")]
    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        for parts in [&self.conditions, &self.requests] {
            out.reserve(2 + parts.wire.len());
            out.put_u16(parts.count);
            out.put_slice(&parts.wire);
        }
        Ok(())
    }
}

impl<B> From<Txn> for Request<B> {
    /// A write if a request of it is one; otherwise it is answered in steps.
    fn from(txn: Txn) -> Self {
        if txn.writes { WriteRequest::Txn(txn).into() } else { StreamRequest::Txn(txn).into() }
    }
}

impl Parts {
    fn left(&self) -> Left {
        Left { count: self.count, fields: Fields::new(self.wire.clone()) }
    }

    /// Looks over as many parts as the wire says there are.
    fn decode(
        fields: &mut Fields,
        count_field: &'static str,
        what: &'static str,
        mut part: impl FnMut(&mut Fields) -> Result<(), DecodeError>,
    ) -> Result<Self, DecodeError> {
        let count = fields.u16(count_field)?;
        let wire = fields.rest().clone();
        for index in 0..count {
            part(fields).map_err(|error| DecodeError::Part { part: what, index, error: error.into() })?;
        }
        let len = wire.len() - fields.rest().len();
        Ok(Self { count, wire: wire.slice(..len) })
    }
}

/// A request within a transaction: `op u8`, then its body as `bytes32`.
fn decode_request(fields: &mut Fields) -> Result<Request, DecodeError> {
    let number = fields.u8("op")?;
    let op = Op::from_u8(number).ok_or(DecodeError::Unknown { what: "operation", number })?;
    if !may_be_within(op) {
        return Err(DecodeError::NotWithinTxn { name: op.name() });
    }
    let request = decode_body(op, fields.bytes32("request")?)?;
    if is_by_itself(&request) {
        return Err(DecodeError::NotWithinTxn { name: BucketOp::Stat.name() });
    }
    Ok(request)
}

/// Whether a request of an operation that can be part of a transaction is done by itself only: all pages of a bucket are no
/// work for a transaction, which others may have to wait for.
const fn is_by_itself<B>(request: &Request<B>) -> bool {
    matches!(request, Request::Stream(StreamRequest::BucketStat(_)))
}

/// Whether requests of this kind can be part of a transaction: those that are about what is stored.
const fn may_be_within(op: Op) -> bool {
    !matches!(
        op,
        Op::Hello
            | Op::Ping
            | Op::Txn
            | Op::Snapshot
            | Op::Stats
            | Op::Backup
            | Op::Shrink
            | Op::Watch
            | Op::ClientList
            | Op::ClientKill
            | Op::SlowlogGet
            | Op::SlowlogReset
            | Op::Credit
            | Op::Cancel
    )
}

impl TxnCondition {
    fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self { path: Path::decode(fields)?, key: fields.str16("key")?, cond: Cond::decode(fields)? })
    }
}

impl Left {
    fn next<T>(&mut self, part: impl FnOnce(&mut Fields) -> Result<T, DecodeError>) -> Option<T> {
        self.count = self.count.checked_sub(1)?;
        // All of them were looked over before.
        part(&mut self.fields).ok()
    }
}

impl Iterator for TxnConditions {
    type Item = TxnCondition;

    fn next(&mut self) -> Option<TxnCondition> {
        self.0.next(TxnCondition::decode)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.count.into(), Some(self.0.count.into()))
    }
}

impl Iterator for TxnRequests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.0.next(decode_request)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.count.into(), Some(self.0.count.into()))
    }
}

impl ExactSizeIterator for TxnConditions {}
impl ExactSizeIterator for TxnRequests {}

/// A transaction that is being put together.
///
/// ```
/// # use boltkv_protocol::{Cond, Path, ReadRequest, Txn, WriteRequest};
/// let path: Path = "accounts".parse()?;
/// let mut txn = Txn::builder();
/// txn.condition(&path, b"ada", &Cond::IfEquals("10"))?;
/// txn.request(&WriteRequest::Set { path: path.clone(), key: "ada", value: "7", cond: Cond::Always }.into())?;
/// txn.request(&ReadRequest::Get { path, key: "bob" }.into())?;
/// assert!(txn.build().writes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TxnBuilder {
    conditions: Building,
    requests: Building,
    writes: bool,
}

#[derive(Debug, Clone, Default)]
struct Building {
    count: u16,
    wire: BytesMut,
}

impl TxnBuilder {
    /// Adds a condition.
    ///
    /// # Errors
    /// There are [`MAX_TXN_PARTS`] already, or a field is longer than the wire can carry.
    pub fn condition<B: AsRef<[u8]>>(&mut self, path: &Path, key: &[u8], cond: &Cond<B>) -> Result<(), TxnError> {
        self.conditions.add("conditions", |out| {
            out.put_slice(path.as_wire());
            put_str16(out, "key", key)?;
            cond.encode(out)
        })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// There are [`MAX_TXN_PARTS`] already, a field is longer than the wire can carry, or it is a request that is done by
    /// itself only.
    pub fn request<B: AsRef<[u8]>>(&mut self, request: &Request<B>) -> Result<(), TxnError> {
        let op = request.op();
        if !may_be_within(op) || matches!(request, Request::OfSnapshot { .. }) {
            return Err(TxnError::NotWithin { name: op.name() });
        }
        if is_by_itself(request) {
            return Err(TxnError::NotWithin { name: BucketOp::Stat.name() });
        }
        self.requests.add("requests", |out| {
            out.put_u8(op as u8);
            put_with_len(out, |out| request.encode_body(out))
        })?;
        self.writes |= matches!(request, Request::Write(_));
        Ok(())
    }

    /// How many requests it has.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.count.into()
    }

    /// How long its frame is so far, header included, in bytes.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        HEADER_LEN + 2 + self.conditions.wire.len() + 2 + self.requests.wire.len()
    }

    /// The transaction.
    #[must_use]
    pub fn build(self) -> Txn {
        let parts = |building: Building| Parts { count: building.count, wire: building.wire.freeze() };
        Txn { conditions: parts(self.conditions), requests: parts(self.requests), writes: self.writes }
    }
}

impl Building {
    fn add(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
    ) -> Result<(), TxnError> {
        let count = self.count.checked_add(1).ok_or(TxnError::TooMany { what })?;
        let before = self.wire.len();
        if let Err(error) = write(&mut self.wire) {
            self.wire.truncate(before);
            return Err(error.into());
        }
        self.count = count;
        Ok(())
    }
}

/// Writes what `body` writes as `bytes32`.
pub(crate) fn put_with_len(
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u32(0);
    body(out)?;
    let len = out.len() - start - 4;
    let over = EncodeError { field: "request", len, limit: crate::MAX_FRAME_LIMIT };
    let field = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut).ok_or(over.clone())?;
    *field = u32::try_from(len).map_err(|_| over)?.to_be_bytes();
    Ok(())
}
