//! Scans: SCAN, COUNT and BUCKET LIST, in steps that are short enough to run between other connections' requests.
//!
//! A scan keeps its snapshot and remembers the last key; each step looks up its place again. So it borrows nothing between
//! two steps, and a scan that its client does not read costs nothing but the snapshot.

use std::num::NonZeroU64;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::task::{Context, Poll};

use boltkv_protocol::{EntriesWriter, Entry, EntryKind, ErrorReply, Path, Scan, ScanMode};
use boltkv_storage::{Cursor, Error, Result, Tx};
use bytes::Bytes;

use super::expiry::{Clock, Moment, OWN, Sieve, View};
use super::refusal::refusal;
use super::state::State;

/// The most entries that one step looks at.
const STEP_ENTRIES: usize = 4_096;

/// A scan that is under way, and the snapshot that it is of.
#[derive(Debug)]
pub(crate) struct ScanRun {
    tx: Arc<Tx>,
    clock: Clock,
    scanning: Scanning,
}

/// A scan that is under way in some state.
#[derive(Debug)]
pub(super) struct Scanning {
    path: Path,
    low: Bound<Bytes>,
    high: Bound<Bytes>,
    reverse: bool,
    mode: ScanMode,
    buckets_only: bool,
    /// How many entries may still come.
    left: u64,
    count: u64,
    /// How many entries were looked at.
    looked_at: u64,
    max_frame: usize,
}

/// Where the parts of a stream come from.
pub(crate) trait Source {
    /// Whether there is something, so that a step is worth its turn; otherwise the task is woken when there is.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

impl Source for ScanRun {
    /// What it gives is in the file.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more entries.
    More,
    /// There are no more.
    Done,
    /// There are no more, and their count was asked for.
    Counted(u64),
}

impl ScanRun {
    /// A scan of a state; of an entry that does not fit a frame of `max_frame` bytes, it gives the size.
    pub(crate) fn start(
        tx: Arc<Tx>,
        clock: &Clock,
        scan: Scan,
        buckets_only: bool,
        max_frame: usize,
    ) -> Result<Self, ErrorReply> {
        let view = View::new(&*tx, Moment::of(clock));
        let scanning = Scanning::start(&view, scan, buckets_only, max_frame).map_err(refusal)?;
        Ok(Self { tx, clock: clock.clone(), scanning })
    }

    /// What it is a scan of.
    pub(super) const fn state(&self) -> &Arc<Tx> {
        &self.tx
    }

    /// As [`Scanning::step`]. What has expired since the last step is not shown any more.
    pub(crate) fn step(&mut self, take: impl FnMut(&Entry<&[u8]>) -> ControlFlow<()>) -> Result<Progress, ErrorReply> {
        let view = View::new(&*self.tx, Moment::of(&self.clock));
        self.scanning.step(&view, take).map_err(refusal)
    }
}

impl Scanning {
    /// A scan of a bucket's entries or of the buckets within it; of an entry that does not fit a frame of `max_frame` bytes,
    /// it gives the size.
    pub(super) fn start<S: State>(
        view: &View<'_, S>,
        scan: Scan,
        buckets_only: bool,
        max_frame: usize,
    ) -> Result<Self> {
        let Scan { path, range, options } = scan;
        view.cursor(&path)?;
        let (low, high) = range.into_bounds();
        Ok(Self {
            path,
            low,
            high,
            reverse: options.reverse,
            mode: options.mode,
            buckets_only,
            left: options.limit.map_or(u64::MAX, NonZeroU64::get),
            count: 0,
            looked_at: 0,
            max_frame,
        })
    }

    /// How many entries it has looked at.
    pub(super) const fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Hands the next entries to `take`, until that breaks (what broke it is handed over again by the next step), or the step
    /// has been long enough. `take` must not break at the first entry of a step, or the scan will not get on. The state is
    /// the same at every step.
    pub(super) fn step<S: State>(
        &mut self,
        view: &View<'_, S>,
        mut take: impl FnMut(&Entry<&[u8]>) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (cursor, times) = match view.cursor(&self.path) {
            // The bucket has expired since.
            Err(Error::BucketNotFound { .. }) => return Ok(self.done()),
            found => found?,
        };
        let mut walk = Walk::new(cursor, self.reverse);
        let mut sieve = Sieve::new(times, self.reverse);
        let mut last = None;
        for _ in 0..STEP_ENTRIES {
            let found = if self.left == 0 { None } else { walk.next(&self.low, &self.high)? };
            let Some((key, value)) = found else { return Ok(self.done()) };
            self.looked_at += 1;
            let is_own = self.path.is_root() && key == OWN;
            if (value.is_none() || !self.buckets_only) && !is_own && !sieve.hides(key, view.moment())? {
                if self.mode != ScanMode::Count && self.give(key, value, &mut take).is_break() {
                    break;
                }
                self.left -= 1;
                self.count += 1;
            }
            last = Some(key);
        }
        if let Some(key) = last {
            let passed = Bound::Excluded(Bytes::copy_from_slice(key));
            *(if self.reverse { &mut self.high } else { &mut self.low }) = passed;
        }
        Ok(Progress::More)
    }

