//! The place of the one who writes: the writer's thread, or whoever brings a request while nobody else does.
//!
//! To hand a request to another thread and its answer back takes two threads that are woken, some tens of microseconds:
//! a lone client that waits for each of its writes waits for that, too. Where one client's requests have come one by one for
//! a while, its next is therefore done where it arrives. As soon as two come at the same time, it is the thread again that
//! gathers them; and as soon as one of another client comes, it is the thread's, because who serves many clients would keep
//! those waiting, each time it writes for one of them.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Work;

/// So many requests of a client came one by one before one is done where it arrives.
const IN_A_ROW: u32 = 16;

/// Whoever holds the lock writes.
pub(super) struct Seat {
    /// `None` once it is over.
    work: Mutex<Option<Box<dyn Work>>>,
    /// Requests that are queued, held or being done, and the thread where it looks what there is to do.
    under_way: AtomicUsize,
    /// Who came last, and how often it has come, one by one, since anybody else did.
    last: AtomicU64,
    in_a_row: AtomicU32,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl Seat {
    pub(super) fn new(work: impl Work) -> Self {
        let work: Box<dyn Work> = Box::new(work);
        Self {
            work: Mutex::new(Some(work)),
            under_way: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
        }
    }

    /// A request of this client has come. Whether it is the only one, and the client has been for a while.
    pub(super) fn come(&self, client: u64) -> bool {
        let is_alone = self.under_way.fetch_add(1, Ordering::AcqRel) == 0;
        let is_same = self.last.swap(client, Ordering::Relaxed) == client;
        let before = self.in_a_row.load(Ordering::Relaxed);
        let in_a_row = match (is_same, is_alone) {
            (false, _) => 0,
            // The thread may have something to do of its own, or not have seen yet that it has done the last one.
            (true, false) => before / 2,
            (true, true) => before.saturating_add(1),
        };
        self.in_a_row.store(in_a_row, Ordering::Relaxed);
        is_alone && in_a_row >= IN_A_ROW
    }

    /// The thread looks what there is to do.
    pub(super) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it still is.
    pub(super) fn is_only_one(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 1
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Acquire) == 0
    }

    /// So many have done what they had to do.
    pub(super) fn leave(&self, requests: usize) {
        self.under_way.fetch_sub(requests, Ordering::AcqRel);
    }

    /// Has the thread do something, once nobody else does.
    ///
    /// # Panics
    /// Where somebody has panicked here: what was begun is half done.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut dyn Work) -> T) -> Option<T> {
        let mut work = self.work.lock().expect("who has brought a request has stopped half way");
        work.as_deref_mut().map(act)
    }

    /// Has who brings a request do something, if nobody else does.
    pub(super) fn try_with<T>(&self, act: impl FnOnce(&mut dyn Work) -> T) -> Option<T> {
        // Where somebody has panicked here the thread finds that out, too, and says so.
        let mut work = self.work.try_lock().ok()?;
        work.as_deref_mut().map(act)
    }

    /// Nobody writes any more.
    pub(super) fn end(&self) {
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(work);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use boltkv_protocol::{ErrorCode, Reply};

    use super::super::mailbox::Mailbox;
    use super::super::queue::Job;
    use super::super::tests::{codes, set};
    use super::super::{Pushed, Queue, Writer};
    use super::{IN_A_ROW, Seat};

    #[test]
    fn a_client_has_come_alone_when_no_other_has_since_and_nothing_else_is_under_way() {
        let seat = Seat::new(|_: Vec<Job>| ());
        let once = |client| {
            let is_alone = seat.come(client);
            seat.leave(1);
            is_alone
        };
        assert!((0..IN_A_ROW).all(|_| !once(1)) && once(1));
        assert!(!once(2) && !once(1), "two take turns");
        assert!((1..IN_A_ROW).all(|_| !once(1)) && once(1));
        seat.begin();
        assert!(!once(1), "the thread looks what there is to do");
        seat.leave(1);
        assert!(!once(1) && (0..IN_A_ROW).any(|_| once(1)), "that is soon made up for");
    }

    /// A writer that says on which thread it does each group. Requests have come to it one by one.
    async fn for_one(
        mut each: impl FnMut() + Send + 'static,
    ) -> (Writer, Queue, Receiver<thread::ThreadId>, Mailbox, impl Fn(&Queue, u32) -> Pushed) {
        let (report, threads) = channel();
        let (writer, queue) = Writer::start_with(100, 1 << 20, move |jobs: Vec<Job>| {
            report.send(thread::current().id()).unwrap();
            each();
            for job in jobs {
                job.ticket.answer(Reply::Written { txid: 1 }.into());
            }
        })
        .unwrap();
        let answers = Mailbox::default();
        let to = answers.clone();
        let push = move |queue: &Queue, id| queue.push(set(1), to.ticket(1, id));
        for id in 0..100 {
            drop(push(&queue, id));
            assert_eq!(codes(&answers, 1).await, [(id, None)]);
            assert_ne!(threads.recv().unwrap(), thread::current().id(), "what is let go is the writer's");
            queue.until_idle().await;
        }
        (writer, queue, threads, answers, push)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_comes_alone_is_done_where_it_comes_and_what_does_not_is_the_writers() {
        let (writer, queue, threads, answers, push) = for_one(|| ()).await;
        let here = thread::current().id();
        for id in 0..3 {
            let Pushed::Held(held) = push(&queue, id) else { panic!("nobody else is there") };
            assert!(held.run(false));
            assert_eq!((threads.try_recv(), answers.try_next().map(|(id, _)| id)), (Ok(here), Some(id)));
        }
        let Pushed::Held(held) = push(&queue, 3) else { panic!("nobody else is there") };
        assert!(matches!(push(&queue, 4), Pushed::Queued(_)), "one is held");
        // Done here or by the thread, whichever is first.
        held.run(false);
        assert_eq!(codes(&answers, 2).await, [(3, None), (4, None)]);
        assert!(threads.try_iter().any(|thread| thread != here), "the other one is the thread's");
        drop(queue);
        assert!(writer.join());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_panics_where_it_comes_is_the_last_to_write() {
        let mut left = 100;
        let (writer, queue, _threads, answers, push) = for_one(move || {
            left -= 1;
            assert!(left >= 0, "a defect");
        })
        .await;
        let Pushed::Held(held) = push(&queue, 1) else { panic!("nobody else is there") };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| held.run(false))).is_err());
        assert!(!writer.join(), "the thread notices, and its end is told");
        drop(push(&queue, 2));
        let failed = Some(ErrorCode::StorageFailed);
        assert_eq!(codes(&answers, 2).await, [(1, failed), (2, failed)]);
    }
}
