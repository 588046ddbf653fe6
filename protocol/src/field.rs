//! The fields that bodies are made of, read from and written to bytes. All integers are big-endian.
//!
//! Reading takes slices of the frame's own buffer and never copies; it checks every length before it looks, so a body cut
//! anywhere gives an error that names the field.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::{ErrorCode, ErrorReply};

/// Why a body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body ends before or within this field.
    #[error("the body ends within the field {field}")]
    Short {
        /// The field's name in the documentation.
        field: &'static str,
    },
    /// The field holds a number that has no meaning there.
    #[error("the field {field} cannot be {value}")]
    BadValue {
        /// The field's name in the documentation.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
    /// A number that this version has no operation for.
    #[error("{what} 0x{number:02x} is not known")]
    Unknown {
        /// What kind of number it is.
        what: &'static str,
        /// The number.
        number: u8,
    },
    /// An operation that is done by itself only.
    #[error("{name} cannot be part of a transaction")]
    NotWithinTxn {
        /// The operation's name.
        name: &'static str,
    },
    /// A part of a transaction that could not be read.
    #[error("{part} {index} of the transaction: {error}")]
    Part {
        /// What it is: a condition or a request.
        part: &'static str,
        /// Which one, from 0.
        index: u16,
        /// What is wrong with it.
        error: Box<DecodeError>,
    },
    /// A frame without the reply flag where a reply is due.
    #[error("the frame is not marked as a reply")]
    NotAReply,
}

impl DecodeError {
    /// The code a server answers with.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Short { .. } | Self::BadValue { .. } | Self::NotAReply => ErrorCode::Malformed,
            Self::Unknown { .. } | Self::NotWithinTxn { .. } => ErrorCode::Unsupported,
            Self::Part { error, .. } => error.code(),
        }
    }
}

impl From<DecodeError> for ErrorReply {
    fn from(error: DecodeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Why something could not be written as a frame. Nothing is written then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} of {len} bytes is over the limit of {limit}")]
pub struct EncodeError {
    /// The field's name in the documentation.
    pub field: &'static str,
    /// Its length in bytes.
    pub len: usize,
    /// The longest the wire can carry, in bytes.
    pub limit: usize,
}

/// Takes a body apart, field by field.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    rest: Bytes,
}

impl Fields {
    pub(crate) const fn new(body: Bytes) -> Self {
        Self { rest: body }
    }

    pub(crate) fn take(&mut self, len: usize, field: &'static str) -> Result<Bytes, DecodeError> {
        if self.rest.len() < len {
            return Err(DecodeError::Short { field });
        }
        Ok(self.rest.split_to(len))
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.rest.try_get_u8().map_err(|_| DecodeError::Short { field })
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.rest.try_get_u16().map_err(|_| DecodeError::Short { field })
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.rest.try_get_u32().map_err(|_| DecodeError::Short { field })
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.rest.try_get_u64().map_err(|_| DecodeError::Short { field })
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.rest.try_get_i64().map_err(|_| DecodeError::Short { field })
    }

    /// A `u8` that can only be 0 or 1.
    pub(crate) fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::BadValue { field, value: value.into() }),
        }
    }

    /// A `u16` length and that many bytes.
    pub(crate) fn str16(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let len = self.u16(field)?;
        self.take(len.into(), field)
    }

    /// A `u32` length and that many bytes.
    pub(crate) fn bytes32(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let len = self.u32(field)?;
        let len = usize::try_from(len).map_err(|_| DecodeError::Short { field })?;
        self.take(len, field)
    }

    /// What has not been read yet, without taking it.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.rest
    }

    /// What has not been read yet, without taking it, as a slice of the body.
    pub(crate) const fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// All that has not been read yet.
    pub(crate) fn into_rest(self) -> Bytes {
        self.rest
    }
}

/// The first room that a buffer of replies or requests is given: enough for a short one.
const FIRST: usize = 128;

/// Makes room for `len` bytes more. What has had none is given all of it at once, which takes a third of growing.
#[inline]
pub(crate) fn make_room(out: &mut BytesMut, len: usize) {
    if out.capacity() == 0 {
        *out = BytesMut::with_capacity(len.max(FIRST));
    } else {
        out.reserve(len);
    }
}

pub(crate) fn put_str16(out: &mut BytesMut, field: &'static str, bytes: &[u8]) -> Result<(), EncodeError> {
    let len = u16::try_from(bytes.len()).map_err(|_| EncodeError {
        field,
        len: bytes.len(),
        limit: usize::from(u16::MAX),
    })?;
    out.reserve(2 + bytes.len());
    out.put_u16(len);
    out.put_slice(bytes);
    Ok(())
}

pub(crate) fn put_bytes32(out: &mut BytesMut, field: &'static str, bytes: &[u8]) -> Result<(), EncodeError> {
    let len = u32::try_from(bytes.len()).map_err(|_| EncodeError {
        field,
        len: bytes.len(),
        limit: crate::MAX_FRAME_LIMIT,
    })?;
    out.reserve(4 + bytes.len());
    out.put_u32(len);
    out.put_slice(bytes);
    Ok(())
}
