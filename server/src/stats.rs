//! The server's figures: counted where things happen, printed by STATS.
//!
//! Nothing here is counted for every request: what is, each thread counts for itself, in `counters`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability};

use crate::counters::{Buckets, Histogram, TIME_BOUNDS, TIMES};

/// Requests in a group.
pub(crate) const GROUP_BOUNDS: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];

/// How many buckets that makes.
pub(crate) const GROUPS: usize = GROUP_BOUNDS.len() + 1;

/// What is counted. Each figure is exact; taken together they are of about the same moment.
#[derive(Debug)]
pub(crate) struct Stats {
    started: Instant,
    accepted: AtomicU64,
    refused: AtomicU64,
    displaced: AtomicU64,
    closed: AtomicU64,
    panicked: AtomicU64,
    accepts_failed: AtomicU64,
    /// Requests of each group that the writer took.
    groups: Histogram<GROUPS>,
    commits: Histogram<TIMES>,
    /// Writes that were refused because there was no room.
    refused_for_room: AtomicU64,
    /// Keys that were removed because their time had come.
    expired: AtomicU64,
    /// When the last one was, in milliseconds after this began.
    last_commit: AtomicU64,
}

impl Stats {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            accepts_failed: AtomicU64::new(0),
            groups: Histogram::new(&GROUP_BOUNDS),
            commits: Histogram::new(&TIME_BOUNDS),
            refused_for_room: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            last_commit: AtomicU64::new(0),
        }
    }

    pub(crate) fn connection_accepted(&self) {
        self.accepted.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// One that had said nothing yet made room for another.
    pub(crate) fn connection_displaced(&self) {
        self.displaced.fetch_add(1, Relaxed);
    }

    /// One ended by a defect of the server.
    pub(crate) fn connection_panicked(&self) {
        self.panicked.fetch_add(1, Relaxed);
    }

    /// The system had no descriptor, or no memory, for another one.
    pub(crate) fn accept_failed(&self) {
        self.accepts_failed.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection_closed(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    /// The writer took a group of `writes` requests.
    pub(crate) fn group_taken(&self, writes: usize) {
        self.groups.record(writes as u64, 1);
    }

    /// The writer had no room for so many requests.
    pub(crate) fn no_room_for(&self, writes: usize) {
        self.refused_for_room.fetch_add(writes as u64, Relaxed);
    }

    /// How many writes were refused because there was no room.
    pub(crate) fn refused_for_room(&self) -> u64 {
        self.refused_for_room.load(Relaxed)
    }

    /// The writer has committed a group, which is on the disk if it is to be.
    pub(crate) fn committed(&self, time: Duration) {
        self.commits.record_time(time, 1);
        self.last_commit.store(self.uptime_ms(), Relaxed);
    }

    /// When the writer last committed, or the server was started, where it is `now`: in milliseconds since 1970, both.
    pub(crate) fn last_commit(&self, now: u64) -> u64 {
        now.saturating_sub(self.uptime_ms().saturating_sub(self.last_commit.load(Relaxed)))
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX)
    }

    /// For how long the server has run.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// So many keys were removed because their time had come.
    pub(crate) fn expired(&self, keys: u64) {
        if keys > 0 {
            self.expired.fetch_add(keys, Relaxed);
        }
    }

    /// How many there were.
    pub(crate) fn expired_keys(&self) -> u64 {
        self.expired.load(Relaxed)
    }

    /// Connections that are open, were accepted so far, and were refused for want of a place.
    pub(crate) fn connections(&self) -> [u64; 3] {
        let closed = self.closed.load(Relaxed);
        let accepted = self.accepted.load(Relaxed);
        [accepted.saturating_sub(closed), accepted, self.refused.load(Relaxed)]
    }

    /// Connections that made room for another before they had said anything.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced.load(Relaxed)
    }

    /// Connections that ended by a defect of the server.
    pub(crate) fn panicked(&self) -> u64 {
        self.panicked.load(Relaxed)
    }

    /// How often the system could not give another one.
    pub(crate) fn accepts_failed(&self) -> u64 {
        self.accepts_failed.load(Relaxed)
    }

    /// How many requests the writer took at a time.
    pub(crate) fn groups(&self) -> Buckets<GROUPS> {
        self.groups.buckets()
    }

    /// How long commits took.
    pub(crate) fn commits(&self) -> Buckets<TIMES> {
        self.commits.buckets()
    }

    /// All figures, those of the database too, as names and values.
    pub(crate) fn figures(&self, db: &Db, read_only: bool, writable: bool) -> Vec<(&'static str, Figure)> {
        let database = db.stats();
        let [open, accepted, refused] = self.connections();
        let groups = self.groups();
        let mut figures = vec![
            ("version", Figure::Text(env!("CARGO_PKG_VERSION"))),
            ("uptime_seconds", Figure::Number(self.uptime().as_secs())),
            ("read_only", Figure::Number(read_only.into())),
            ("writable", Figure::Number(writable.into())),
            ("connections", Figure::Number(open)),
            ("connections_accepted", Figure::Number(accepted)),
            ("connections_refused", Figure::Number(refused)),
            ("writes", Figure::Number(groups.sum())),
            ("write_groups", Figure::Number(groups.count())),
            ("txid", Figure::Number(database.txid)),
            ("page_size", Figure::Number(database.page_size.into())),
            ("pages", Figure::Number(database.pages)),
            ("open_readers", Figure::Number(database.open_readers as u64)),
        ];
        figures.extend(database.max_size.map(|max| ("max_size", Figure::Number(max))));
        let while_idle = [("free_pages", database.free_pages), ("pending_pages", database.pending_pages)];
        figures.extend(while_idle.into_iter().filter_map(|(name, pages)| Some((name, Figure::Number(pages?)))));
        if !read_only {
            figures.extend(durability(db, &database));
        }
        figures
    }
}

