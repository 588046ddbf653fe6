//! What a key holds, in the form that Redis gives it in DUMP: a type, the value, the form's version in two bytes, and a checksum.
//!
//! What is read here may come from anywhere: no length is believed before the bytes are there.

#[cfg(test)]
mod tests;

use boltkv_protocol::ErrorCode;

use super::failure::Failure;

/// The version that is written: Redis 7.0's.
const VERSION: u16 = 10;
/// The newest one whose values look as they do here: Redis 7.4's.
const NEWEST: u16 = 12;

const TYPE_STRING: u8 = 0;
const TYPE_HASH: u8 = 4;
const TYPE_HASH_ZIPLIST: u8 = 13;
const TYPE_HASH_LISTPACK: u8 = 16;

/// Bytes behind the value.
const FOOTER: usize = 10;

/// A value as it stands in a dump.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dumped {
    String(Vec<u8>),
    /// Fields with their values.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Dumped {
    /// How many bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::String(value) => value.len(),
            Self::Hash(fields) => fields.iter().map(|(field, value)| field.len() + value.len() + 2 * BESIDE).sum(),
        }
    }
}

fn bad_format() -> Failure {
    Failure::say(ErrorCode::IncompatibleValue, "ERR Bad data format")
}

/// Writes a value.
pub(super) fn write_string(value: &[u8]) -> Vec<u8> {
    let mut out = vec![TYPE_STRING];
    put_string(value, &mut out);
    finish(out)
}

/// Begins a hash of so many fields, which [`put_string`] adds, each with its value.
pub(super) fn begin_hash(fields: usize) -> Vec<u8> {
    let mut out = vec![TYPE_HASH];
    put_len(fields, &mut out);
    out
}

