//! What a server is told before it starts. Values only; nothing here opens or listens.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use boltkv_protocol::{DEFAULT_MAX_FRAME, MAX_FRAME_BEFORE_HELLO, MAX_FRAME_LIMIT};
use boltkv_storage::{Db, Durability, JournalOptions};
use tokio::sync::Semaphore;

use crate::Error;
use crate::access::Grant;
use crate::commands::Clock;
use crate::memory::Memory;
use crate::tls::Tls;

/// The longest that a write is in the journal only: other programs that open the file after a crash find one that is no
/// older, however little is written.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// More threads than any machine has processors for.
const MOST_BURST_THREADS: usize = 1_024;

/// Each reads all of the file: more at a time would only take the disk from each other.
const MOST_BACKUPS: usize = 1_024;

/// Each has a thread.
const MOST_WATCHES: usize = 16_384;
/// A few megabytes of slow requests.
pub(crate) const MOST_SLOW: usize = 10_000;

/// The port that clients try first.
pub const DEFAULT_PORT: u16 = 7878;

/// What a server serves, where, and within which limits.
///
/// ```
/// # use boltkv_server::{Config, Listen};
/// let mut config = Config::for_file("boltkv.db");
/// config.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
/// config.limits.max_connections = 100;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen; port 0 takes a free one. Default: `127.0.0.1:7878`.
    pub listen: Vec<Listen>,
    /// The address for those who look after the server: `/livez`, `/readyz` and `/metrics` over HTTP, as soon as the server
    /// is bound; port 0 takes a free one. Default: none.
    pub admin: Option<SocketAddr>,
    /// The database to serve.
    pub database: Database,
    /// Refuse all writes, also where the database would take them. Default: `false`.
    pub read_only: bool,
    /// When a write is answered: once it is on the disk, unless told otherwise. A database that is open already has its own.
    pub durability: Durability,
    /// How writes are recorded in a journal beside the file, so that an answer takes one sync; `None`: they are not. A
    /// database that is open already has its own, or none, and one that is read-only has none. Default: in the usual
    /// place, and the file is brought up to date at least every minute.
    pub journal: Option<JournalOptions>,
    /// The size in bytes that the file does not grow past: writes that would make it are refused with `NO_SPACE`. A sixteenth
    /// of it, 1 MiB at most, is kept for deletions. A journal is not counted. A database that is open already has its own
    /// limit, or none. Default: none.
    pub max_size: Option<u64>,
    /// Give up a journal that does not fit the file, or is damaged, and begin a new one; what was acknowledged can be lost.
    /// One that fits is applied all the same. Default: `false`; such a file is not served.
    pub discard_journal: bool,
    /// The tokens that let clients in, and what their holders may do. Default: none, and everybody may do everything.
    pub grants: Option<Vec<Grant>>,
    /// How to encrypt. Whoever comes from beyond this machine has to, then. Default: not at all.
    pub tls: Option<Tls>,
    /// What to do when no more writes can be done. Default: stop.
    pub on_write_failure: OnWriteFailure,
    /// How much of anything there may be.
    pub limits: Limits,
    /// How long anything may take.
    pub timeouts: Timeouts,
    /// The clock by which keys expire. Default: the system's.
    pub clock: Clock,
    /// What keeps a file from being open after a second, for the log, where that can be known. Default: nobody knows.
    pub keeps_closed: Option<fn(&Path) -> Option<String>>,
}

/// Where a server listens. As text: `127.0.0.1:7878`, `redis://127.0.0.1:6379`, `unix:/run/boltkv.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A port of an address of this machine.
    Tcp(SocketAddr),
    /// The same, of a port that speaks the Redis dialect only, whatever a connection begins with: lines, too. Inside TLS the
    /// same goes.
    Redis(SocketAddr),
    /// A socket in the file system, which whoever may write to it may connect to. It is made when the server is bound, in the
    /// place of one that a server has left behind, and removed when that ends.
    Unix {
        /// Its name.
        path: PathBuf,
        /// Its permissions, such as `0o660`.
        mode: u32,
    },
}

impl Listen {
    /// The address and its port, where it is one.
    #[must_use]
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Redis(address) => Some(*address),
            Self::Unix { .. } => None,
        }
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Redis(address) => write!(f, "redis://{address}"),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The database to serve: any bolt file.
#[derive(Debug, Clone)]
pub enum Database {
    /// A file, which is opened when the server is bound, and created if it is missing. With [`Config::read_only`] it is
    /// neither created nor changed, and others may read it too.
    File(PathBuf),
    /// One that is open already.
    Open(Db),
}

/// What a server does when no more writes can be done until the file is opened again: a write or a sync failed (a full disk
/// is not meant), or the writer panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnWriteFailure {
    /// It stops as when it is told to, and [`run`](crate::Server::run) answers the error: whoever supervises it starts it
    /// again, which opens the file anew.
    #[default]
    Stop,
    /// It goes on serving reads, answers every write with `STORAGE_FAILED`, and says that it is read-only. When it is
    /// stopped, [`run`](crate::Server::run) answers the error.
    ServeReads,
}

