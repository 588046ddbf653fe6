//! Requests that are answered in steps.

use std::sync::Arc;
use std::task::{Context, Poll};

use boltkv_protocol::{ErrorReply, StreamRequest};
use boltkv_storage::{Db, Tx};

use super::backup::{BackupRun, Backups};
use super::bucket_stat::{BucketStatRun, BucketStats};
use super::expiry::Clock;
use super::refusal::refusal;
use super::resp::RespRun;
use super::results::ReplyRoom;
use super::scan::{ScanRun, Source};
use super::shrink::{ShrinkRun, Shrinks};
use super::txn::TxnRun;
use super::watch::{WatchRun, Watches};
use super::write::Asker;

/// A request that is answered in steps, under way.
#[derive(Debug)]
pub(crate) enum Run {
    /// Its answer goes out part by part.
    Scan(ScanRun),
    /// A bucket's figures, which go out when it is counted.
    BucketStat(BucketStatRun),
    /// Its answer goes out when there is all of it.
    Txn(Box<TxnRun>),
    /// What the Redis dialect asks for goes out part by part.
    Resp(RespRun),
    /// The whole file goes out piece by piece.
    Backup(BackupRun),
    /// What is committed goes out as it comes.
    Watch(WatchRun),
    /// How far it is goes out, and at last what it came to.
    Shrink(ShrinkRun),
}

/// What requests that are answered in steps share with all others.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    pub(crate) backups: Backups,
    pub(crate) shrinks: Shrinks,
    pub(crate) watches: Watches,
    pub(crate) bucket_stats: BucketStats,
}

impl Turns {
    /// Waits until nothing is under way, and all threads have let go of the database. Nothing more can begin then.
    pub(crate) async fn end(&self) {
        let Self { backups, shrinks, watches, bucket_stats } = self;
        for places in [&backups.places, &shrinks.places, &watches.places, &bucket_stats.places] {
            places.end().await;
        }
    }
}

impl Run {
    /// Whether its reply was begun, and is to be told to its end: it has said how much is to come.
    pub(crate) fn is_told_whole(&self) -> bool {
        matches!(self, Self::Resp(run) if run.has_begun())
    }

    /// The state that it reads for as long as its client takes over it; `None` where that is another's matter.
    pub(crate) const fn state(&self) -> Option<&Arc<Tx>> {
        match self {
            Self::Scan(run) => Some(run.state()),
            Self::Resp(run) => Some(run.state()),
            Self::BucketStat(_) | Self::Txn(_) | Self::Backup(_) | Self::Watch(_) | Self::Shrink(_) => None,
        }
    }

    /// Begins one, from this state or the newest.
    pub(crate) fn start(
        db: &Db,
        clock: &Clock,
        state: Option<Arc<Tx>>,
        request: StreamRequest,
        asker: Asker,
        room: &ReplyRoom,
        turns: &Turns,
    ) -> Result<Self, ErrorReply> {
        let max_frame = room.max_frame();
        // A backup opens a state of its own, and a watch or a shrinking looks at none: for them none is opened here.
        let tx = || state.map_or_else(|| db.begin().map(Arc::new).map_err(refusal), Ok);
        Ok(match request.detached() {
            StreamRequest::Scan(scan) => Self::Scan(ScanRun::start(tx()?, clock, scan, false, max_frame)?),
            StreamRequest::ListBuckets(scan) => Self::Scan(ScanRun::start(tx()?, clock, scan, true, max_frame)?),
            StreamRequest::BucketStat(path) => Self::BucketStat(turns.bucket_stats.start(tx()?, path, clock, room)?),
            StreamRequest::Txn(txn) => Self::Txn(Box::new(TxnRun::start(tx()?, clock.now(), &txn, asker, room))),
            StreamRequest::Backup => Self::Backup(turns.backups.start(db, room)?),
            StreamRequest::Watch(watch) => Self::Watch(turns.watches.start(db, watch, room)?),
            StreamRequest::Shrink => Self::Shrink(turns.shrinks.start(db)?),
        })
    }
}

impl Source for Run {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Scan(run) => run.poll_ready(cx),
            Self::Resp(run) => run.poll_ready(cx),
            Self::BucketStat(run) => run.poll_ready(cx),
            Self::Txn(run) => run.poll_ready(cx),
            Self::Backup(run) => run.poll_ready(cx),
            Self::Watch(run) => run.poll_ready(cx),
            Self::Shrink(run) => run.poll_ready(cx),
        }
    }
}