/// When writes are answered, and what the journal does for it.
fn durability(db: &Db, database: &boltkv_storage::Stats) -> Vec<(&'static str, Figure)> {
    let (durability, every) = match db.durability() {
        Durability::Interval { every, .. } => ("interval", Some(every)),
        Durability::Never => ("never", None),
        _ => ("always", None),
    };
    let mut figures = vec![("durability", Figure::Text(durability))];
    figures.extend(every.map(|every| ("durability_interval_ms", millis(every))));
    figures.push(("unsynced_commits", Figure::Number(database.unsynced_commits)));
    figures.push(("syncs", Figure::Number(database.commits.syncs)));
    figures.push(("sync_longest_ms", millis(database.commits.sync_longest)));
    figures.push(("journal", Figure::Text(if database.journal.is_some() { "on" } else { "off" })));
    let Some(journal) = database.journal else { return figures };
    figures.extend([
        ("journal_segments", Figure::Number(journal.segments)),
        ("journal_bytes", Figure::Number(journal.bytes)),
        ("journal_bytes_waiting", Figure::Number(journal.since_checkpoint)),
        ("journal_size", Figure::Number(journal.checkpoint_size)),
        ("journal_bytes_written", Figure::Number(journal.bytes_written)),
        ("journal_replayed", Figure::Number(journal.replayed)),
        ("checkpoints", Figure::Number(journal.checkpoints)),
        ("checkpoint_longest_ms", millis(journal.longest_stall)),
        ("checkpoint_last_ms", millis(journal.last_stall)),
        ("journal_memory", Figure::Number(journal.memory)),
        ("journal_memory_used", Figure::Number(journal.memory_used)),
        ("journal_memory_allocated", Figure::Number(journal.memory_allocated)),
        ("journal_memory_leaves", Figure::Number(journal.memory_leaves)),
        ("journal_memory_passes", Figure::Number(journal.memory_passes)),
        ("journal_memory_waits", Figure::Number(journal.memory_waits)),
        ("journal_memory_missed", Figure::Number(journal.memory_missed)),
    ]);
    figures
}

fn millis(time: Duration) -> Figure {
    Figure::Number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The value of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    Number(u64),
    Text(&'static str),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}
