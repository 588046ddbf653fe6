//! WATCH: what is committed from a position on, as it comes.
//!
//! A thread of its own reads the journal and waits for what is synced; it runs ahead of the stream by a few frames and then
//! waits for that. So a watch takes nobody's turn, and one that its client does not read costs a thread and a little memory,
//! until the stream is given up, or the journal is not kept any more as far back. What all of them cost is bounded by their
//! number, and what they keep in memory by a share of that of all connections: what watches wait for, because clients do not
//! take what they are told, nobody else waits for.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use boltkv_protocol::{Changes, ErrorCode, ErrorReply, Reply, Watch, WatchFrom, WatchPosition};
use boltkv_storage::{CommittedChanges, CommittedTransaction, Db, Error, Follower, FollowerStop, JournalPosition};
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::places::{Place, Places, start_thread};
use super::refusal::refusal;
use super::results::ReplyRoom;
use super::scan::Source;
use super::watched::{Batch, Watched};
use crate::memory::{Lease, Memory};

/// So many frames are made before the first of them is taken.
const AHEAD: usize = 3;
/// A transaction with so many bytes of changes has room in what every watch has.
const SMALL: usize = 16 * 1024;
/// Bytes that a watch takes of the server's memory: a frame more is made, and one is being written.
const MEMORY: usize = (AHEAD + 2) * (SMALL + Batch::FULL);
/// How often the client is told something at the least: it has to see that the server is there.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long a transaction waits for the memory that it takes.
const MEMORY_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether there is memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often the oldest position is asked for that was given up meanwhile.
const MOST_ASKED: usize = 8;

/// The watches that may be under way at a time, of all connections.
#[derive(Debug, Clone)]
pub(crate) struct Watches {
    pub(crate) places: Places,
    /// What large transactions may take of the memory, for all of them.
    share: Arc<Memory>,
}

/// A watch that is under way.
#[derive(Debug)]
pub(crate) struct WatchRun {
    parts: Receiver<Told>,
    next: Option<Told>,
    stop: Arc<OnceLock<FollowerStop>>,
}

/// What the thread has for the stream: a frame, and the memory that holds a place for it, also when it is written.
type Told = Result<(Changes, Arc<Lease>), ErrorReply>;

impl Watches {
    /// At most so many, and no more than take a quarter of this memory. Their large transactions take another one.
    pub(crate) fn new(most: u32, memory: &Memory) -> Self {
        let quarter = memory.limit() / 4;
        let most = most.min(u32::try_from(quarter / MEMORY).unwrap_or(u32::MAX).max(1));
        let share = Arc::new(Memory::new(quarter));
        Self { places: Places::new(most), share }
    }

    /// Begins one.
    pub(super) fn start(&self, db: &Db, watch: Watch, room: &ReplyRoom) -> Result<WatchRun, ErrorReply> {
        // What is now is what is now, and not when the thread has its first turn.
        let now = db.durable_position().ok_or_else(no_journal)?;
        let too_many = || self.places.all_taken("watches", &["--max-watches", "--memory"]);
        let place = self.places.take().ok_or_else(too_many)?;
        let memory = Arc::new(room.try_take(MEMORY).ok_or_else(|| room.no_memory("a watch"))?);
        let (to, parts) = channel(AHEAD);
        let stop = Arc::new(OnceLock::new());
        let (room, share) = (room.clone(), Arc::clone(&self.share));
        let telling = Telling { db: db.clone(), room, share, memory, to, told: Instant::now() };
        start_thread("boltkv-watch", "for a watch", {
            let stop = Arc::clone(&stop);
            move || telling.run(watch, now, &stop, place)
        })?;
        Ok(WatchRun { parts, next: None, stop })
    }
}

impl WatchRun {
    /// The next frame, and the memory for it; `None` where there is none yet.
    pub(crate) fn take(&mut self) -> Result<Option<(Reply, Arc<Lease>)>, ErrorReply> {
        Ok(self.next.take().transpose()?.map(|(changes, memory)| (Reply::Changes(changes), memory)))
    }
}

impl Source for WatchRun {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.next.is_none() {
            match self.parts.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                // A thread that has ended without an error has panicked.
                Poll::Ready(part) => self.next = Some(part.unwrap_or_else(|| Err(broken_off()))),
            }
        }
        Poll::Ready(())
    }
}

impl Drop for WatchRun {
    fn drop(&mut self) {
        // In this order: the thread says how it is stopped, and then looks whether anybody is there.
        self.parts.close();
        if let Some(stop) = self.stop.get() {
            stop.stop();
        }
    }
}

