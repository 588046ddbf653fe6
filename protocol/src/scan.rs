//! Scans: which entries of a bucket to give, and how. SCAN and BUCKET LIST share it.

use std::num::NonZeroU64;

use bytes::{BufMut, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields};
use crate::{KeyRange, Path};

/// Which entries of a bucket to give, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// The bucket; the root is allowed.
    pub path: Path,
    /// Which keys.
    pub range: KeyRange,
    /// How.
    pub options: ScanOptions,
}

/// How a scan goes and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanOptions {
    /// From the highest key down.
    pub reverse: bool,
    /// What is given of each entry.
    pub mode: ScanMode,
    /// At most so many entries; `None` for all.
    pub limit: Option<NonZeroU64>,
}

/// What a scan gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScanMode {
    /// Keys and values.
    #[default]
    Entries,
    /// Keys with their kind; values are left empty.
    Keys,
    /// Only how many there are, in one frame.
    Count,
}

const OPTION_REVERSE: u8 = 1;
const OPTION_KEYS: u8 = 2;
const OPTION_COUNT: u8 = 4;

impl Scan {
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let path = Path::decode(fields)?;
        let range = KeyRange::decode(fields)?;
        let bits = fields.u8("options")?;
        let unknown = bits & !(OPTION_REVERSE | OPTION_KEYS | OPTION_COUNT);
        if unknown != 0 {
            return Err(DecodeError::Unknown { what: "scan option", number: unknown });
        }
        let mode = if bits & OPTION_COUNT != 0 {
            ScanMode::Count
        } else if bits & OPTION_KEYS != 0 {
            ScanMode::Keys
        } else {
            ScanMode::Entries
        };
        let limit = NonZeroU64::new(fields.u64("limit")?);
        Ok(Self { path, range, options: ScanOptions { reverse: bits & OPTION_REVERSE != 0, mode, limit } })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_slice(self.path.as_wire());
        self.range.encode(out)?;
        let reverse = if self.options.reverse { OPTION_REVERSE } else { 0 };
        let mode = match self.options.mode {
            ScanMode::Entries => 0,
            ScanMode::Keys => OPTION_KEYS,
            ScanMode::Count => OPTION_COUNT,
        };
        out.put_u8(reverse | mode);
        out.put_u64(self.options.limit.map_or(0, NonZeroU64::get));
        Ok(())
    }
}
