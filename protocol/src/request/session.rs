//! What concerns the connection itself: its opening, its snapshots, and the streams that are under way on it.

use bytes::{BufMut, Bytes, BytesMut};

use super::{OperatorRequest, SnapshotRequest};
use crate::field::{DecodeError, EncodeError, Fields, put_str16};
use crate::{Expect, Op, Token};

/// The first field of HELLO: `BKV1`.
pub const MAGIC: u32 = u32::from_be_bytes(*b"BKV1");
/// The version of the protocol that this crate speaks.
pub const VERSION: u8 = 1;

/// What concerns the connection itself, or the server. Binary connections have them; lines of text ask in their own way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRequest {
    /// Opens a binary connection.
    Hello(Hello),
    /// The server's figures.
    Stats,
    /// Opens or closes a snapshot.
    Snapshot(SnapshotRequest),
    /// It concerns the server and all its connections.
    Operator(OperatorRequest),
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
    pub token: Token,
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
            token: Token::NONE,
        }
    }

    /// The highest version that this client and this crate both speak, if any.
    #[must_use]
    pub fn common_version(&self) -> Option<u8> {
        (self.min_version..=self.max_version).contains(&VERSION).then_some(VERSION)
    }

    pub(super) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let magic = fields.u32("magic")?;
        if magic != MAGIC {
            return Err(DecodeError::BadValue { field: "magic", value: magic.into() });
        }
        Ok(Self {
            magic,
            min_version: fields.u8("min version")?,
            max_version: fields.u8("max version")?,
            features: fields.u32("features")?,
            client: fields.str16("client name")?,
            token: fields.str16("token")?.into(),
        })
    }

    fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.magic);
        out.put_u8(self.min_version);
        out.put_u8(self.max_version);
        out.put_u32(self.features);
        put_str16(out, "client name", &self.client)?;
        put_str16(out, "token", self.token.secret())
    }
}

impl SessionRequest {
    pub(super) const fn op(&self) -> Op {
        match self {
            Self::Hello(_) => Op::Hello,
            Self::Stats => Op::Stats,
            Self::Snapshot(_) => Op::Snapshot,
            Self::Operator(request) => request.op(),
            Self::Credit { .. } => Op::Credit,
            Self::Cancel { .. } => Op::Cancel,
        }
    }

    pub(super) const fn expects(&self) -> Option<Expect> {
        match self {
            Self::Hello(_) => Some(Expect::Hello),
            Self::Stats => Some(Expect::Stats),
            Self::Snapshot(request) => Some(request.expects()),
            Self::Operator(request) => Some(request.expects()),
            Self::Credit { .. } | Self::Cancel { .. } => None,
        }
    }

    pub(super) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Hello(hello) => return hello.encode(out),
            Self::Stats => {}
            Self::Snapshot(request) => request.encode_body(out),
            Self::Operator(request) => request.encode_body(out),
            Self::Credit { stream, bytes } => {
                out.put_u32(*stream);
                out.put_u32(*bytes);
            }
            Self::Cancel { stream } => out.put_u32(*stream),
        }
        Ok(())
    }
}
