//! Following a journal that is being written: from a position to what is recorded behind it, record by record, and on to what
//! comes. Nothing is read twice: a follower knows the place where it has stopped, and the checksum that has to go on there.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::JournalPosition;
use super::block::{EntryHeader, EntryKind, Position};
use super::judge::Place;
use super::log::{Chain, Segment, damaged, limit, unreadable};
use super::position::segment_of;
use super::replay::{Effects, Record};
use super::tail::Tail;
use super::walk::{Payload, header_at};
use crate::{Error, Result};

/// Who follows a journal, and how far it is.
#[derive(Debug)]
pub(crate) struct Follow {
    tail: Arc<Tail>,
    /// From the segment that is being read on, as far as they were looked at.
    path: Vec<Segment>,
    at: Place,
    /// The checksum of the entry before.
    crc: u32,
    position: JournalPosition,
}

/// A record, and whether its segments are what they were when it was found.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    tail: &'a Tail,
    segment: u64,
    before: JournalPosition,
}

impl<'a> Kept<'a> {
    /// The journal's folder.
    pub(crate) fn folder(&self) -> &'a Path {
        self.tail.folder().path()
    }

    /// What is wrong where a record could not be read: nothing but that it is not kept any more, perhaps.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let is_kept = match error {
            Error::JournalIo { ref source, .. } if source.kind() == ErrorKind::InvalidData => {
                self.tail.is_damaged(self.segment)
            }
            _ => self.tail.keeps(self.segment),
        };
        if is_kept { error } else { gap(self.tail, self.before) }
    }
}

fn gap(tail: &Tail, wanted: JournalPosition) -> Error {
    let oldest = tail.oldest().unwrap_or_else(|_| tail.newest());
    Error::JournalGap { folder: tail.folder().path().into(), wanted: wanted.txid, oldest: oldest.txid }
}

impl Follow {
    /// Begins behind a position.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where what is behind it is not kept, or it is no position of this journal; a segment could not be
    /// read.
    pub(crate) fn behind(tail: &Arc<Tail>, position: JournalPosition) -> Result<Self> {
        let newest = tail.newest();
        let mut path = tail.segments()?;
        let is_ahead = position.epoch == newest.epoch && position.txid > newest.txid;
        let first = segment_of(&path, position).filter(|_| !is_ahead).ok_or_else(|| gap(tail, position))?;
        path.drain(..first);
        let (at, crc) = ((0, path[0].first_entry()), path[0].header.before_crc);
        tail.enter();
        Ok(Self { tail: Arc::clone(tail), path, at, crc, position })
    }

    /// How far it is: behind this is what comes next.
    pub(crate) const fn position(&self) -> JournalPosition {
        self.position
    }

    /// The next record; `None` where no more may be told yet.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where it is not kept any more; [`Error::JournalDamaged`]; a segment could not be read.
    pub(crate) fn next(&mut self) -> Result<Option<(Record<'_>, Kept<'_>)>> {
        let before = self.position;
        let found = self.find().map_err(|error| self.kept(self.at.0, self.position).explain(error))?;
        let Some(((index, at), entry)) = found else { return Ok(None) };
        self.position.txid = entry.txid;
        let segment = &self.path[index];
        let payload = Payload::new(&self.path, index, at, &entry);
        let effects = Effects::new(payload, entry.payload_crc);
        let (txid, epoch, time_ms) = (entry.txid, segment.header.epoch, entry.time_ms);
        let kept = self.kept(index, before);
        Ok(Some((Record { txid, epoch, time_ms, effects }, kept)))
    }

    /// Waits until there may be a next record, or `stop`, or the time has passed; whether there may be one.
    pub(crate) fn wait(&self, stop: &AtomicBool, most: Option<Duration>) -> bool {
        let upto = Position { segment: self.path[self.at.0].header.number, offset: self.at.1 };
        self.tail.wait(upto, stop, most)
    }

    /// What the writer tells.
    pub(crate) fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }

    /// Goes on to the next record.
    fn find(&mut self) -> Result<Option<(Place, EntryHeader)>> {
        loop {
            let (upto, newest) = self.tail.told();
            let (index, at) = self.at;
            let number = self.path[index].header.number;
            if (upto.segment, upto.offset) <= (number, at) {
                // Numbers without a record are those of checkpoints.
                if self.position.epoch == newest.epoch {
                    self.position.txid = self.position.txid.max(newest.txid);
                }
                return Ok(None);
            }
            // Where another segment follows, that one says where this one ends.
            if number < upto.segment {
                if index + 1 == self.path.len() && !self.look_at_next()? {
                    return Err(self.changed(at));
                }
                if at >= limit(&self.path, index) {
                    self.enter_next(index)?;
                    continue;
                }
            }
            let entry =
                header_at(&self.path[index], at).map_err(unreadable(self.tail.folder().path(), &self.path[index]));
            let entry = entry?.filter(|entry| entry.before_crc == self.crc).ok_or_else(|| self.changed(at))?;
            self.at = loop {
                if let Some(then) = Payload::new(&self.path, index, at, &entry).skip() {
                    break then;
                }
                if !self.look_at_next()? {
                    return Err(self.changed(at));
                }
            };
            self.crc = entry.crc;
            if entry.kind == EntryKind::Record && entry.txid > self.position.txid {
                return Ok(Some(((index, at), entry)));
            }
        }
    }

    /// What is behind a position in that segment, and whether it is what it was.
    fn kept(&self, index: usize, before: JournalPosition) -> Kept<'_> {
        Kept { tail: &self.tail, segment: self.path[index].header.number, before }
    }

    /// Looks at the segment behind those that were looked at; whether there is one.
    fn look_at_next(&mut self) -> Result<bool> {
        let last = self.path.last().map_or(0, |last| last.header.number);
        let next = self.tail.segment_behind(last)?;
        Ok(next.is_some_and(|next| {
            let follows = next.header.before.segment == last;
            if follows {
                self.path.push(next);
            }
            follows
        }))
    }

    /// Goes on in the next segment, and forgets those before it.
    fn enter_next(&mut self, index: usize) -> Result<()> {
        let next = &self.path[index + 1];
        if next.header.before_crc != self.crc {
            return Err(self.changed(self.at.1));
        }
        if next.header.epoch != self.position.epoch {
            if !self.knows_base_of(index + 1)? {
                let (wanted, oldest) = (self.position.txid, next.header.follows);
                return Err(Error::JournalGap { folder: self.tail.folder().path().into(), wanted, oldest });
            }
            self.position = JournalPosition { epoch: next.header.epoch, txid: next.header.follows };
        }
        self.at = (0, next.first_entry());
        self.path.drain(..=index);
        Ok(())
    }

    /// Whether the file with which an opening began this segment was as the journal knows it. If not, others have changed it after
    /// a clean close, and what they did no record tells.
    fn knows_base_of(&self, index: usize) -> Result<bool> {
        let mut before = self.tail.segments()?;
        before.retain(|segment| segment.header.number < self.path[0].header.number);
        before.extend_from_slice(&self.path[..index]);
        let chain = Chain::new(self.tail.folder().path().into(), before);
        Ok(chain.locate(&self.path[index].header.base)?.is_some())
    }

    /// What was synced is not there: the segment was used again, or it is damaged.
    fn changed(&self, at: u64) -> Error {
        let segment = &self.path[self.at.0];
        if !self.tail.is_damaged(segment.header.number) {
            return gap(&self.tail, self.position);
        }
        let file = self.tail.folder().path().join(segment.file.name());
        damaged(file, at, "it was synced, and is not whole".into())
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.tail.leave();
    }
}
