//! The words of a request.

use std::fmt;

use bytes::Bytes;

use crate::detach::detach;

/// The words of a request: its name and its arguments, as slices of what was received.
#[derive(Clone, PartialEq, Eq)]
pub struct Args {
    bytes: Bytes,
    /// Where each word begins and ends.
    at: Box<[(u32, u32)]>,
}

impl Args {
    /// Words that lie in `bytes`, each from the first number up to the second.
    pub(super) fn new(bytes: Bytes, at: Vec<(u32, u32)>) -> Self {
        Self { bytes, at: at.into_boxed_slice() }
    }

    /// Words that lie anywhere.
    #[must_use]
    pub fn of<W: AsRef<[u8]>>(words: &[W]) -> Self {
        let (mut bytes, mut at) = (Vec::new(), Vec::with_capacity(words.len()));
        for word in words {
            let begins = position(bytes.len());
            bytes.extend_from_slice(word.as_ref());
            at.push((begins, position(bytes.len())));
        }
        Self::new(bytes.into(), at)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The word at `index`, empty where there is none.
    #[must_use]
    pub fn word(&self, index: usize) -> &[u8] {
        self.get(index).unwrap_or_default()
    }

    /// The word at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (begins, ends) = *self.at.get(index)?;
        self.bytes.get(begins as usize..ends as usize)
    }

    /// The word at `index`, as a part of the same memory; empty where there is none.
    #[must_use]
    pub fn slice(&self, index: usize) -> Bytes {
        self.get(index).map_or_else(Bytes::new, |word| self.bytes.slice_ref(word))
    }

    /// All of them, from `index` on.
    pub fn from(&self, index: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let at = self.at.get(index..).unwrap_or_default();
        at.iter().map(|(begins, ends)| self.bytes.get(*begins as usize..*ends as usize).unwrap_or_default())
    }

    /// How many bytes they keep in memory.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.at)
    }

    /// The same words, and what holds their memory in another way, such as by a lease.
    #[must_use]
    pub fn held(self, hold: impl FnOnce(Bytes) -> Bytes) -> Self {
        Self { bytes: hold(self.bytes), at: self.at }
    }

    /// The same words, which keep no larger buffer that they were received in.
    #[must_use]
    pub fn detached(mut self) -> Self {
        detach([Some(&mut self.bytes)]);
        self
    }
}

/// Words are found by 32 bits: nothing that is received is longer ([`RespCodec`](super::RespCodec) sees to it).
pub(super) fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Values are nobody's business: of all words but the first, how long they are.
impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lens: Vec<_> = self.at.iter().skip(1).map(|(begins, ends)| ends - begins).collect();
        write!(f, "Args({:?} {lens:?})", self.word(0).escape_ascii().to_string())
    }
}
