//! The reply to HELLO.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_str16};

/// What the server agrees to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloReply {
    /// The version both speak.
    pub version: u8,
    /// The features both know, a bit each.
    pub features: u32,
    /// The longest frame either side may send, header included, in bytes.
    pub max_frame: u32,
    /// How many unanswered requests the server reads from one connection.
    pub max_in_flight: u32,
    /// How many streams one connection may have open.
    pub max_streams: u32,
    /// Whether the server refuses all writes.
    pub read_only: bool,
    /// What the server calls itself.
    pub server: Bytes,
}

impl HelloReply {
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self {
            version: fields.u8("version")?,
            features: fields.u32("features")?,
            max_frame: fields.u32("max_frame")?,
            max_in_flight: fields.u32("max_in_flight")?,
            max_streams: fields.u32("max_streams")?,
            read_only: fields.bool("read_only")?,
            server: fields.str16("server")?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u8(self.version);
        out.put_u32(self.features);
        out.put_u32(self.max_frame);
        out.put_u32(self.max_in_flight);
        out.put_u32(self.max_streams);
        out.put_u8(self.read_only.into());
        put_str16(out, "server", &self.server)
    }
}
