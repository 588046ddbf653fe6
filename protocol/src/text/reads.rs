//! The reads that one line asks for, made one by one: a line of many words takes no more memory than its bytes.

use super::word::{WordError, Words};
use crate::{Path, ReadRequest};

/// The keys of a line that asks for several values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    words: Words,
    path: Path,
}

impl Reads {
    /// The reads of a line whose words are keys in this bucket; `None` for a line without any.
    pub(super) fn new(words: Words, path: Path) -> Result<Option<Self>, WordError> {
        let mut looked_at = words.clone();
        if looked_at.next()?.is_none() {
            return Ok(None);
        }
        // A word that breaks the rules makes the whole line wrong.
        while looked_at.next()?.is_some() {}
        Ok(Some(Self { words, path }))
    }
}

impl Iterator for Reads {
    type Item = ReadRequest;

    fn next(&mut self) -> Option<ReadRequest> {
        // All words were looked at before.
        let key = self.words.next().ok().flatten()?;
        Some(ReadRequest::Get { path: self.path.clone(), key })
    }
}
