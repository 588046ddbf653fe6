//! The way to the writer: a queue with bounds in requests and in bytes, first in, first out.

use std::mem::{replace, take};
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::block_in_place;

use super::mailbox::Ticket;
use super::seat::Seat;
use crate::commands::{Outcome, Write};

/// What to wait for where the queue is full: it ends when the request has its place. Dropped before, it answers that the
/// outcome is unknown, though nothing was written.
pub(crate) type Push = Pin<Box<dyn Future<Output = ()> + Send>>;

/// So many requests are enough for a group: the writer is told of them at once.
const ENOUGH: usize = 32;

/// For so many room is made before they come.
const LIKELY: usize = 64;

/// What became of a request that was to go to the writer.
#[must_use]
#[expect(clippy::large_enum_variant, reason = "it is moved once, and most of it is the request")]
pub(crate) enum Pushed {
    /// It has its place. The writer is told of it, and of those that come until then, by who has the bell.
    Queued(Option<Bell>),
    /// It waits for one.
    Waits(Push),
    /// It has its place, and no other client writes: whoever brings it may do it. Let go, it is the writer's.
    Held(Held),
}

#[cfg(test)]
impl Pushed {
    /// What to wait for. What is held is the writer's.
    pub(super) fn waits(self) -> Option<Push> {
        if let Self::Waits(push) = self { Some(push) } else { None }
    }
}

/// A request that may be the only one.
pub(crate) struct Held {
    /// There until it is run or let go.
    job: Option<Job>,
    queue: Queue,
}

impl Held {
    /// Does it on this thread, where still nobody else writes; whether it is answered. Where the thread serves others, too,
    /// the runtime has that done by another meanwhile.
    pub(crate) fn run(mut self, has_own_thread: bool) -> bool {
        let Self { job, queue } = &mut self;
        if !queue.seat.is_only_one() {
            return false;
        }
        if has_own_thread {
            return queue.do_here(job);
        }
        let on_many = Handle::try_current().is_ok_and(|here| here.runtime_flavor() == RuntimeFlavor::MultiThread);
        on_many && block_in_place(|| queue.do_here(job))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            drop(self.queue.post(job));
        }
    }
}

/// Tells the writer, when it is dropped, that requests wait. Whoever has it lets others bring theirs first, where they can do
/// so at once: a group for one of them, and another for the rest, would be two syncs.
#[must_use]
pub(crate) struct Bell(Queue);

impl Drop for Bell {
    fn drop(&mut self) {
        let mut gathered = self.0.waiting.lock();
        let is_due = take(&mut gathered.is_to_be_told) && gathered.jobs.len() >= gathered.wanted;
        drop(gathered);
        if is_due {
            self.0.tell();
        }
    }
}

/// The requests that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    jobs: Vec<Job>,
    /// Somebody has the bell.
    is_to_be_told: bool,
    /// The writer waits for so many, and wants to be told of no fewer: to be woken for each of them would cost more of the
    /// processor than they do.
    wanted: usize,
    /// Somebody found no room since it took what there was: no more can come before it does so again.
    is_full: bool,
    /// The writer is gone.
    is_over: bool,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Gathered> {
        // Nothing that is done while it is held stops half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, in the order in which they came. Whoever still has the bell tells of none of these, and keeps nobody from
    /// telling of the next.
    pub(super) fn take(&self) -> Vec<Job> {
        let mut gathered = self.lock();
        gathered.is_to_be_told = false;
        (gathered.wanted, gathered.is_full) = (0, false);
        let jobs = take(&mut gathered.jobs);
        // As many are likely to come again, and room for them need not grow while they do.
        gathered.jobs.reserve(jobs.len().min(LIKELY));
        jobs
    }

    /// Whether there are so many, or as many as there can be. Where there are not, nobody tells the writer of fewer, until it
    /// takes what there is.
    pub(super) fn has(&self, wanted: usize) -> bool {
        let mut gathered = self.lock();
        gathered.wanted = wanted;
        gathered.is_full || gathered.jobs.len() >= wanted
    }

    /// Notes that there is no room for more; answers whether the writer waits for some.
    fn note_full(&self) -> bool {
        let mut gathered = self.lock();
        gathered.is_full = true;
        gathered.wanted > gathered.jobs.len()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    /// There is no writer any more: what waits, and what comes, is answered by its ticket.
    pub(super) fn end(&self) {
        let mut gathered = self.lock();
        gathered.is_over = true;
        let jobs = take(&mut gathered.jobs);
        drop(gathered);
        drop(jobs);
    }
}

/// A request on its way to the writer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) write: Write,
    pub(super) ticket: Ticket,
    /// The bytes that it takes in the queue.
    bytes: u32,
}

impl Job {
    /// One that takes no room.
    #[cfg(test)]
    pub(super) const fn new(write: Write, ticket: Ticket) -> Self {
        Self { write, ticket, bytes: 0 }
    }

    /// Answers it. Its memory is free before its client can ask for more.
    pub(super) fn answer(self, outcome: Outcome) {
        let Self { write, ticket, .. } = self;
        drop(write);
        ticket.answer(outcome);
    }
}

/// How much more the queue takes.
#[derive(Debug)]
pub(super) struct Room {
    requests: Semaphore,
    bytes: Semaphore,
    requests_bound: usize,
    bytes_bound: u32,
}