/// How much of anything there may be.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Open connections; one more is told `OVERLOADED` and closed. Default: 10,000.
    pub max_connections: usize,
    /// The longest frame either way in bytes, header included; 64 KiB to 128 MiB. Also the longest value the text dialect
    /// gives. Default: 16 MiB.
    pub max_frame: usize,
    /// Unanswered requests of one connection, beyond which it is not read. Default: 1,024.
    pub max_in_flight: u32,
    /// Streams a binary connection may have open; one more gets `OVERLOADED`. Default: 16.
    pub max_streams: u32,
    /// Backups that may be under way, of all connections; one more gets `OVERLOADED`. Each has a thread and 2 MiB of `memory`.
    /// Up to 1,024; 0: none. Default: 2.
    pub max_backups: u32,
    /// Watches that may be under way, of all connections; one more gets `OVERLOADED`. Each has a thread and 400 KiB of `memory`,
    /// and more while it tells a large transaction. Up to 16,384; 0: none. Default: 128.
    pub max_watches: u32,
    /// Snapshots that clients may hold open, of all connections; one more gets `OVERLOADED`. Each keeps the pages of its state
    /// from being used again. 0: none. Default: 1,024.
    pub max_snapshots: u32,
    /// Snapshots that one connection may hold open; one more gets `OVERLOADED`. Default: 16.
    pub max_connection_snapshots: u32,
    /// Slow requests that are kept for whoever looks after the server; up to 10,000, 0: none. Default: 128.
    pub slow_log: u32,
    /// Writes that wait for the writer, of all connections; beyond it they are not read. Default: 1,024.
    pub queue_requests: usize,
    /// Bytes of the writes that wait for the writer: paths, keys, values and what it takes to keep them. Those that are being
    /// written may be as many again. One write that is larger alone waits until the queue is empty.
    /// Default: 64 MiB, and no more than a quarter of `memory`.
    pub queue_bytes: u32,
    /// Bytes that requests and replies may take, of all connections together, beyond the 16 KiB each way that every
    /// connection has: requests as they arrive and until they are done, and replies that their client has not taken yet.
    /// Who finds none left is not read until there is. At least four times `max_frame`. Default: a quarter of the memory
    /// that the process may use, limits of containers respected.
    pub memory: Option<usize>,
    /// Threads of the server's own, beside those of the runtime that it is bound in. They serve only connections that send
    /// many requests at once, which are spread over both; 1,024 at most. Where there are any, up to four connections that
    /// write alone have a thread each, too. Default: 0.
    pub burst_threads: usize,
}

/// How long anything may take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Timeouts {
    /// From connecting to the first byte. Default: 60 s.
    pub first_byte: Duration,
    /// From connecting to the end of HELLO, on a binary connection. Default: 10 s.
    pub hello: Duration,
    /// Without a byte either way and with nothing executing, before a connection is closed. Default: 10 min.
    pub idle: Duration,
    /// Without a byte of a request that has begun to arrive, before its connection is closed; in all, a request has this
    /// time and a second for every 16 KiB. Default: 30 s.
    pub request: Duration,
    /// Without a byte leaving for a client that does not read, before its connection is closed; in all, replies over 256 KiB
    /// have this time and a second for every 16 KiB. Default: 60 s.
    pub reply: Duration,
    /// Without a byte leaving for a client that does not read, or without credit from one that has all that was sent, before
    /// its scans and backups are given up. Default: 30 s.
    pub stream_stall: Duration,
    /// How long a snapshot is kept open that is not used, where its client does not say. Default: 30 s.
    pub snapshot_lease: Duration,
    /// The longest that a client may ask for: a longer lease is granted as this. Default: 5 min.
    pub longest_snapshot_lease: Duration,
    /// From the last reply to the end of the server's sending side, on a text connection that looks like a one-shot `nc`.
    /// Zero: never. Default: 100 ms.
    pub text_linger: Duration,
    /// How long a request takes at least that is kept as a slow one. Default: 100 ms.
    pub slow: Duration,
    /// How long to wait for another process to let go of the file. Default: 1 s.
    pub lock: Duration,
}

impl Config {
    /// What takes long in an opening that waits for nobody, as the log has it.
    pub const BUSY_OPENING: &str = "has the disk keep what was just copied, looks for free pages, or does again what the \
                                    journal has";

    /// The defaults, for the database in this file.
    #[must_use]
    pub fn for_file(path: impl Into<PathBuf>) -> Self {
        Self::new(Database::File(path.into()))
    }

    /// The defaults, for a database that is open already.
    #[must_use]
    pub fn for_db(db: Db) -> Self {
        Self::new(Database::Open(db))
    }