    fn give(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        take: &mut impl FnMut(&Entry<&[u8]>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let size;
        let (kind, value) = match value {
            None => (EntryKind::Bucket, &[][..]),
            Some(value) if EntriesWriter::frame_len_of(key, value) > self.max_frame => {
                size = (value.len() as u64).to_be_bytes();
                (EntryKind::TooLarge, &size[..])
            }
            Some(value) => (EntryKind::Value, value),
        };
        let value = if self.mode == ScanMode::Keys { &[] } else { value };
        take(&Entry { kind, key, value })
    }

    const fn done(&self) -> Progress {
        match self.mode {
            ScanMode::Count => Progress::Counted(self.count),
            ScanMode::Entries | ScanMode::Keys => Progress::Done,
        }
    }
}

/// A key, and its value or `None` for a bucket.
type Found<'tx> = (&'tx [u8], Option<&'tx [u8]>);

/// Goes through a range in one direction.
struct Walk<'tx> {
    cursor: Cursor<'tx>,
    reverse: bool,
    started: bool,
}

impl<'tx> Walk<'tx> {
    const fn new(cursor: Cursor<'tx>, reverse: bool) -> Self {
        Self { cursor, reverse, started: false }
    }

    /// The next entry between the bounds, which are the same at every call.
    fn next(&mut self, low: &Bound<Bytes>, high: &Bound<Bytes>) -> Result<Option<Found<'tx>>> {
        let found = match (std::mem::replace(&mut self.started, true), self.reverse) {
            (true, false) => self.cursor.next()?,
            (true, true) => self.cursor.prev()?,
            (false, false) => self.first(low)?,
            (false, true) => self.last(high)?,
        };
        let end = if self.reverse { low } else { high };
        Ok(found.filter(|(key, _)| is_within(key, end, self.reverse)))
    }

    fn first(&mut self, low: &Bound<Bytes>) -> Result<Option<Found<'tx>>> {
        match low {
            Bound::Unbounded => self.cursor.first(),
            Bound::Included(low) => self.cursor.seek(low),
            Bound::Excluded(low) => match self.cursor.seek(low)? {
                Some((key, _)) if key == low => self.cursor.next(),
                found => Ok(found),
            },
        }
    }

    fn last(&mut self, high: &Bound<Bytes>) -> Result<Option<Found<'tx>>> {
        let (high, included) = match high {
            Bound::Unbounded => return self.cursor.last(),
            Bound::Included(high) => (high, true),
            Bound::Excluded(high) => (high, false),
        };
        match self.cursor.seek(high)? {
            Some((key, value)) if included && key == high => Ok(Some((key, value))),
            _ => self.cursor.prev(),
        }
    }
}

