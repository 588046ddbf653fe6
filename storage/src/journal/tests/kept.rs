//! What opening reads does not grow with how long the journal is kept.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::{Journal, JournalKeep, JournalLimits, JournalPosition, Log, Until};
use super::{LIMITS, effects, folder, meta, read, waiting};
use crate::Error;
use crate::disk::{Disk, JournalFolder, Map};

const KEEPS: JournalLimits = JournalLimits { keep: JournalKeep::Bytes(1 << 40), ..LIMITS };
const HEADER: u64 = 4096;

/// A folder that counts what is read of its segments, and how many of them are open.
#[derive(Debug)]
struct Counted {
    folder: Arc<dyn JournalFolder>,
    figures: Arc<Figures>,
}

#[derive(Debug, Default)]
struct Figures {
    read: AtomicU64,
    open: AtomicU64,
    most_open: AtomicU64,
}

#[derive(Debug)]
struct CountedDisk(Arc<dyn Disk>, Arc<Figures>);

impl Drop for CountedDisk {
    fn drop(&mut self) {
        self.1.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl JournalFolder for Counted {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let open = self.figures.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.figures.most_open.fetch_max(open, Ordering::Relaxed);
        Ok(Arc::new(CountedDisk(self.folder.open(name)?, Arc::clone(&self.figures))))
    }

    fn create(&self) -> io::Result<(String, Arc<dyn Disk>)> {
        self.folder.create()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn holds(&self, name: &str) -> bool {
        self.folder.holds(name)
    }

    fn random(&self) -> io::Result<u64> {
        self.folder.random()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Disk for CountedDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(buf, offset)?;
        self.1.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn map(&self, len: usize) -> io::Result<Map> {
        self.0.map(len)
    }
}

/// Five records and a checkpoint, in each of these rounds, at this time.
fn go_on(journal: &mut Journal, rounds: Range<u64>, time_ms: u64) {
    for round in rounds {
        for txid in round * 10..round * 10 + 5 {
            journal.append(txid, time_ms, &[&effects(txid, 5000)]).unwrap();
        }
        journal.link(round * 10 + 4, &meta(round * 10 + 5), journal.recorded()).unwrap();
        journal.sync().unwrap();
        journal.checkpointed();
    }
}

/// What opening has read behind the headers, and how many segments were open at a time.
#[derive(Debug, PartialEq)]
struct Cost {
    read: u64,
    most_open: u64,
}

/// Opens a journal that has been through so many checkpoints, beside a file with that meta.
fn opened(checkpoints: u64, closed: bool, of: impl Fn(u64) -> u64) -> (Cost, Result<u64, Error>) {
    looked(checkpoints, closed, |log, newest| log.after(&meta(of(newest))).map(|waiting| waiting.records()))
}

/// The same, with another way to look at it.
fn looked<T>(checkpoints: u64, closed: bool, look: impl FnOnce(Log, u64) -> T) -> (Cost, T) {
    let folder = folder();
    let found = waiting(&folder, 1).unwrap();
    let mut journal = Journal::begin(Arc::clone(&folder), &KEEPS, found, &meta(1), 1, 0).unwrap();
    go_on(&mut journal, 1..checkpoints + 1, 1);
    let newest = checkpoints * 10 + 5;
    journal.append(newest + 1, newest, &[&effects(newest, 5000)]).unwrap();
    journal.sync().unwrap();
    if closed {
        journal.close().unwrap();
    }
    let figures = Arc::new(Figures::default());
    let folder: Arc<dyn JournalFolder> = Arc::new(Counted { folder, figures: Arc::clone(&figures) });
    let log = read(&folder).unwrap();
    let segments = folder.list().unwrap().len() as u64;
    assert!(segments > checkpoints * 2, "they are all kept");
    let found = look(log, newest);
    let read = figures.read.load(Ordering::Relaxed) - segments * HEADER;
    (Cost { read, most_open: figures.most_open.load(Ordering::Relaxed) }, found)
}

#[test]
fn the_work_of_an_opening_does_not_grow_with_what_is_kept() {
    let ways = [
        ("as a kill leaves it", false, 0),
        ("a file that it does not fit", false, 3),
        ("a file that was changed after a clean close", true, 3),
    ];
    for (what, closed, beyond) in ways {
        let of = |newest| newest + beyond;
        let (few, found) = opened(5, closed, of);
        match found {
            Ok(records) => assert_eq!(records, u64::from(!closed), "{what}"),
            Err(Error::JournalDoesNotFit { found, .. }) => assert_eq!(found[..2], [55, 45], "{what}"),
            Err(other) => panic!("{what}: {other}"),
        }
        let (many, _) = opened(50, closed, of);
        assert_eq!(few, many, "{what}");
        assert!(many.most_open < 20, "{what}: {many:?}");
    }
}

/// A copy of the file from before, put back: what is kept brings it up to date.
#[test]
fn what_is_kept_is_done_again_to_an_older_copy_of_the_file() {
    for back in 0..20 {
        let (_, found) = opened(20, false, |newest| newest - 10 * back);
        assert_eq!(found.unwrap(), 5 * back + 1);
    }
}

#[test]
fn all_that_is_kept_is_read_with_few_segments_open_at_a_time() {
    let from_a_backup = |log: Log, _: u64| {
        let (waiting, damage) = log.since(&meta(15)).unwrap();
        assert!(damage.is_none());
        let stretch = waiting.stretch(Until::End).unwrap();
        let read: u64 = waiting.iter().map(|record| record.unwrap().effects.read_all().unwrap().len() as u64).sum();
        (stretch.records, stretch.bytes == read)
    };
    let (cost, found) = looked(50, false, from_a_backup);
    assert_eq!(found, (49 * 5 + 1, true));
    assert!(cost.most_open < 10, "{cost:?}");
    let from_a_position = |log: Log, _: u64| {
        let JournalPosition { epoch, txid } = log.clone().oldest().unwrap();
        assert_eq!(txid, 1);
        let (waiting, damage) = log.behind(JournalPosition { epoch, txid: 14 }).unwrap();
        assert!(damage.is_none());
        let read: Vec<_> = waiting.iter().map(|record| record.unwrap().effects.read_all().unwrap()).collect();
        read.len()
    };
    let (cost, found) = looked(50, false, from_a_position);
    assert_eq!(found, 49 * 5 + 1);
    assert!(cost.most_open < 10, "{cost:?}");
}

#[test]
fn room_that_was_kept_is_given_back_by_the_next_opening_or_some_at_each_checkpoint() {
    // Four segments between two checkpoints, and so at most a dozen that nobody needs, beside those of a round or two.
    let limits = |keep| JournalLimits { keep, checkpoint_size: 4 * LIMITS.segment_size, ..LIMITS };
    let few = 2 * 6 + 8;
    let folder = folder();
    let len = || folder.list().unwrap().len();
    let found = waiting(&folder, 1).unwrap();
    let keeps = limits(JournalKeep::Time(Duration::from_secs(1)));
    let mut journal = Journal::begin(Arc::clone(&folder), &keeps, found, &meta(1), 1, 0).unwrap();
    go_on(&mut journal, 1..50, 1);
    let kept = len();
    assert!(kept > 100, "{kept}");
    go_on(&mut journal, 50..52, 2000);
    let trimmed = len();
    assert!(trimmed < kept && trimmed > few, "{trimmed} of {kept}: some at a time");
    for round in 52..81 {
        go_on(&mut journal, round..round + 1, 2000 * round);
    }
    assert!(len() <= few, "{}", len());
    go_on(&mut journal, 81..130, 200_000);
    let kept = len();
    assert!(kept > 100, "{kept}");
    journal.append(1300, 200_000, &[b"behind the last checkpoint"]).unwrap();
    journal.sync().unwrap();
    drop(journal);
    let found = waiting(&folder, 1295).unwrap();
    let contains = found.contains();
    let none = limits(JournalKeep::UntilCheckpoint);
    let journal = Journal::begin(Arc::clone(&folder), &none, found, &meta(1295), contains, 0).unwrap();
    assert!(len() <= few, "{}", len());
    drop(journal);
    assert_eq!(waiting(&folder, 1295).unwrap().records(), 1, "what waits is there");
}
