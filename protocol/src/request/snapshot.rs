//! Snapshots that a connection holds open, and what is read as of one.

use bytes::{BufMut, Bytes, BytesMut};

use super::{ReadRequest, Request, StreamRequest};
use crate::field::{DecodeError, EncodeError, Fields};
use crate::frame::FLAG_SNAPSHOT;
use crate::{Expect, Op};

/// Opening and closing snapshots. One belongs to the connection that it was opened on, and ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotRequest {
    /// Holds the newest state open.
    Open {
        /// For how long it is wanted without being used, in milliseconds; 0: as the server likes.
        lease_ms: u32,
    },
    /// Lets one go.
    Close {
        /// Its id, from the reply to the opening.
        snapshot: u64,
    },
}

/// What can be read as of a snapshot: GET, EXPIRETIME, SCAN, BUCKET LIST, STAT and `GET_SEQUENCE`, and a transaction that only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotRead<B = Bytes> {
    /// It is answered at once.
    Read(ReadRequest<B>),
    /// It is answered in steps.
    Stream(StreamRequest),
}

impl SnapshotRequest {
    const OPEN: u8 = 1;
    const CLOSE: u8 = 2;

    pub(super) const fn expects(self) -> Expect {
        match self {
            Self::Open { .. } => Expect::Snapshot,
            Self::Close { .. } => Expect::Closed,
        }
    }

    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        match fields.u8("sub")? {
            Self::OPEN => Ok(Self::Open { lease_ms: fields.u32("lease")? }),
            Self::CLOSE => Ok(Self::Close { snapshot: fields.u64("snapshot")? }),
            number => Err(DecodeError::Unknown { what: "SNAPSHOT sub-operation", number }),
        }
    }

    pub(super) fn encode_body(self, out: &mut BytesMut) {
        match self {
            Self::Open { lease_ms } => {
                out.put_u8(Self::OPEN);
                out.put_u32(lease_ms);
            }
            Self::Close { snapshot } => {
                out.put_u8(Self::CLOSE);
                out.put_u64(snapshot);
            }
        }
    }
}

impl<B: AsRef<[u8]>> SnapshotRead<B> {
    pub(super) fn expects(&self) -> Expect {
        match self {
            Self::Read(request) => request.expects(),
            Self::Stream(request) => request.expects(),
        }
    }

    /// The operation's number.
    #[must_use]
    pub fn op(&self) -> Op {
        match self {
            Self::Read(request) => request.op(),
            Self::Stream(request) => request.op(),
        }
    }

    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Read(request) => request.encode_body(out),
            Self::Stream(request) => request.encode_body(out),
        }
    }
}

/// Reads a request that came with [`FLAG_SNAPSHOT`]: the snapshot's id, then what it would be without.
pub(super) fn decode_of_snapshot(op: Op, body: Bytes) -> Result<Request, DecodeError> {
    let has_no_snapshot = DecodeError::Unknown { what: "request flags", number: FLAG_SNAPSHOT };
    if !matches!(op, Op::Get | Op::ExpiryTime | Op::Scan | Op::Bucket | Op::Txn) {
        return Err(has_no_snapshot);
    }
    let mut fields = Fields::new(body);
    let snapshot = fields.u64("snapshot")?;
    let read = match super::decode_body(op, fields.into_rest())? {
        Request::Read(read @ (ReadRequest::Get { .. } | ReadRequest::ExpiryTime { .. } | ReadRequest::Sequence(_))) => {
            SnapshotRead::Read(read)
        }
        Request::Stream(StreamRequest::Backup | StreamRequest::Shrink) => return Err(has_no_snapshot),
        Request::Stream(stream) => SnapshotRead::Stream(stream),
        _ => return Err(has_no_snapshot),
    };
    Ok(Request::OfSnapshot { snapshot, read })
}
