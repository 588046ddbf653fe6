//! The writer: one thread, the only one that changes the database, but for requests that come alone (`seat`).
//!
//! It takes all that waits in its queue, applies it in one transaction, commits once and answers each request. While it syncs,
//! the next group gathers, and a lone write waits for nobody; where a sync takes 100 µs or longer, those who were just answered
//! are waited for, for two milliseconds at most (`company`). It depends on no client, and no client waits for it in vain:
//! whatever becomes of it, every request that it was given is answered. Between groups it removes keys that have expired, a few
//! at a time (`reclaim`). Answers arrive in each connection's `mailbox`.

mod company;
mod group;
mod mailbox;
mod queue;
mod reclaim;
mod seat;
mod trouble;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use boltkv_storage::Db;

use company::{Company, Moment};
use group::Groups;
pub(crate) use mailbox::{Answered, Mailbox, Ticket};
pub(crate) use queue::{Bell, Held, Push, Pushed, Queue};
use queue::{Job, Room, Waiting};
use seat::Seat;

use crate::commands::{Expiration, ReplyRoom};
use crate::health::Health;
use crate::stats::Stats;

/// The writer's thread. It ends when the last [`Queue`] is gone and all that was queued is answered.
#[derive(Debug)]
pub(crate) struct Writer {
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the writer of a database. At most `requests` requests of `bytes` bytes together wait for it. Long replies have
    /// `room`.
    pub(crate) fn start(
        db: &Db,
        expiry: &Expiration,
        requests: usize,
        bytes: u32,
        room: &ReplyRoom,
        stats: &Arc<Stats>,
        health: &Arc<Health>,
    ) -> io::Result<(Self, Queue)> {
        let groups = Groups::new(db.clone(), expiry.clone(), room.clone(), Arc::clone(stats), Arc::clone(health));
        Self::start_with(requests, bytes, groups)
    }

    fn start_with(requests: usize, bytes: u32, work: impl Work) -> io::Result<(Self, Queue)> {
        let seat = Arc::new(Seat::new(work));
        let (queue, room, waiting, rung) = Queue::new(requests, bytes, Arc::clone(&seat));
        let last = LastOnDrop { room, waiting, seat };
        let thread = thread::Builder::new().name("boltkv-writer".into()).spawn(move || work_on(&rung, &last))?;
        Ok((Self { thread }, queue))
    }

    /// Waits until the thread has ended. `false` if it panicked.
    pub(crate) fn join(self) -> bool {
        self.thread.join().is_ok()
    }
}

/// What the writer does.
trait Work: Send + 'static {
    /// Does a group. Whether something is to be done sooner now than [`Self::idle_for`] has said.
    fn run(&mut self, jobs: Vec<Job>) -> bool;

    /// When there is something to do that nobody has asked for: after so long. `None` where there will be nothing.
    fn idle_for(&mut self) -> Option<Duration> {
        None
    }

    /// Does a little of that, if it is to be done now.
    fn tidy(&mut self) {}
}

/// Takes groups until there will be no more.
fn work_on(rung: &Receiver<()>, last: &LastOnDrop) {
    let LastOnDrop { room, waiting, seat } = last;
    let mut company = Company::default();
    loop {
        let told = match seat.with(Work::idle_for).flatten() {
            None => rung.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(idle) => rung.recv_timeout(idle),
        };
        if told == Err(RecvTimeoutError::Disconnected) {
            break;
        }
        if told.is_ok() {
            company.await_in(waiting, rung);
        }
        // It keeps others from writing where they are.
        seat.begin();
        let taken = seat.with(|work| {
            // All that was told of until now is taken now.
            while rung.try_recv().is_ok() {}
            let group = waiting.take();
            // Room is given back after the group is complete, so the queue's bounds are the group's too.
            room.give_back(&group);
            let taken = group.len();
            if taken > 0 {
                let since = Moment::now();
                work.run(group);
                company.note(taken, since, waiting.len());
            }
            // However many groups there are, it has its turn after each.
            work.tidy();
            taken
        });
        seat.leave(1 + taken.unwrap_or(0));
    }
}