    fn new(database: Database) -> Self {
        Self {
            listen: vec![Listen::Tcp((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into())],
            admin: None,
            database,
            read_only: false,
            durability: Durability::Always,
            journal: Some(JournalOptions::new().checkpoint_every(CHECKPOINT_EVERY)),
            max_size: None,
            discard_journal: false,
            grants: None,
            tls: None,
            on_write_failure: OnWriteFailure::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            clock: Clock::default(),
            keeps_closed: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_frame: DEFAULT_MAX_FRAME,
            max_in_flight: 1_024,
            max_streams: 16,
            max_backups: 2,
            max_watches: 128,
            max_snapshots: 1_024,
            max_connection_snapshots: 16,
            slow_log: 128,
            queue_requests: 1_024,
            queue_bytes: 64 << 20,
            memory: None,
            burst_threads: 0,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_secs(60),
            hello: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            request: Duration::from_secs(30),
            reply: Duration::from_secs(60),
            stream_stall: Duration::from_secs(30),
            snapshot_lease: Duration::from_secs(30),
            longest_snapshot_lease: Duration::from_secs(300),
            text_linger: Duration::from_millis(100),
            slow: Duration::from_millis(100),
            lock: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// The least memory that a server can work with: half of it holds a request and a reply of the longest kind.
    const fn least_memory(&self) -> usize {
        self.max_frame.saturating_mul(4)
    }

    /// The memory that there is to be shared out.
    pub(crate) fn all_memory(&self) -> usize {
        self.memory.unwrap_or_else(|| Memory::usual_limit(self.least_memory()))
    }

    /// Bytes that may wait for the writer: `queue_bytes`, or less where that is more than a quarter of the memory.
    #[must_use]
    pub fn queue_share(&self) -> u32 {
        self.shares().1
    }

    /// How the memory is shared out: bytes for connections, and bytes that may wait for the writer, which are as many again
    /// while they are written; at most a quarter each.
    pub(crate) fn shares(&self) -> (usize, u32) {
        let memory = self.all_memory();
        let queue = self.queue_bytes.min(u32::try_from(memory / 4).unwrap_or(u32::MAX));
        (memory.saturating_sub(2 * queue as usize), queue)
    }

    /// Whether a server can work within them.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.out_of_bounds().into_iter().next().map_or(Ok(()), Err)
    }

    /// Every limit that lies outside of what a server can work with, as the [`Error::Limit`] that binding ends with.
    #[must_use]
    pub fn out_of_bounds(&self) -> Vec<Error> {
        let bounds = [
            ("max_connections", self.max_connections, 1, Semaphore::MAX_PERMITS),
            ("max_frame", self.max_frame, MAX_FRAME_BEFORE_HELLO, MAX_FRAME_LIMIT),
            ("max_in_flight", self.max_in_flight as usize, 1, u32::MAX as usize),
            ("max_streams", self.max_streams as usize, 1, u32::MAX as usize),
            ("max_backups", self.max_backups as usize, 0, MOST_BACKUPS),
            ("max_watches", self.max_watches as usize, 0, MOST_WATCHES),
            ("slow_log", self.slow_log as usize, 0, MOST_SLOW),
            ("queue_requests", self.queue_requests, 1, Semaphore::MAX_PERMITS),
            ("queue_bytes", self.queue_bytes as usize, 1, u32::MAX as usize),
            ("memory", self.memory.unwrap_or(Memory::MOST), self.least_memory(), Memory::MOST),
            ("burst_threads", self.burst_threads, 0, MOST_BURST_THREADS),
        ];
        let outside = bounds.into_iter().filter(|(_, value, min, max)| !(min..=max).contains(&value));
        outside.map(|(name, value, min, max)| Error::Limit { name, value, min, max }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_shared_by_connections_and_what_waits_for_the_writer() {
        let limits = |memory, queue_bytes| Limits { memory: Some(memory), queue_bytes, ..Limits::default() };
        assert_eq!(limits(1 << 30, 64 << 20).shares(), ((1 << 30) - (128 << 20), 64 << 20));
        assert_eq!(limits(64 << 20, 64 << 20).shares(), (32 << 20, 16 << 20));
        let (connections, queue) = Limits::default().shares();
        assert!(connections >= 2 * DEFAULT_MAX_FRAME && queue > 0);
        assert!(limits(63 << 20, 1).check().is_err(), "less than four frames");
    }

    #[test]
    fn the_defaults_are_within_their_bounds_and_a_frame_below_its_own_is_not() {
        Limits::default().check().unwrap();
        let small = Limits { max_frame: 1_000, ..Limits::default() };
        let error = small.check().unwrap_err();
        assert!(matches!(error, Error::Limit { name: "max_frame", value: 1_000, min: 65_536, .. }), "{error}");
        let several = Limits { max_frame: 1_000, max_streams: 0, burst_threads: 5_000, ..Limits::default() };
        let names = several.out_of_bounds().into_iter().map(|error| match error {
            Error::Limit { name, .. } => name,
            other => panic!("{other}"),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["max_frame", "max_streams", "burst_threads"]);
    }
}
