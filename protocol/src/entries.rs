//! The entries of a scan: `n u32`, then n × (kind, key, value), in as many frames as it takes.
//!
//! The server writes them straight from the mapped file into the connection's buffer; the client reads them as slices of it.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};
use crate::frame::{FLAG_MORE, FLAG_REPLY, HEADER_LEN, begin_frame, end_frame};

/// What an [`Entry`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// A key with its value.
    Value = 0,
    /// A bucket; the value is empty.
    Bucket = 1,
    /// A key whose value does not fit a frame; the value is its size, a big-endian `u64`.
    TooLarge = 2,
}

impl EntryKind {
    fn from_u8(kind: u8) -> Result<Self, DecodeError> {
        match kind {
            0 => Ok(Self::Value),
            1 => Ok(Self::Bucket),
            2 => Ok(Self::TooLarge),
            _ => Err(DecodeError::BadValue { field: "kind", value: kind.into() }),
        }
    }
}

/// One entry of a scan. Where only keys were asked for, the value is empty whatever the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<B = Bytes> {
    /// What it is.
    pub kind: EntryKind,
    /// The key, or the bucket's name.
    pub key: B,
    /// The value; see [`EntryKind`] for what it holds.
    pub value: B,
}

impl<B: AsRef<[u8]>> Entry<B> {
    /// The size in bytes of a value that did not fit; `None` for other kinds, and where only keys were asked for.
    #[must_use]
    pub fn value_size(&self) -> Option<u64> {
        if self.kind != EntryKind::TooLarge {
            return None;
        }
        self.value.as_ref().first_chunk().map(|size| u64::from_be_bytes(*size))
    }
}

/// The bytes an entry takes beside its key and value.
const ENTRY_OVERHEAD: usize = 1 + 2 + 4;
/// The count before the entries.
const COUNT_LEN: usize = 4;

/// Writes one frame of a scan in place, entry by entry.
///
/// ```
/// # use boltkv_protocol::{EntriesWriter, Entry, EntryKind};
/// # use bytes::BytesMut;
/// let mut out = BytesMut::new();
/// let mut frame = EntriesWriter::begin(&mut out, 7);
/// frame.push(&Entry { kind: EntryKind::Value, key: b"k", value: b"v" })?;
/// let more = false;
/// frame.finish(more)?;
/// # Ok::<(), boltkv_protocol::EncodeError>(())
/// ```
/// Dropped without [`finish`](Self::finish), it leaves the buffer as it was before [`begin`](Self::begin).
#[derive(Debug)]
pub struct EntriesWriter<'a> {
    out: &'a mut BytesMut,
    start: usize,
    count: u32,
    finished: bool,
}

impl<'a> EntriesWriter<'a> {
    /// Starts a frame of the reply to request `id` at the end of `out`.
    pub fn begin(out: &'a mut BytesMut, id: u32) -> Self {
        let start = begin_frame(out, id, 0, FLAG_REPLY);
        out.put_u32(0);
        Self { out, start, count: 0, finished: false }
    }

    /// The length of the frame so far, header included, in bytes.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        self.out.len() - self.start
    }

    /// How many entries the frame holds so far.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// How long a frame would be that held nothing but this entry, header included. What exceeds the connection's `max_frame`
    /// is sent as [`EntryKind::TooLarge`].
    #[must_use]
    pub const fn frame_len_of(key: &[u8], value: &[u8]) -> usize {
        HEADER_LEN + COUNT_LEN + Self::entry_len(key, value)
    }

    /// How many bytes this entry adds to a frame.
    #[must_use]
    pub const fn entry_len(key: &[u8], value: &[u8]) -> usize {
        ENTRY_OVERHEAD + key.len() + value.len()
    }

    /// Appends an entry. Whether it still fits `max_frame` is the caller's to see to, by [`frame_len`](Self::frame_len) and
    /// [`entry_len`](Self::entry_len).
    ///
    /// # Errors
    /// A key over 65,535 bytes, or a value over what a frame can hold; the frame is then as it was before.
    pub fn push<B: AsRef<[u8]>>(&mut self, entry: &Entry<B>) -> Result<(), EncodeError> {
        let before = self.out.len();
        let written = put_entry(self.out, entry);
        match written {
            Ok(()) => self.count += 1,
            Err(_) => self.out.truncate(before),
        }
        written
    }

    /// Completes the frame; `more` says that another frame of this reply follows.
    ///
    /// # Errors
    /// The frame is over [`MAX_FRAME_LIMIT`](crate::MAX_FRAME_LIMIT); nothing of it is left then.
    pub fn finish(mut self, more: bool) -> Result<(), EncodeError> {
        end_frame(self.out, self.start)?;
        let count = self.count.to_be_bytes();
        if let Some(frame) = self.out.get_mut(self.start..) {
            if more && let Some(flags) = frame.get_mut(HEADER_LEN - 1) {
                *flags |= FLAG_MORE;
            }
            if let Some(field) = frame.get_mut(HEADER_LEN..).and_then(<[u8]>::first_chunk_mut) {
                *field = count;
            }
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for EntriesWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

pub(crate) fn put_entry<B: AsRef<[u8]>>(out: &mut BytesMut, entry: &Entry<B>) -> Result<(), EncodeError> {
    out.put_u8(entry.kind as u8);
    put_str16(out, "key", entry.key.as_ref())?;
    put_bytes32(out, "value", entry.value.as_ref())
}

/// Appends a body of entries: what [`EntriesWriter`] does for those who have them all.
pub(crate) fn put_entries<B: AsRef<[u8]>>(out: &mut BytesMut, entries: &[Entry<B>]) -> Result<(), EncodeError> {
    let count = u32::try_from(entries.len()).map_err(|_| EncodeError {
        field: "entries",
        len: entries.len(),
        limit: crate::MAX_FRAME_LIMIT,
    })?;
    out.put_u32(count);
    entries.iter().try_for_each(|entry| put_entry(out, entry))
}

/// Reads the entries of one frame's body.
///
/// # Errors
/// A body that ends early, or a kind that is not known.
pub fn decode_entries(body: Bytes) -> Result<Vec<Entry>, DecodeError> {
    let most = body.len() / ENTRY_OVERHEAD;
    let mut fields = Fields::new(body);
    let count = fields.u32("n")?;
    // The count is the peer's word; the room made for it is bounded by the bytes that are there.
    let mut entries = Vec::with_capacity(most.min(usize::try_from(count).unwrap_or(usize::MAX)));
    for _ in 0..count {
        entries.push(Entry {
            kind: EntryKind::from_u8(fields.u8("kind")?)?,
            key: fields.str16("key")?,
            value: fields.bytes32("value")?,
        });
    }
    Ok(entries)
}