/// However the writer's thread ends, whoever waits for it or for room in its queue is told, and nobody writes any more.
struct LastOnDrop {
    room: Arc<Room>,
    waiting: Arc<Waiting>,
    seat: Arc<Seat>,
}

impl Drop for LastOnDrop {
    fn drop(&mut self) {
        self.room.close();
        self.waiting.end();
        self.seat.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver as Gate, channel};

    use boltkv_protocol::{Cond, ErrorCode, Path, Reply, WriteRequest};
    use bytes::Bytes;
    use tokio::time::timeout;

    use super::*;
    use crate::commands::{Asker, Write};

    pub(super) const PATIENCE: Duration = Duration::from_secs(30);

    impl<F: FnMut(Vec<Job>) + Send + 'static> Work for F {
        fn run(&mut self, jobs: Vec<Job>) -> bool {
            self(jobs);
            false
        }
    }

    pub(super) fn set(value_len: usize) -> Write {
        let path = Path::from_names(["b"]).unwrap();
        let value = Bytes::from(vec![0; value_len]);
        Write::new(WriteRequest::Set { path, key: "k".into(), value, cond: Cond::Always }, Asker::default())
    }

    /// A writer that takes a group for every message at the gate, and says how large each was.
    fn gated(requests: usize, bytes: u32) -> (Writer, Queue, std::sync::mpsc::Sender<()>, Gate<usize>) {
        let (open, gate) = channel();
        let (report, groups) = channel();
        let (writer, queue) = Writer::start_with(requests, bytes, move |jobs: Vec<Job>| {
            report.send(jobs.len()).unwrap();
            gate.recv_timeout(PATIENCE).unwrap();
            for job in jobs {
                job.ticket.answer(Reply::Written { txid: 1 }.into());
            }
        })
        .unwrap();
        (writer, queue, open, groups)
    }

    pub(super) async fn codes(answers: &Mailbox, count: u32) -> Vec<(u32, Option<ErrorCode>)> {
        let mut codes = Vec::new();
        for _ in 0..count {
            let answered = timeout(PATIENCE, answers.next()).await;
            let (id, outcome) = answered.expect("every request is answered");
            codes.push((id, if let Reply::Error(error) = outcome.reply { Some(error.code) } else { None }));
        }
        codes.sort_by_key(|(id, _)| *id);
        codes
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_while_a_group_is_written_becomes_the_next_group() {
        let (writer, queue, open, groups) = gated(100, 1 << 20);
        let answers = Mailbox::default();
        let push = |id| assert!(queue.push(set(1), answers.ticket(1, id)).waits().is_none(), "there is room");
        push(0);
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        (1..=10).for_each(push);
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 10);
        open.send(()).unwrap();
        assert!(codes(&answers, 11).await.iter().all(|(_, code)| code.is_none()));
        drop(queue);
        assert!(writer.join());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_comes_before_the_writer_is_told_is_one_group_and_enough_of_it_is_told_at_once() {
        let (writer, queue, open, groups) = gated(1_000, 1 << 20);
        let answers = Mailbox::default();
        let push = |id: u32| match queue.push(set(1), answers.ticket(id.into(), id)) {
            Pushed::Queued(bell) => bell,
            _ => panic!("there is room, and they do not come alone"),
        };
        let bell = push(0);
        assert!(bell.is_some() && (1..10).all(|id| push(id).is_none()), "one of them tells of all");
        drop(bell);
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 10);
        open.send(()).unwrap();
        let late = push(10);
        assert!((11..42).all(|id| push(id).is_none()));
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 32, "nobody has told of them yet");
        open.send(()).unwrap();
        let next = push(42);
        drop(late);
        drop(next);
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        open.send(()).unwrap();
        assert!(codes(&answers, 43).await.iter().all(|(_, code)| code.is_none()));
        drop(push(43));
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        drop(push(44));
        let kept = push(45);
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 2, "the other one was told of");
        let last = push(46);
        assert!(kept.is_some() && last.is_some(), "who keeps the bell of what was taken keeps nobody from telling");
        open.send(()).unwrap();
        drop((kept, queue, last));
        open.send(()).unwrap();
        let expected: Vec<_> = (43..47).map(|id| (id, None)).collect();
        assert_eq!(codes(&answers, 4).await, expected, "told of as the last way to the writer ends");
        assert!(writer.join());
    }

    // Promises: ops-queue.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_finds_the_queue_full_waits_and_is_served_in_order() {
        let (writer, queue, open, groups) = gated(2, 1 << 20);
        let answers = Mailbox::default();
        let push = |id| queue.push(set(1), answers.ticket(1, id)).waits();
        assert!(push(0).is_none());
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1, "taken: the queue is empty again");
        assert!(push(1).is_none() && push(2).is_none());
        let (mut third, mut fourth) = (push(3).expect("full"), push(4).expect("full"));
        // Both are in line before there is room.
        tokio::select! {
            biased;
            () = &mut third => panic!("there is no room"),
            () = &mut fourth => panic!("there is no room"),
            () = std::future::ready(()) => {}
        }
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 2);
        third.await;
        fourth.await;
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 2);
        open.send(()).unwrap();
        let mut order = Vec::new();
        for _ in 0..5 {
            order.push(timeout(PATIENCE, answers.next()).await.unwrap().0);
        }
        assert_eq!(order, [0, 1, 2, 3, 4]);
        drop(queue);
        assert!(writer.join());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn paths_take_room_in_the_queue_like_everything_else() {
        let (writer, queue, open, groups) = gated(100, 100_000);
        let answers = Mailbox::default();
        let long = Path::from_names(vec![vec![b'n'; 60_000]]).unwrap();
        let push = |id| {
            let delete = WriteRequest::DeleteBucket(long.clone());
            queue.push(Write::new(delete, Asker::default()), answers.ticket(1, id)).waits()
        };
        assert!(push(0).is_none());
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1, "taken: the queue is empty again");
        assert!(push(1).is_none());
        let second = tokio::spawn(push(2).expect("two paths of 60,000 bytes do not fit"));
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        second.await.unwrap();
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        open.send(()).unwrap();
        assert_eq!(codes(&answers, 3).await.len(), 3);
        drop(queue);
        assert!(writer.join());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_larger_than_the_queue_waits_until_it_is_empty() {
        let (writer, queue, open, groups) = gated(100, 1_000);
        let answers = Mailbox::default();
        let push = |id, len| queue.push(set(len), answers.ticket(1, id)).waits();
        assert!(push(0, 5_000).is_none(), "the queue is empty");
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1);
        assert!(push(1, 1).is_none());
        let large = tokio::spawn(push(2, 5_000).expect("it is not empty any more"));
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1, "the small one");
        large.await.unwrap();
        open.send(()).unwrap();
        assert_eq!(groups.recv_timeout(PATIENCE).unwrap(), 1, "the large one, alone");
        open.send(()).unwrap();
        assert_eq!(codes(&answers, 3).await.len(), 3);
        drop(queue);
        assert!(writer.join());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_writer_that_panics_leaves_nobody_without_an_answer() {
        let (reached, at_gate) = channel();
        let (open, gate) = channel::<()>();
        let (writer, queue) = Writer::start_with(2, 1 << 20, move |_jobs: Vec<Job>| {
            reached.send(()).unwrap();
            gate.recv_timeout(PATIENCE).unwrap();
            panic!("a defect");
        })
        .unwrap();
        let answers = Mailbox::default();
        let push = |id| queue.push(set(1), answers.ticket(1, id)).waits();
        assert!(push(0).is_none());
        at_gate.recv_timeout(PATIENCE).unwrap();
        assert!(push(1).is_none() && push(2).is_none(), "queued behind it");
        let waiting = tokio::spawn(push(3).expect("full"));
        open.send(()).unwrap();
        let failed = Some(ErrorCode::StorageFailed);
        let expected: Vec<_> = (0..4).map(|id| (id, failed)).collect();
        assert_eq!(codes(&answers, 4).await, expected);
        waiting.await.unwrap();
        assert!(push(4).is_none(), "nobody waits for a writer that is gone");
        assert_eq!(codes(&answers, 1).await, [(4, failed)]);
        assert!(!writer.join(), "the panic is reported");
    }
}
