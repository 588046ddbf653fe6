//! An entry, and what a record says was done: with the buckets' paths, where the record has only numbers.

use std::path::Path;

use super::JournalEntryKind;
use crate::journal::Listed;
use crate::tree::{Effect, EffectsReader};
use crate::{Error, Result, TxId};

/// How many names of a path are handed over: the innermost ones. A record may have millions of buckets, each in the one
/// before.
const MOST_NAMES: usize = 256;

/// An entry of a segment.
pub struct JournalEntry<'a>(Listed<'a>);

/// One change that a transaction has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalEffect<'a> {
    /// The bucket, from the top down; empty for the top. Of a path of more than 256 names, the innermost 256.
    pub path: &'a [&'a [u8]],
    /// What was done in it.
    pub change: JournalChange<'a>,
}

/// What was done in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalChange<'a> {
    /// A value was put.
    Put {
        /// Its key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// A key was deleted.
    Deleted {
        /// The key.
        key: &'a [u8],
    },
    /// All keys from the first to the last, both among them.
    RangeDeleted {
        /// The first one.
        first: &'a [u8],
        /// The last one.
        last: &'a [u8],
    },
    /// A bucket was created.
    BucketCreated {
        /// Its name.
        name: &'a [u8],
    },
    /// A bucket was deleted, with all in it.
    BucketDeleted {
        /// Its name.
        name: &'a [u8],
    },
    /// A bucket was moved away, or got another name.
    BucketMoved {
        /// Its name.
        name: &'a [u8],
        /// Its new path, which ends in its name there; at least that name, and otherwise as [`JournalEffect::path`].
        to: &'a [&'a [u8]],
    },
    /// The bucket's sequence was set.
    Sequence {
        /// Its value from then on.
        sequence: u64,
    },
}

impl<'a> JournalEntry<'a> {
    pub(super) fn new(listed: Listed<'a>) -> Self {
        Self(listed)
    }

    /// The number of the segment in which it begins.
    #[must_use]
    pub fn segment(&self) -> u64 {
        self.0.segment.number
    }

    /// The byte of the segment at which it begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> JournalEntryKind {
        self.0.entry.kind.into()
    }

    /// A record's transaction; of a link the last one that its meta contains; of a close the last one there was.
    #[must_use]
    pub fn txid(&self) -> TxId {
        self.0.entry.txid
    }

    /// When it was written, in milliseconds since 1970.
    #[must_use]
    pub fn time_ms(&self) -> u64 {
        self.0.entry.time_ms
    }

    /// Bytes that it takes, without what fills its last block.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether it, and all before it in its segment, is as it was written.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.is_whole
    }

    /// Hands over what the transaction has done, in order. Nothing of an entry that is no record or not whole. Takes as much
    /// memory as the record has bytes.
    ///
    /// # Errors
    /// [`Error::JournalIo`]; [`Error::JournalDamaged`] where the bytes are no effects; what `each` returns.
    pub fn effects<E: From<Error>>(self, each: impl FnMut(&JournalEffect<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.kind() != JournalEntryKind::Record || !self.is_whole() {
            return Ok(());
        }
        let (file, offset, txid) = (self.0.file().to_path_buf(), self.0.offset, self.txid());
        let bytes = self.0.payload()?;
        each_effect(&bytes, txid, &file, offset, each)
    }
}

/// Hands over what a record has done; errors name the file and the byte of the record's beginning.
pub(super) fn each_effect<E: From<Error>>(
    bytes: &[u8],
    txid: TxId,
    file: &Path,
    offset: u64,
    mut each: impl FnMut(&JournalEffect<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let damaged = |at: usize, what: &str| {
        let what = format!("transaction {txid}, effect at byte {at}: {what}");
        E::from(Error::JournalDamaged { file: file.into(), offset, what })
    };
    let (mut buckets, mut reader) = (Buckets::default(), EffectsReader::new(bytes));
    loop {
        let at = reader.at();
        let Some(effect) = reader.next() else { return Ok(()) };
        let effect = effect.map_err(|unreadable| damaged(unreadable.at, unreadable.what))?;
        let Some((bucket, change)) = buckets.change(effect).map_err(|what| damaged(at, what))? else { continue };
        let path = buckets.path(bucket).map_err(|what| damaged(at, what))?;
        let Effect::Moved { name, to, its_name, .. } = effect else {
            each(&JournalEffect { path: &path, change })?;
            continue;
        };
        let mut to = buckets.path(to).map_err(|what| damaged(at, what))?;
        to.push(its_name);
        each(&JournalEffect { path: &path, change: JournalChange::BucketMoved { name, to: &to } })?;
        buckets.forget();
    }
}

/// The buckets that a record gives numbers to.
#[derive(Default)]
struct Buckets<'a> {
    /// Where each is, and its name, by its number, from 1 on.
    known: Vec<(u32, &'a [u8])>,
    /// Those up to this one stand for nothing any more.
    forgotten: usize,
}

impl<'a> Buckets<'a> {
    /// The bucket that an effect is about, and what it does there; `None` where it changes nothing.
    fn change(&mut self, effect: Effect<'a>) -> Result<Option<(u32, JournalChange<'a>)>, &'static str> {
        Ok(Some(match effect {
            Effect::Path { within, name } => {
                self.give(within, name)?;
                return Ok(None);
            }
            Effect::Created { within, name } => {
                self.give(within, name)?;
                (within, JournalChange::BucketCreated { name })
            }
            Effect::Put { bucket, key, value } => (bucket, JournalChange::Put { key, value }),
            Effect::Deleted { bucket, key } => (bucket, JournalChange::Deleted { key }),
            Effect::RangeDeleted { bucket, first, last } => (bucket, JournalChange::RangeDeleted { first, last }),
            Effect::BucketDeleted { within, name } => (within, JournalChange::BucketDeleted { name }),
            // Where to, is told by its path.
            Effect::Moved { from, name, .. } => (from, JournalChange::BucketMoved { name, to: &[] }),
            Effect::Sequence { bucket, sequence } => (bucket, JournalChange::Sequence { sequence }),
        }))
    }

    fn give(&mut self, within: u32, name: &'a [u8]) -> Result<(), &'static str> {
        if within != 0 {
            self.get(within)?;
        }
        self.known.push((within, name));
        Ok(())
    }

    fn get(&self, number: u32) -> Result<(u32, &'a [u8]), &'static str> {
        let index = (number as usize).checked_sub(1).filter(|&index| index >= self.forgotten);
        index.and_then(|index| self.known.get(index)).copied().ok_or("it names a bucket that has no number")
    }

    fn path(&self, mut bucket: u32) -> Result<Vec<&'a [u8]>, &'static str> {
        let mut path = Vec::new();
        while bucket != 0 && path.len() < MOST_NAMES {
            let (within, name) = self.get(bucket)?;
            path.push(name);
            bucket = within;
        }
        path.reverse();
        Ok(path)
    }

    fn forget(&mut self) {
        self.forgotten = self.known.len();
    }
}