/// Adds the version and the checksum.
pub(super) fn finish(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

pub(super) fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_len(len: usize, out: &mut Vec<u8>) {
    match len {
        0..0x40 => out.extend(u8::try_from(len)),
        0x40..0x4000 => out.extend(u16::try_from(len).map(|len| (len | 0x4000).to_be_bytes()).into_iter().flatten()),
        _ => {
            // Lengths are far below what 32 bits can say; those that were not would be said so, too.
            out.push(0x81);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// Reads what DUMP gave, if that takes no more than `most` bytes: what was packed can be a thousand times as long.
pub(super) fn read(dump: &[u8], most: usize) -> Result<Dumped, Failure> {
    let wrong = || Failure::say(ErrorCode::IncompatibleValue, "ERR DUMP payload version or checksum are wrong");
    let (value, footer) = dump.split_at_checked(dump.len().wrapping_sub(FOOTER)).ok_or_else(wrong)?;
    let (version, checksum) = footer.split_at(2);
    let version = u16::from_le_bytes([version[0], version[1]]);
    // Redis leaves the checksum out where it is told to: then it is 0.
    let is_whole = checksum.iter().all(|byte| *byte == 0) || crc64(&dump[..dump.len() - 8]).to_le_bytes() == checksum;
    if version > NEWEST || !is_whole {
        return Err(wrong());
    }
    let mut reader = Reader(value, most);
    let kind = reader.byte().ok_or_else(bad_format)?;
    let read = match kind {
        TYPE_STRING => reader.string().map(Dumped::String),
        TYPE_HASH => reader.hash(),
        TYPE_HASH_ZIPLIST => reader.string().and_then(|list| pairs(ziplist(&list, most)?)),
        TYPE_HASH_LISTPACK => reader.string().and_then(|list| pairs(listpack(&list, most)?)),
        _ => {
            let line = format!("ERR this dump holds type {kind} of Redis; only strings and hashes can be restored");
            return Err(Failure::new(ErrorCode::Unsupported, line));
        }
    };
    // What is out of room has none left.
    let failure = if reader.1 == 0 { Failure::string_too_long } else { bad_format };
    read.filter(|_| reader.0.is_empty()).ok_or_else(failure)
}

fn pairs(list: Vec<Vec<u8>>) -> Option<Dumped> {
    let mut words = list.into_iter();
    let mut fields = Vec::with_capacity(words.len() / 2);
    while let Some(field) = words.next() {
        fields.push((field, words.next()?));
    }
    (!fields.is_empty()).then_some(Dumped::Hash(fields))
}

/// What is left to read, and how many bytes may yet be made of it.
struct Reader<'d>(&'d [u8], usize);

/// Bytes that a string takes beside its own.
const BESIDE: usize = 64;

/// A length, or how the string that follows is written otherwise.
enum Len {
    Bytes(usize),
    Encoded(u8),
}

impl<'d> Reader<'d> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn take(&mut self, len: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes room for a string.
    fn spend(&mut self, len: usize) -> Option<()> {
        let left = self.1.checked_sub(len.saturating_add(BESIDE));
        self.1 = left.unwrap_or(0);
        left.map(drop)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn len(&mut self) -> Option<Len> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Some(match first >> 6 {
            0 => Len::Bytes(low.into()),
            1 => Len::Bytes(u16::from_be_bytes([low, self.byte()?]).into()),
            2 if first == 0x80 => Len::Bytes(usize::try_from(u32::from_be_bytes(self.array()?)).ok()?),
            2 if first == 0x81 => Len::Bytes(usize::try_from(u64::from_be_bytes(self.array()?)).ok()?),
            3 => Len::Encoded(low),
            _ => return None,
        })
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let number = match self.len()? {
            Len::Bytes(len) => {
                self.spend(len)?;
                return self.take(len).map(<[u8]>::to_vec);
            }
            Len::Encoded(0) => i64::from(i8::from_le_bytes(self.array()?)),
            Len::Encoded(1) => i16::from_le_bytes(self.array()?).into(),
            Len::Encoded(2) => i32::from_le_bytes(self.array()?).into(),
            Len::Encoded(3) => {
                let (Len::Bytes(packed), Len::Bytes(len)) = (self.len()?, self.len()?) else { return None };
                self.spend(len)?;
                return unpack(self.take(packed)?, len);
            }
            Len::Encoded(_) => return None,
        };
        self.spend(0)?;
        Some(number.to_string().into_bytes())
    }

    fn hash(&mut self) -> Option<Dumped> {
        let Len::Bytes(fields) = self.len()? else { return None };
        let mut list = Vec::new();
        // Each takes two bytes at the least: no more are there than that.
        for _ in 0..fields.checked_mul(2).filter(|words| *words <= self.0.len())? {
            list.push(self.string()?);
        }
        pairs(list)
    }
}

/// Bytes that were packed by LZF: pieces as they are, and pieces that came before.
fn unpack(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    // A byte stands for 264 at the most.
    if len / 264 > packed.len() {
        return None;
    }
    let mut reader = Reader(packed, 0);
    let mut out = Vec::with_capacity(len);
    while let Some(control) = reader.byte() {
        if control < 0x20 {
            out.extend_from_slice(reader.take(usize::from(control) + 1)?);
            continue;
        }
        let mut run = usize::from(control >> 5);
        if run == 7 {
            run += usize::from(reader.byte()?);
        }
        let back = (usize::from(control & 0x1f) << 8 | usize::from(reader.byte()?)) + 1;
        let from = out.len().checked_sub(back)?;
        if out.len() + run + 2 > len {
            return None;
        }
        for at in from..from + run + 2 {
            out.push(out[at]);
        }
    }
    (out.len() == len).then_some(out)
}

/// The entries of a list as Redis 7 keeps a small hash.
fn listpack(list: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(list, most);
    let total: [u8; 4] = reader.array()?;
    reader.take(2)?;
    if usize::try_from(u32::from_le_bytes(total)).ok()? != list.len() {
        return None;
    }
    let mut entries = Vec::new();
    loop {
        let before = reader.0.len();
        let first = reader.byte()?;
        reader.spend(0)?;
        let number = match first {
            0xff => return reader.0.is_empty().then_some(entries),
            0x00..0x80 => Some(i64::from(first)),
            0x80..0xc0 => {
                entries.push(reader.take((first & 0x3f).into())?.to_vec());
                None
            }
            // 13 bits with a sign.
            0xc0..0xe0 => Some(i64::from(i16::from_be_bytes([first << 3, 0]) >> 3) | i64::from(reader.byte()?)),
            0xe0..0xf0 => {
                let len = usize::from(u16::from_be_bytes([first & 0x0f, reader.byte()?]));
                entries.push(reader.take(len)?.to_vec());
                None
            }
            0xf0 => {
                let len = usize::try_from(u32::from_le_bytes(reader.array()?)).ok()?;
                entries.push(reader.take(len)?.to_vec());
                None
            }
            0xf1 => Some(i16::from_le_bytes(reader.array()?).into()),
            0xf2 => Some(int24(reader.array()?)),
            0xf3 => Some(i32::from_le_bytes(reader.array()?).into()),
            0xf4 => Some(i64::from_le_bytes(reader.array()?)),
            _ => return None,
        };
        entries.extend(number.map(|number| number.to_string().into_bytes()));
        // Behind each entry stands its length, seven bits a byte, for who comes from the end.
        let len = before - reader.0.len();
        reader.take(match len {
            0..128 => 1,
            128..16_384 => 2,
            16_384..2_097_152 => 3,
            2_097_152..268_435_456 => 4,
            _ => 5,
        })?;
    }
}

/// The same as Redis kept it before 7.
fn ziplist(list: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(list, most);
    let total: [u8; 4] = reader.array()?;
    reader.take(6)?;
    if usize::try_from(u32::from_le_bytes(total)).ok()? != list.len() {
        return None;
    }
    let mut entries = Vec::new();
    loop {
        // The length of the entry before.
        match reader.byte()? {
            0xff => return reader.0.is_empty().then_some(entries),
            0xfe => drop(reader.take(4)?),
            _ => {}
        }
        let first = reader.byte()?;
        reader.spend(0)?;
        let number = match first {
            0x00..0x40 => {
                entries.push(reader.take(first.into())?.to_vec());
                continue;
            }
            0x40..0x80 => {
                let len = usize::from(u16::from_be_bytes([first & 0x3f, reader.byte()?]));
                entries.push(reader.take(len)?.to_vec());
                continue;
            }
            0x80..0xc0 => {
                let len = usize::try_from(u32::from_be_bytes(reader.array()?)).ok()?;
                entries.push(reader.take(len)?.to_vec());
                continue;
            }
            0xc0 => i16::from_le_bytes(reader.array()?).into(),
            0xd0 => i32::from_le_bytes(reader.array()?).into(),
            0xe0 => i64::from_le_bytes(reader.array()?),
            0xf0 => int24(reader.array()?),
            0xfe => i8::from_le_bytes(reader.array()?).into(),
            0xf1..=0xfd => i64::from(first & 0x0f) - 1,
            _ => return None,
        };
        entries.push(number.to_string().into_bytes());
    }
}

fn int24(bytes: [u8; 3]) -> i64 {
    let [low, middle, high] = bytes;
    (i32::from_le_bytes([0, low, middle, high]) >> 8).into()
}

/// The checksum (Jones' polynomial, reflected).
fn crc64(bytes: &[u8]) -> u64 {
    const TABLE: [u64; 256] = {
        let (mut table, mut byte) = ([0; 256], 0);
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u64, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ crc >> 8)
}
