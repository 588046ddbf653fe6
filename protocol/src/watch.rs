//! WATCH: from where, and what of it.

use bytes::{BufMut, Bytes, BytesMut};

use crate::Path;
use crate::field::{DecodeError, EncodeError, Fields, put_str16};

/// What is watched, and from where on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watch {
    /// From where on.
    pub from: WatchFrom,
    /// The bucket whose changes are told, with all within it; the root is all there is.
    pub path: Path,
    /// What the keys of that bucket begin with, and the names of buckets in it; empty: all.
    pub prefix: Bytes,
    /// Whether values are left out.
    pub keys_only: bool,
}

/// From where on changes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchFrom {
    /// From now on: behind the newest transaction that no crash can take back.
    #[default]
    Now,
    /// Behind a transaction.
    Position(WatchPosition),
    /// Behind the oldest transaction that the server can tell.
    Oldest,
}

/// A transaction, as it is told from others that have had the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WatchPosition {
    /// Drawn by the server whenever it opens its file.
    pub epoch: u64,
    /// The transaction's number.
    pub txid: u64,
}

const OPTION_KEYS: u8 = 1;

impl Watch {
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let from = match fields.u8("from")? {
            0 => WatchFrom::Now,
            1 => WatchFrom::Position(WatchPosition::decode(fields)?),
            2 => WatchFrom::Oldest,
            value => return Err(DecodeError::BadValue { field: "from", value: value.into() }),
        };
        let (path, prefix) = (Path::decode(fields)?, fields.str16("prefix")?);
        let options = fields.u8("options")?;
        if options & !OPTION_KEYS != 0 {
            return Err(DecodeError::Unknown { what: "watch option", number: options & !OPTION_KEYS });
        }
        Ok(Self { from, path, prefix, keys_only: options & OPTION_KEYS != 0 })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self.from {
            WatchFrom::Now => out.put_u8(0),
            WatchFrom::Position(position) => {
                out.put_u8(1);
                position.encode(out);
            }
            WatchFrom::Oldest => out.put_u8(2),
        }
        out.put_slice(self.path.as_wire());
        put_str16(out, "prefix", &self.prefix)?;
        out.put_u8(if self.keys_only { OPTION_KEYS } else { 0 });
        Ok(())
    }
}

impl WatchPosition {
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self { epoch: fields.u64("epoch")?, txid: fields.u64("txid")? })
    }

    pub(crate) fn encode(self, out: &mut BytesMut) {
        out.put_u64(self.epoch);
        out.put_u64(self.txid);
    }

    /// As the detail of `SNAPSHOT_EXPIRED`, where what was asked for is not kept any more: the oldest position that is.
    #[must_use]
    pub fn to_detail(self) -> Bytes {
        let mut detail = BytesMut::with_capacity(16);
        self.encode(&mut detail);
        detail.freeze()
    }

    /// The oldest position that the detail of an error names.
    #[must_use]
    pub fn from_detail(detail: &Bytes) -> Option<Self> {
        Self::decode(&mut Fields::new(detail.clone())).ok()
    }
}