/// Why a watch ends.
enum Ended {
    /// Nobody wants it any more.
    Gone,
    Failed(ErrorReply),
    Engine(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// What the thread of a watch has.
struct Telling {
    db: Db,
    room: ReplyRoom,
    share: Arc<Memory>,
    /// What it has for transactions that are not large, and for frames of usual length.
    memory: Arc<Lease>,
    to: Sender<Told>,
    /// When something was told last.
    told: Instant,
}

impl Telling {
    fn run(mut self, watch: Watch, now: JournalPosition, stop: &OnceLock<FollowerStop>, place: Place) {
        let Err(ended) = self.follow(watch, now, stop);
        let error = match ended {
            Ended::Gone => None,
            Ended::Failed(error) => Some(error),
            Ended::Engine(error) => Some(self.failed(error)),
        };
        let Self { db, to, .. } = self;
        drop(db);
        if let Some(error) = error {
            // Where nobody wants it, that is why it has ended.
            let _ = to.blocking_send(Err(error));
        }
        drop(place);
    }

    fn follow(
        &mut self,
        watch: Watch,
        now: JournalPosition,
        stop: &OnceLock<FollowerStop>,
    ) -> Result<std::convert::Infallible, Ended> {
        let mut follower = self.begin(watch.from, now)?;
        let _ = stop.set(follower.stopper());
        let mut watched = Watched::new(watch, self.room.max_frame());
        self.tell_position(follower.position())?;
        loop {
            while let Some(transaction) = follower.next()? {
                let position = transaction.position();
                let is_told = self.tell(transaction, &mut watched)?;
                if !is_told && self.told.elapsed() >= TOLD_EVERY {
                    self.tell_position(position)?;
                }
            }
            let left = TOLD_EVERY.saturating_sub(self.told.elapsed());
            if !follower.wait(Some(left)) {
                self.tell_position(follower.position())?;
            }
        }
    }

    fn begin(&self, from: WatchFrom, now: JournalPosition) -> Result<Follower, Ended> {
        let after = match from {
            WatchFrom::Now => now,
            WatchFrom::Position(WatchPosition { epoch, txid }) => JournalPosition { epoch, txid },
            WatchFrom::Oldest => {
                for _ in 1..MOST_ASKED {
                    let oldest = self.db.oldest_position()?.ok_or(Error::JournalNotKept)?;
                    match self.db.follow(oldest) {
                        // The journal has gone on meanwhile.
                        Err(Error::JournalGap { .. }) => {}
                        followed => return Ok(followed?),
                    }
                }
                self.db.oldest_position()?.ok_or(Error::JournalNotKept)?
            }
        };
        Ok(self.db.follow(after)?)
    }

    /// Tells what is watched of a transaction; whether there was any.
    fn tell(&mut self, transaction: CommittedTransaction<'_>, watched: &mut Watched) -> Result<bool, Ended> {
        let (position, time_ms) = (wire(transaction.position()), transaction.time_ms());
        let memory = self.memory_for(transaction.bytes(), transaction.txid())?;
        let changes = Arc::new(transaction.read()?);
        let bytes = Bytes::from_owner(Record { changes: Arc::clone(&changes), _memory: Arc::clone(&memory) });
        let mut batch = Batch::default();
        let full = |batch: &mut Batch, is_whole| Changes { position, time_ms, is_whole, changes: batch.take() };
        changes.each(|effect| {
            let Some(change) = watched.change(effect, &bytes).map_err(Ended::Failed)? else { return Ok(()) };
            if !batch.has_room_for(&change) {
                self.send(full(&mut batch, false), &memory)?;
            }
            batch.push(change);
            Ok::<_, Ended>(())
        })?;
        if batch.is_empty() {
            return Ok(false);
        }
        self.send(full(&mut batch, true), &memory)?;
        Ok(true)
    }

    /// What a transaction with so many bytes of changes needs, as soon as it is there: memory for them, and for the longest
    /// frame of them. With both it waits for nothing that only it can set free.
    fn memory_for(&self, bytes: u64, txid: u64) -> Result<Arc<Lease>, Ended> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes <= SMALL {
            return Ok(Arc::clone(&self.memory));
        }
        let wanted = bytes.saturating_add(bytes.min(self.room.max_frame()));
        if wanted > self.share.limit() {
            let message = format!(
                "transaction {txid} has {bytes} bytes of changes, and takes {wanted} with its longest frame; watches have {}, a \
                 quarter of what connections have of --memory",
                self.share.limit()
            );
            return Err(Ended::Failed(ErrorReply::new(ErrorCode::TxnTooLarge, message)));
        }
        let asked = Instant::now();
        loop {
            if let Some(taken) = self.room.try_take_of(&self.share, wanted) {
                return Ok(Arc::new(taken));
            }
            if self.to.is_closed() {
                return Err(Ended::Gone);
            }
            if asked.elapsed() >= MEMORY_PATIENCE {
                return Err(Ended::Failed(self.room.no_memory("what is to be told")));
            }
            thread::park_timeout(LOOK_EVERY);
        }
    }

    fn tell_position(&mut self, position: JournalPosition) -> Result<(), Ended> {
        let changes = Changes { position: wire(position), time_ms: 0, is_whole: true, changes: Vec::new() };
        let memory = Arc::clone(&self.memory);
        self.send(changes, &memory)
    }

    fn send(&mut self, changes: Changes, memory: &Arc<Lease>) -> Result<(), Ended> {
        self.to.blocking_send(Ok((changes, Arc::clone(memory)))).map_err(|_| Ended::Gone)?;
        self.told = Instant::now();
        Ok(())
    }

    fn failed(&self, error: Error) -> ErrorReply {
        match error {
            Error::JournalNotKept => no_journal(),
            Error::JournalGap { .. } => {
                let oldest = self.db.oldest_position().ok().flatten().map(wire);
                let mut reply = ErrorReply::new(ErrorCode::SnapshotExpired, error.to_string());
                reply.detail = oldest.map(WatchPosition::to_detail).unwrap_or_default();
                reply
            }
            error => refusal(error),
        }
    }
}

/// A transaction's changes in memory, which slices of them keep, with what they take of the server's.
struct Record {
    changes: Arc<CommittedChanges>,
    _memory: Arc<Lease>,
}

impl AsRef<[u8]> for Record {
    fn as_ref(&self) -> &[u8] {
        (*self.changes).as_ref()
    }
}

const fn wire(JournalPosition { epoch, txid }: JournalPosition) -> WatchPosition {
    WatchPosition { epoch, txid }
}

fn no_journal() -> ErrorReply {
    ErrorReply::new(
        ErrorCode::Unsupported,
        "the server keeps no journal (--journal off, or --read-only), so that there is nothing to watch",
    )
}

fn broken_off() -> ErrorReply {
    ErrorReply::new(ErrorCode::StorageFailed, "the watch broke off: a defect of the server")
}
