//! What a transaction has changed, as WATCH tells it: in as many frames as it takes.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};
use crate::{HEADER_LEN, Path, WatchPosition};

/// Changes of one transaction; several of these, one after the other, where they do not fit one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes<B = Bytes> {
    /// The transaction. Where nothing was changed that is watched, how far the watch is.
    pub position: WatchPosition,
    /// When it was committed, in milliseconds since 1970; 0 where nothing was changed that is watched.
    pub time_ms: u64,
    /// Whether these are the transaction's last: from here on a watch can be gone on with.
    pub is_whole: bool,
    /// What was changed, in order.
    pub changes: Vec<Change<B>>,
}

/// What was done to a key or a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChangeKind {
    /// A value was put; it is empty where only keys are told.
    Put = 1,
    /// A value was put that does not fit a frame; the value is its size, a big-endian `u64`.
    PutTooLarge = 2,
    /// A key was deleted.
    Deleted = 3,
    /// All keys from this one to the one that the value is were deleted, both among them.
    RangeDeleted = 4,
    /// A bucket of this name was created.
    BucketCreated = 5,
    /// A bucket of this name was deleted, with all within.
    BucketDeleted = 6,
    /// A bucket of this name was moved, with all within, or renamed; the value is its new path.
    BucketMoved = 7,
    /// The bucket's sequence was set; the value is the sequence, a big-endian `u64`, and there is no key.
    Sequence = 8,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<B = Bytes> {
    /// What was done.
    pub kind: ChangeKind,
    /// The bucket in which it was done.
    pub path: Path,
    /// The key, or the name of a bucket.
    pub key: B,
    /// See [`ChangeKind`] for what it holds.
    pub value: B,
}

/// The bytes of a frame beside its changes, and of a change beside path, key and value.
const FRAME_OVERHEAD: usize = HEADER_LEN + 16 + 8 + 1 + 4;
const CHANGE_OVERHEAD: usize = 1 + 2 + 4;
/// The bytes of a change that holds nothing.
const SHORTEST: usize = CHANGE_OVERHEAD + 1;

impl ChangeKind {
    fn from_u8(kind: u8) -> Result<Self, DecodeError> {
        Ok(match kind {
            1 => Self::Put,
            2 => Self::PutTooLarge,
            3 => Self::Deleted,
            4 => Self::RangeDeleted,
            5 => Self::BucketCreated,
            6 => Self::BucketDeleted,
            7 => Self::BucketMoved,
            8 => Self::Sequence,
            _ => return Err(DecodeError::BadValue { field: "kind", value: kind.into() }),
        })
    }
}

impl Change {
    /// A bucket of `path` that was moved, or renamed, and lies at `to` now.
    #[must_use]
    pub fn moved(path: Path, name: Bytes, to: &Path) -> Self {
        Self { kind: ChangeKind::BucketMoved, path, key: name, value: Bytes::copy_from_slice(to.as_wire()) }
    }

    /// The new path of a bucket that was moved, or renamed; `None` for other kinds.
    #[must_use]
    pub fn moved_to(&self) -> Option<Path> {
        let is_moved = self.kind == ChangeKind::BucketMoved;
        is_moved.then(|| Path::decode(&mut Fields::new(self.value.clone())).ok()).flatten()
    }
}

impl<B: AsRef<[u8]>> Change<B> {
    /// The number that the value of a [`ChangeKind::Sequence`] or a [`ChangeKind::PutTooLarge`] is; `None` for other kinds.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let is_number = matches!(self.kind, ChangeKind::Sequence | ChangeKind::PutTooLarge);
        self.value.as_ref().first_chunk().filter(|_| is_number).map(|number| u64::from_be_bytes(*number))
    }

    /// How many bytes it adds to a frame.
    #[must_use]
    pub fn frame_part(&self) -> usize {
        let (key, value) = (self.key.as_ref().len(), self.value.as_ref().len());
        CHANGE_OVERHEAD + self.path.as_wire().len() + key + value
    }
}

impl<B: AsRef<[u8]>> Changes<B> {
    /// The length of the frame that it makes, header included, in bytes.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        FRAME_OVERHEAD + self.changes.iter().map(Change::frame_part).sum::<usize>()
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let len = self.changes.len();
        let too_many = |_| EncodeError { field: "changes", len, limit: crate::MAX_FRAME_LIMIT };
        let count = u32::try_from(len).map_err(too_many)?;
        self.position.encode(out);
        out.put_u64(self.time_ms);
        out.put_u8(self.is_whole.into());
        out.put_u32(count);
        self.changes.iter().try_for_each(|change| {
            out.put_u8(change.kind as u8);
            out.put_slice(change.path.as_wire());
            put_str16(out, "key", change.key.as_ref())?;
            put_bytes32(out, "value", change.value.as_ref())
        })
    }
}

impl<B> Changes<B> {
    /// The length of a frame without changes, header included, in bytes.
    pub const SHORTEST_FRAME: usize = FRAME_OVERHEAD;
}

impl Changes {
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let (position, time_ms, is_whole) =
            (WatchPosition::decode(fields)?, fields.u64("time")?, fields.bool("whole")?);
        let count = fields.u32("n")?;
        // The count is the peer's word; the room made for it is bounded by the bytes that are there.
        let most = fields.peek().len() / SHORTEST;
        let mut changes = Vec::with_capacity(most.min(usize::try_from(count).unwrap_or(usize::MAX)));
        for _ in 0..count {
            changes.push(Change {
                kind: ChangeKind::from_u8(fields.u8("kind")?)?,
                path: Path::decode(fields)?,
                key: fields.str16("key")?,
                value: fields.bytes32("value")?,
            });
        }
        Ok(Self { position, time_ms, is_whole, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_frame_is_known_before_it_is_written() {
        let path = Path::from_names(["users", "eu"]).unwrap();
        let change = Change { kind: ChangeKind::Put, path: path.clone(), key: "k".into(), value: "value".into() };
        let moved = Change::moved(path.clone(), "b".into(), &Path::ROOT);
        assert_eq!((moved.moved_to(), change.moved_to(), change.number()), (Some(Path::ROOT), None, None));
        for changes in [vec![], vec![change.clone()], vec![change, moved]] {
            let changes = Changes { position: WatchPosition::default(), time_ms: 1, is_whole: true, changes };
            let mut out = BytesMut::new();
            changes.encode(&mut out).unwrap();
            assert_eq!(changes.frame_len(), HEADER_LEN + out.len());
        }
    }
}
