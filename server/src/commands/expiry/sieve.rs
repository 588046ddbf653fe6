//! What lets through, of a bucket's entries as they come, only those that have not expired.
//!
//! It goes along with who walks through the bucket: each key with a time is one of the bucket's, so that it has to go on by
//! one for each entry at most, and by none where few keys have times.

use boltkv_storage::{Bucket, Cursor, Result};

use super::records::Stamp;
use super::view::Moment;

/// Goes through the times of a bucket's keys, in the order in which somebody goes through the bucket.
pub(in crate::commands) struct Sieve<'s> {
    /// `None` where no key has one.
    times: Option<Times<'s>>,
}

struct Times<'s> {
    cursor: Cursor<'s>,
    reverse: bool,
    /// Where the cursor stands: at the first of them that was not passed.
    at: Option<Entry<'s>>,
    started: bool,
}

type Entry<'s> = (&'s [u8], Option<&'s [u8]>);

impl<'s> Sieve<'s> {
    /// For somebody who begins at either end, or anywhere.
    pub(in crate::commands) fn new(times: Option<Bucket<'s>>, reverse: bool) -> Self {
        let times = times.map(|times| Times { cursor: times.cursor(), reverse, at: None, started: false });
        Self { times }
    }

    /// Whether a key has expired. Keys come in order.
    pub(in crate::commands) fn hides(&mut self, key: &[u8], moment: &Moment<'_>) -> Result<bool> {
        Ok(self.stamp(key)?.is_some_and(|stamp| moment.is_past(stamp)))
    }

    /// When a key expires, if it does.
    pub(super) fn stamp(&mut self, key: &[u8]) -> Result<Option<Stamp>> {
        let Some(times) = &mut self.times else { return Ok(None) };
        times.go_to(key)?;
        Ok(times.at.filter(|(at, _)| *at == key).and_then(|(_, stamp)| Stamp::parse(stamp?)))
    }
}

impl Times<'_> {
    fn go_to(&mut self, key: &[u8]) -> Result<()> {
        if std::mem::replace(&mut self.started, true) {
            if !self.is_before(key) {
                return Ok(());
            }
            self.at = if self.reverse { self.cursor.prev()? } else { self.cursor.next()? };
            if !self.is_before(key) {
                return Ok(());
            }
        }
        // At first; or there are times of keys that are not there, which somebody else may have left.
        let found = self.cursor.seek(key)?;
        let is_past = self.reverse && found.is_none_or(|(at, _)| at != key);
        self.at = if is_past { self.cursor.prev()? } else { found };
        Ok(())
    }

    fn is_before(&self, key: &[u8]) -> bool {
        self.at.is_some_and(|(at, _)| if self.reverse { at > key } else { at < key })
    }
}
