//! Up to where a journal that is being written can be followed, for those who do: what is synced, and published. What a power
//! cut can take back, nobody is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::JournalPosition;
use super::block::{BLOCK, BLOCK_LEN, Decoded, Header, Position};
use super::file::SegmentFile;
use super::log::Segment;
use crate::disk::JournalFolder;
use crate::{Error, Result};

/// What the writer of a journal tells those who follow it.
#[derive(Debug)]
pub(crate) struct Tail {
    folder: Arc<dyn JournalFolder>,
    now: Mutex<Now>,
    grown: Condvar,
    /// How many follow it.
    followers: AtomicUsize,
    /// Segments up to this number nobody had to keep when the journal was opened.
    doubtful: u64,
}

#[derive(Debug)]
struct Now {
    /// Where the last entry that may be told ends, and the last transaction up to there.
    upto: Position,
    newest: JournalPosition,
    /// Numbers and files of the segments that lead to one another, from the oldest to the newest.
    segments: VecDeque<(u64, String)>,
    /// How many wait for more.
    waiting: usize,
}

impl Tail {
    pub(super) fn new(
        folder: Arc<dyn JournalFolder>,
        upto: Position,
        newest: JournalPosition,
        segments: VecDeque<(u64, String)>,
        doubtful: u64,
    ) -> Self {
        let now = Mutex::new(Now { upto, newest, segments, waiting: 0 });
        Self { folder, now, grown: Condvar::new(), followers: AtomicUsize::new(0), doubtful }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All up to there is synced, and everybody sees it.
    pub(super) fn tell(&self, upto: Position, txid: u64) {
        let mut now = self.now();
        if (now.upto, now.newest.txid) == (upto, txid) {
            return;
        }
        (now.upto, now.newest.txid) = (upto, txid);
        // Where nobody waits, a commit makes no call of the system for it.
        if now.waiting > 0 {
            self.grown.notify_all();
        }
    }

    /// A segment was begun.
    pub(super) fn push(&self, number: u64, name: String) {
        self.now().segments.push_back((number, name));
    }

    /// All segments up to that number are going to be used again.
    pub(super) fn forget(&self, number: u64) {
        let mut now = self.now();
        while now.segments.front().is_some_and(|&(oldest, _)| oldest <= number) {
            now.segments.pop_front();
        }
    }

    /// Where the last entry that may be told ends, and the newest transaction that is on the disk: there is no record of one
    /// between the two.
    pub(super) fn told(&self) -> (Position, JournalPosition) {
        let now = self.now();
        (now.upto, now.newest)
    }

    /// The newest transaction that may be told.
    pub(crate) fn newest(&self) -> JournalPosition {
        self.now().newest
    }

    pub(super) fn folder(&self) -> &Arc<dyn JournalFolder> {
        &self.folder
    }

    /// Whether what is written would be found again.
    pub(crate) fn is_in_place(&self) -> bool {
        let newest = self.now().segments.back().map(|(_, name)| name.clone());
        newest.is_none_or(|name| self.folder.holds(&name))
    }

    /// Whether the segment of that number is still what it was.
    pub(super) fn keeps(&self, number: u64) -> bool {
        self.now().segments.front().is_some_and(|&(oldest, _)| oldest <= number)
    }

    /// Whether a segment of that number that is not whole is damaged. One that nobody had to keep may have been in use again
    /// when a crash came, of which some has come through and its header has not: it is not kept any more.
    pub(super) fn is_damaged(&self, number: u64) -> bool {
        if number <= self.doubtful {
            self.forget(number);
        }
        self.keeps(number)
    }

    /// The position behind which everything is there.
    ///
    /// # Errors
    /// A segment could not be read.
    pub(crate) fn oldest(&self) -> Result<JournalPosition> {
        loop {
            let (first, newest) = {
                let now = self.now();
                (now.segments.front().cloned(), now.newest)
            };
            let Some((number, name)) = first else { return Ok(newest) };
            if let Some(Segment { header, .. }) = self.open(number, &name)? {
                return Ok(JournalPosition { epoch: header.epoch, txid: header.follows });
            }
            // It is used again, or gone: by now, or in a moment, another is the oldest.
            if self.keeps(number) {
                return Err(self.not_itself(number, &name));
            }
        }
    }

    /// All segments that lead to one another, from the oldest to the newest.
    pub(super) fn segments(&self) -> Result<Vec<Segment>> {
        let names = self.now().segments.clone();
        let mut segments = Vec::with_capacity(names.len());
        for (number, name) in names {
            match self.open(number, &name)? {
                Some(segment) => segments.push(segment),
                None if self.keeps(number) => return Err(self.not_itself(number, &name)),
                // It was used again or removed meanwhile, and all before it were.
                None => segments.clear(),
            }
        }
        Ok(segments)
    }

    /// The segment behind the one of that number; `None` where there is none, or it was used again.
    pub(super) fn segment_behind(&self, number: u64) -> Result<Option<Segment>> {
        let next = {
            let now = self.now();
            let index = now.segments.partition_point(|&(earlier, _)| earlier <= number);
            now.segments.get(index).cloned()
        };
        next.map_or(Ok(None), |(number, name)| self.open(number, &name))
    }

    fn open(&self, number: u64, name: &str) -> Result<Option<Segment>> {
        let path = self.folder.path().join(name);
        let disk = match self.folder.open(name) {
            // One for which there was no use any more is removed, not used again.
            Err(_) if !self.keeps(number) => return Ok(None),
            opened => opened.map_err(Error::journal_io("open", &path))?,
        };
        let len = disk.len().map_err(Error::journal_io("look at", &path))?;
        let mut first = [0; BLOCK];
        let read = disk.read_at(&mut first, 0).map_err(Error::journal_io("read", &path))?;
        let Decoded::Header(header) = Header::decode(&first[..read]) else { return Ok(None) };
        let file = SegmentFile::new(&self.folder, name.to_owned());
        Ok((header.number == number).then_some(Segment { file, header, len: len - len % BLOCK_LEN }))
    }

    fn not_itself(&self, number: u64, name: &str) -> Error {
        let what = format!("it was segment {number}, and is not any more");
        Error::JournalDamaged { file: self.folder.path().join(name), offset: 0, what }
    }

    /// Somebody begins to follow it.
    pub(super) fn enter(&self) {
        self.followers.fetch_add(1, Relaxed);
    }

    /// Somebody does not follow it any more.
    pub(super) fn leave(&self) {
        self.followers.fetch_sub(1, Relaxed);
    }

    /// Whether anybody follows it.
    pub(super) fn is_followed(&self) -> bool {
        self.followers.load(Relaxed) > 0
    }

    /// Waits until there is more than up to there, or `stop`, or the time has passed; whether there is more.
    pub(super) fn wait(&self, upto: Position, stop: &AtomicBool, most: Option<Duration>) -> bool {
        let end = most.and_then(|most| Instant::now().checked_add(most));
        let mut now = self.now();
        now.waiting += 1;
        let is_more = |now: &Now| (now.upto.segment, now.upto.offset) > (upto.segment, upto.offset);
        while !is_more(&now) && !stop.load(Relaxed) {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            now = match left {
                Some(Duration::ZERO) => break,
                Some(left) => self.grown.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.grown.wait(now).unwrap_or_else(PoisonError::into_inner),
            };
        }
        now.waiting -= 1;
        is_more(&now)
    }

    /// Ends the waiting of whoever looks at `stop`.
    pub(crate) fn stop(&self, stop: &AtomicBool) {
        // Under the lock, or it could come between that one's look and its sleep.
        let _now = self.now();
        stop.store(true, Relaxed);
        self.grown.notify_all();
    }
}
