//! SHRINK: the file made smaller while it is in use.
//!
//! A thread of its own moves pages, in transactions of a bounded size between those of the writer. The stream only tells how
//! far that is. When it ends early, so does the thread, after the transaction that it is at.

use std::task::{Context, Poll};
use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};
use boltkv_storage::{Db, Shrinking};
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::places::{Place, Places, start_thread};
use super::refusal::refusal;
use super::scan::Source;
use super::stop::{Stop, StopOnDrop};

/// How often the client is told how far it is, at the least: it has to see that the server is there.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// The shrinking that may be under way, of all connections.
#[derive(Debug, Clone)]
pub(crate) struct Shrinks {
    pub(crate) places: Places,
}

/// A shrinking that is under way.
#[derive(Debug)]
pub(crate) struct ShrinkRun {
    parts: Receiver<Result<Reply, ErrorReply>>,
    next: Option<Result<Reply, ErrorReply>>,
    /// What was told last, to be told again.
    told: Shrinking,
    tick: Interval,
    _ended: StopOnDrop,
}

impl Shrinks {
    pub(crate) fn new() -> Self {
        Self { places: Places::new(1) }
    }

    /// Begins one.
    pub(super) fn start(&self, db: &Db) -> Result<ShrinkRun, ErrorReply> {
        let already = || ErrorReply::new(ErrorCode::Overloaded, "the file is being made smaller already");
        let place = self.places.take().ok_or_else(already)?;
        let (sender, parts) = channel(1);
        let ended = StopOnDrop::default();
        start_thread("boltkv-shrink", "to make the file smaller", {
            let (db, stop) = (db.clone(), ended.stop());
            move || shrink(db, &sender, &stop, place)
        })?;
        let mut tick = interval(TOLD_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(ShrinkRun { parts, next: None, told: Shrinking::default(), tick, _ended: ended })
    }
}

impl ShrinkRun {
    /// The next frame; `None` where there is nothing to tell yet.
    pub(crate) fn take(&mut self) -> Result<Option<Reply>, ErrorReply> {
        self.next.take().transpose()
    }
}

impl Source for ShrinkRun {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.next.is_some() {
            return Poll::Ready(());
        }
        if let Poll::Ready(part) = self.parts.poll_recv(cx) {
            if let Some(Ok(Reply::Shrinking { moved, left })) = part {
                (self.told.moved, self.told.left) = (moved, left);
            }
            // A thread that has ended without an end has panicked.
            self.next = Some(part.unwrap_or_else(|| Err(broken_off())));
            return Poll::Ready(());
        }
        if self.tick.poll_tick(cx).is_ready() {
            let Shrinking { moved, left, .. } = self.told;
            self.next = Some(Ok(Reply::Shrinking { moved, left }));
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// The thread.
fn shrink(db: Db, to: &Sender<Result<Reply<Bytes>, ErrorReply>>, stop: &Stop, place: Place) {
    let shrunk = db.shrink_telling(|Shrinking { moved, left, .. }| {
        // What is not told now is told by what is told later.
        let _ = to.try_send(Ok(Reply::Shrinking { moved, left }));
        !stop.is_wanted()
    });
    drop((db, place));
    let last = shrunk.map_err(refusal).map(|shrunk| {
        let (before, after, moved) = (shrunk.before, shrunk.after, shrunk.moved);
        Reply::Shrunk { before, after, moved }
    });
    // Where nobody wants to know, that is why it has ended.
    let _ = to.blocking_send(last);
}

fn broken_off() -> ErrorReply {
    ErrorReply::new(ErrorCode::StorageFailed, "making the file smaller broke off: a defect of the server")
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use boltkv_storage::Options;

    use super::*;

    /// A database of which half is free, at its beginning.
    fn half_empty() -> Db {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| tx.create_bucket("gone")?.put("large", vec![7; 8 << 20])).unwrap();
        db.update(|tx| {
            let mut kept = tx.create_bucket("kept")?;
            (0..4000_u32).try_for_each(|key| kept.put(key.to_be_bytes(), vec![8; 1000]))
        })
        .unwrap();
        db.update(|tx| tx.delete_bucket("gone")).unwrap();
        db
    }

    #[tokio::test]
    async fn it_tells_how_far_it_is_and_what_it_came_to() {
        let (db, shrinks) = (half_empty(), Shrinks::new());
        // While somebody writes it cannot end before it is asked for once more.
        let writing = db.begin_mut().unwrap();
        let mut run = shrinks.start(&db).unwrap();
        assert_eq!(shrinks.start(&db).unwrap_err().code, ErrorCode::Overloaded);
        drop(writing);
        let mut told = 0;
        let (before, after) = loop {
            poll_fn(|cx| run.poll_ready(cx)).await;
            match run.take().unwrap().unwrap() {
                Reply::Shrinking { .. } => told += 1,
                Reply::Shrunk { before, after, .. } => break (before, after),
                other => panic!("{other:?}"),
            }
        };
        assert!(told > 0 && after < before, "told {told} times: {before} bytes, {after} now");
        shrinks.places.end().await;
        assert_eq!(shrinks.start(&db).unwrap_err().code, ErrorCode::Overloaded, "after the end there is none");
    }

    #[tokio::test]
    async fn one_that_is_given_up_ends_and_lets_go_of_the_database() {
        let (db, shrinks) = (half_empty(), Shrinks::new());
        drop(shrinks.start(&db).unwrap());
        shrinks.places.end().await;
        assert_eq!(db.begin().unwrap().check().unwrap(), []);
    }
}