impl Room {
    /// What these jobs took is free again.
    pub(super) fn give_back(&self, jobs: &[Job]) {
        self.bytes.add_permits(jobs.iter().map(|job| job.bytes as usize).sum());
        self.requests.add_permits(jobs.len());
    }

    /// There will be no more room.
    pub(super) fn close(&self) {
        self.requests.close();
        self.bytes.close();
    }

    /// What a job takes: at most the whole queue, so that a request larger than the bound gets through when it is empty.
    fn bytes_of(&self, write: &Write) -> u32 {
        u32::try_from(write.bytes()).unwrap_or(u32::MAX).min(self.bytes_bound)
    }
}

/// Where requests wait for the writer. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    bell: mpsc::Sender<()>,
    waiting: Arc<Waiting>,
    room: Arc<Room>,
    seat: Arc<Seat>,
}

impl Queue {
    /// The queue, and for the writer: that somebody tells it to look, and what waits.
    pub(super) fn new(requests: usize, bytes: u32, seat: Arc<Seat>) -> (Self, Arc<Room>, Arc<Waiting>, Receiver<()>) {
        let (bell, rung) = mpsc::channel();
        let room = Arc::new(Room {
            requests: Semaphore::new(requests),
            bytes: Semaphore::new(bytes as usize),
            requests_bound: requests,
            bytes_bound: bytes,
        });
        let waiting = Arc::<Waiting>::default();
        (Self { bell, waiting: Arc::clone(&waiting), room: Arc::clone(&room), seat }, room, waiting, rung)
    }

    /// How many requests wait in it, and their bytes.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let Room { requests, bytes, requests_bound, bytes_bound } = &*self.room;
        let taken = |bound: usize, free: &Semaphore| bound.saturating_sub(free.available_permits());
        (taken(*requests_bound, requests), taken(*bytes_bound as usize, bytes))
    }

    /// Puts a request into the queue, or answers what to wait for where that is full. Those who wait are served in the order
    /// in which they came.
    pub(crate) fn push(&self, write: Write, ticket: Ticket) -> Pushed {
        let job = Job { bytes: self.room.bytes_of(&write), write, ticket };
        let room = &*self.room;
        let permits = room.requests.try_acquire().and_then(|one| Ok((one, room.bytes.try_acquire_many(job.bytes)?)));
        match permits {
            Ok(permits) => return self.take_in(job, permits),
            Err(TryAcquireError::NoPermits) => {
                if self.waiting.note_full() {
                    self.tell();
                }
                return Pushed::Waits(Box::pin(self.clone().push_when_there_is_room(job)));
            }
            // The writer is gone; the ticket says so.
            Err(TryAcquireError::Closed) => drop(job),
        }
        Pushed::Queued(None)
    }

    /// Waits until nothing is queued, or being done.
    #[cfg(test)]
    pub(super) async fn until_idle(&self) {
        while !self.seat.is_idle() {
            tokio::task::yield_now().await;
        }
    }

    async fn push_when_there_is_room(self, job: Job) {
        let Ok(one) = self.room.requests.acquire().await else { return };
        let Ok(bytes) = self.room.bytes.acquire_many(job.bytes).await else { return };
        drop(self.take_in(job, (one, bytes)));
    }

    fn take_in(&self, job: Job, (one, bytes): (SemaphorePermit<'_>, SemaphorePermit<'_>)) -> Pushed {
        // Whoever takes the job gives them back.
        one.forget();
        bytes.forget();
        if self.seat.come(job.ticket.client()) {
            return Pushed::Held(Held { job: Some(job), queue: self.clone() });
        }
        Pushed::Queued(self.post(job))
    }

    /// Adds a job to those that wait. Who gets the bell is to tell the writer.
    fn post(&self, job: Job) -> Option<Bell> {
        let mut waiting = self.waiting.lock();
        if waiting.is_over {
            return None;
        }
        waiting.jobs.push(job);
        let here = waiting.jobs.len();
        let is_enough = if waiting.wanted > 0 { here == waiting.wanted } else { here.is_multiple_of(ENOUGH) };
        let will_be_told = replace(&mut waiting.is_to_be_told, !is_enough);
        drop(waiting);
        if is_enough {
            self.tell();
            return None;
        }
        (!will_be_told).then(|| Bell(self.clone()))
    }

    /// Has the writer look what waits. One that is gone has answered all.
    fn tell(&self) {
        let _ = self.bell.send(());
    }

    /// Does a job, if nobody else writes, and takes it away.
    fn do_here(&self, job: &mut Option<Job>) -> bool {
        let done = self.seat.try_with(|work| {
            // Also where this stops half way the thread is to look.
            let mut look = LookOnDrop(Some(self));
            let group: Vec<Job> = job.take().into_iter().collect();
            self.room.give_back(&group);
            if !work.run(group) {
                look.0 = None;
            }
        });
        if done.is_some() {
            self.seat.leave(1);
        }
        done.is_some()
    }
}

/// Has the writer's thread look what there is to do, or that there will be nothing any more.
struct LookOnDrop<'a>(Option<&'a Queue>);

impl Drop for LookOnDrop<'_> {
    fn drop(&mut self) {
        self.0.into_iter().for_each(Queue::tell);
    }
}
