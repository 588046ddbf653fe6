//! BUCKET STAT: a bucket's figures.
//!
//! All its pages are read, by a thread of its own: those of a large bucket are a disk's work for seconds, which no connection
//! is to wait for but the one that asked. When the stream ends early, so does the thread, at the next page.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use boltkv_protocol::{ErrorCode, ErrorReply, Path, Reply};
use boltkv_storage::Tx;
use bytes::Bytes;
use tokio::sync::oneshot::{self, Receiver};

use super::expiry::{Clock, Moment, View};
use super::places::{Places, start_thread};
use super::refusal::refusal;
use super::results::ReplyRoom;
use super::scan::Source;
use super::state::State as _;
use super::stop::{Stop, StopOnDrop};

/// How many there may be at a time, of all connections: each keeps a processor and the disk busy.
const MOST: u32 = 4;

/// What one takes of the memory: page numbers of which it has not read the pages.
const MEMORY: usize = 8 << 20;

/// The counting that may be under way, of all connections.
#[derive(Debug, Clone)]
pub(crate) struct BucketStats {
    pub(crate) places: Places,
}

/// A bucket that is being counted.
#[derive(Debug)]
pub(crate) struct BucketStatRun {
    counted: Receiver<Result<Reply, ErrorReply>>,
    reply: Option<Result<Reply, ErrorReply>>,
    _ended: StopOnDrop,
}

impl BucketStats {
    pub(crate) fn new() -> Self {
        Self { places: Places::new(MOST) }
    }

    /// Begins one, of this state.
    pub(super) fn start(
        &self,
        tx: Arc<Tx>,
        path: Path,
        clock: &Clock,
        room: &ReplyRoom,
    ) -> Result<BucketStatRun, ErrorReply> {
        View::new(&*tx, Moment::of(clock)).bucket(&path).map_err(refusal)?;
        let all_taken = || format!("the server counts {MOST} buckets at a time: try again");
        let place = self.places.take().ok_or_else(|| ErrorReply::new(ErrorCode::Overloaded, all_taken()))?;
        let memory = room.try_take(MEMORY).ok_or_else(|| room.no_memory("counting a bucket"))?;
        let held = (memory, place);
        let (sender, counted) = oneshot::channel();
        let ended = StopOnDrop::default();
        let stop = ended.stop();
        start_thread("boltkv-stat", "to count a bucket", move || {
            let reply = count(&tx, &path, &stop);
            drop((tx, held));
            // Where nobody wants to know any more, that is why it has ended.
            let _ = sender.send(reply);
        })?;
        Ok(BucketStatRun { counted, reply: None, _ended: ended })
    }
}

impl BucketStatRun {
    /// The reply; `None` where it is still being counted.
    pub(crate) fn take(&mut self) -> Result<Option<Reply>, ErrorReply> {
        self.reply.take().transpose()
    }
}

impl Source for BucketStatRun {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.reply.is_none() {
            match Pin::new(&mut self.counted).poll(cx) {
                Poll::Pending => return Poll::Pending,
                // A thread that has ended without a reply has panicked.
                Poll::Ready(reply) => self.reply = Some(reply.unwrap_or_else(|_| Err(broken_off()))),
            }
        }
        Poll::Ready(())
    }
}

/// The thread.
fn count(tx: &Tx, path: &Path, stop: &Stop) -> Result<Reply, ErrorReply> {
    let bucket = tx.bucket_at(path).map_err(refusal)?;
    let stats = bucket.stats_while(|_| !stop.is_wanted()).map_err(refusal)?;
    stats.map(|stats| figures(&stats, bucket.sequence())).ok_or_else(broken_off)
}

fn figures(stats: &boltkv_storage::BucketStats, sequence: u64) -> Reply {
    let figures = [
        ("keys", stats.keys),
        ("sequence", sequence),
        ("depth", stats.depth),
        ("branch_pages", stats.branch_pages),
        ("branch_overflow_pages", stats.branch_overflow_pages),
        ("branch_alloc", stats.branch_alloc),
        ("branch_inuse", stats.branch_inuse),
        ("leaf_pages", stats.leaf_pages),
        ("leaf_overflow_pages", stats.leaf_overflow_pages),
        ("leaf_alloc", stats.leaf_alloc),
        ("leaf_inuse", stats.leaf_inuse),
        ("buckets", stats.buckets),
        ("inline_buckets", stats.inline_buckets),
        ("inline_bucket_inuse", stats.inline_bucket_inuse),
    ];
    Reply::Stats(figures.map(|(name, figure)| (name.into(), Bytes::from(figure.to_string()))).into())
}

fn broken_off() -> ErrorReply {
    ErrorReply::new(ErrorCode::StorageFailed, "counting the bucket broke off: a defect of the server")
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use boltkv_storage::{Db, Options};

    use super::*;
    use crate::memory::Memory;

    /// A database with 4,000 pages in one bucket.
    fn database() -> Db {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..4000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), vec![8; 3000]))
        })
        .unwrap();
        db
    }

    fn start(bucket_stats: &BucketStats, db: &Db, memory: &Arc<Memory>) -> Result<BucketStatRun, ErrorReply> {
        let room = ReplyRoom::new(Arc::clone(memory), 1 << 20);
        bucket_stats.start(Arc::new(db.begin().unwrap()), Path::from_names(["b"]).unwrap(), &Clock::system(), &room)
    }

    #[tokio::test]
    async fn one_that_is_given_up_lets_go_of_its_snapshot_and_its_memory() {
        let (db, memory, bucket_stats) = (database(), Arc::new(Memory::new(64 << 20)), BucketStats::new());
        let mut run = start(&bucket_stats, &db, &memory).unwrap();
        drop(start(&bucket_stats, &db, &memory).unwrap());
        poll_fn(|cx| run.poll_ready(cx)).await;
        let Some(Reply::Stats(figures)) = run.take().unwrap() else { panic!("no figures") };
        assert_eq!(figures[0], ("keys".into(), "4000".into()));
        bucket_stats.places.end().await;
        assert_eq!((memory.used(), db.stats().open_readers), (0, 0));
        assert_eq!(
            start(&bucket_stats, &db, &memory).unwrap_err().code,
            ErrorCode::Overloaded,
            "after the end there are none"
        );
    }

    #[tokio::test]
    async fn what_is_too_much_is_refused_and_no_place_is_lost() {
        let (db, bucket_stats) = (database(), BucketStats::new());
        let (little, enough) = (Arc::new(Memory::new(MEMORY - 1024)), Arc::new(Memory::new(64 << 20)));
        assert_eq!(start(&bucket_stats, &db, &little).unwrap_err().code, ErrorCode::Overloaded);
        let others = [(); MOST as usize].map(|()| bucket_stats.places.take().unwrap());
        assert_eq!(start(&bucket_stats, &db, &enough).unwrap_err().code, ErrorCode::Overloaded);
        drop(others);
        assert!(start(&bucket_stats, &db, &enough).is_ok());
    }
}