/// Whether a key has not passed the bound at which a walk ends.
fn is_within(key: &[u8], end: &Bound<Bytes>, reverse: bool) -> bool {
    match (end, reverse) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(high), false) => key <= high,
        (Bound::Excluded(high), false) => key < high,
        (Bound::Included(low), true) => key >= low,
        (Bound::Excluded(low), true) => key > low,
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{KeyRange, LowBound, ScanOptions};
    use boltkv_storage::{Db, Options};
    use proptest::prelude::*;

    use super::*;

    fn database(keys: &[Vec<u8>]) -> Db {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            keys.iter().try_for_each(|key| bucket.put(key, key))
        })
        .unwrap();
        db
    }

    fn keys(db: &Db, scan: Scan, per_step: usize) -> Vec<Vec<u8>> {
        let mut run = ScanRun::start(Arc::new(db.begin().unwrap()), &Clock::system(), scan, false, 1 << 20).unwrap();
        let mut keys = Vec::new();
        loop {
            let mut taken = 0;
            let progress = run.step(|entry| {
                if taken == per_step {
                    return ControlFlow::Break(());
                }
                taken += 1;
                keys.push(entry.key.to_vec());
                ControlFlow::Continue(())
            });
            if progress.unwrap() == Progress::Done {
                return keys;
            }
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(&[0_u8, 1, 2, 0xff][..]), 1..4)
    }

    fn bound() -> impl Strategy<Value = Bound<Bytes>> {
        prop_oneof![
            Just(Bound::Unbounded),
            key().prop_map(|key| Bound::Included(key.into())),
            key().prop_map(|key| Bound::Excluded(key.into())),
        ]
    }

    fn low_bound() -> impl Strategy<Value = LowBound> {
        let prefix = prop::collection::vec(prop::sample::select(&[0_u8, 1, 0xff][..]), 0..3);
        prop_oneof![
            bound().prop_map(|bound| match bound {
                Bound::Unbounded => LowBound::Unbounded,
                Bound::Included(key) => LowBound::Included(key),
                Bound::Excluded(key) => LowBound::Excluded(key),
            }),
            prefix.prop_map(|prefix| LowBound::Prefix(prefix.into())),
        ]
    }

    proptest! {
        #[test]
        fn a_scan_gives_what_lies_between_its_bounds_however_short_its_steps_are(
            mut stored in prop::collection::vec(key(), 0..40),
            low in low_bound(),
            high in bound(),
            reverse: bool,
            limit in 0_u64..20,
            per_step in 1_usize..8,
        ) {
            let db = database(&stored);
            stored.sort();
            stored.dedup();
            let mut expected: Vec<_> = stored.into_iter().filter(|key| {
                let above = match &low {
                    LowBound::Unbounded => true,
                    LowBound::Included(low) => key >= low,
                    LowBound::Excluded(low) => key > low,
                    LowBound::Prefix(prefix) => key.starts_with(prefix),
                };
                above && is_within(key, &high, false)
            }).collect();
            if reverse {
                expected.reverse();
            }
            if limit > 0 {
                expected.truncate(usize::try_from(limit).unwrap());
            }
            let options = ScanOptions { reverse, limit: NonZeroU64::new(limit), ..ScanOptions::default() };
            let path = Path::from_names(["b"]).unwrap();
            let scan = Scan { path, range: KeyRange { low, high }, options };
            prop_assert_eq!(keys(&db, scan, per_step), expected);
        }
    }

    // Promises: ops-scan.
    #[test]
    fn a_scan_sees_one_state_whatever_is_written_between_its_steps() {
        let db = database(&[b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]);
        let scan = Scan { path: Path::from_names(["b"]).unwrap(), ..Scan::default() };
        let mut run = ScanRun::start(Arc::new(db.begin().unwrap()), &Clock::system(), scan, false, 1 << 20).unwrap();
        let mut seen = Vec::new();
        let mut step = |run: &mut ScanRun| {
            let mut room = 1;
            let progress = run.step(|entry| {
                if room == 0 {
                    return ControlFlow::Break(());
                }
                room -= 1;
                seen.push(entry.key.to_vec());
                ControlFlow::Continue(())
            });
            progress.unwrap()
        };
        assert_eq!(step(&mut run), Progress::More);
        db.update(|tx| tx.delete_bucket("b")).unwrap();
        assert_eq!(step(&mut run), Progress::More);
        assert_eq!(step(&mut run), Progress::Done);
        assert_eq!(seen, [b"a", b"b", b"c"]);
    }

    #[test]
    fn a_count_looks_at_a_bounded_number_of_entries_a_step() {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..2 * STEP_ENTRIES).try_for_each(|n| bucket.put((n as u64).to_be_bytes(), ""))?;
            bucket.create_bucket("nested")?;
            Ok::<_, Error>(())
        })
        .unwrap();
        let options = ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() };
        let scan = Scan { path: Path::from_names(["b"]).unwrap(), options, ..Scan::default() };
        let count = |scan, buckets_only| {
            let mut run =
                ScanRun::start(Arc::new(db.begin().unwrap()), &Clock::system(), scan, buckets_only, 1 << 20).unwrap();
            let steps: Vec<_> = (0..3).map(|_| run.step(|_| panic!("a count gives no entries")).unwrap()).collect();
            assert_eq!(steps[..2], [Progress::More; 2]);
            steps[2]
        };
        let entries = 2 * STEP_ENTRIES as u64 + 1;
        assert_eq!(count(scan.clone(), false), Progress::Counted(entries));
        assert_eq!(count(scan, true), Progress::Counted(1));
    }
}
