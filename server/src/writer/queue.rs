//! The way to the writer: a queue with bounds in requests and in bytes, first in, first out; and the way back of the answers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};

use crate::commands::{Outcome, Write};

/// The reply to the request of this id.
pub(crate) type Answered = (u32, Outcome);

/// What to wait for where the queue is full: it ends when the request has its place. Dropped before, it answers that the
/// outcome is unknown, though nothing was written.
pub(crate) type Push = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request on its way to the writer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(super) write: Write,
    pub(super) ticket: Ticket,
    /// The bytes that it takes in the queue.
    bytes: u32,
}

impl Job {
    /// Answers it. Its memory is free before its client can ask for more.
    pub(super) fn answer(self, outcome: Outcome) {
        let Self { write, ticket, .. } = self;
        drop(write);
        ticket.answer(outcome);
    }
}

/// A promise that a request is answered: one that is dropped answers that the outcome is unknown.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: u32,
    to: Option<UnboundedSender<Answered>>,
}

impl Ticket {
    /// The answer to request `id` will be sent to `to`, which has room: connections bound what they have in flight.
    pub(crate) const fn new(id: u32, to: UnboundedSender<Answered>) -> Self {
        Self { id, to: Some(to) }
    }

    /// Keeps the promise.
    pub(crate) fn answer(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Outcome) {
        if let Some(to) = self.to.take() {
            // A connection that is gone needs no answer.
            let _ = to.send((self.id, outcome));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.to.is_some() {
            let message = "the writer stopped; whether this was written is unknown";
            self.send(Reply::Error(ErrorReply::new(ErrorCode::StorageFailed, message)).into());
        }
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
    jobs: mpsc::Sender<Job>,
    room: Arc<Room>,
}

impl Queue {
    pub(super) fn new(requests: usize, bytes: u32) -> (Self, Arc<Room>, Receiver<Job>) {
        // The channel itself has no bound: the room has.
        let (jobs, receiver) = mpsc::channel();
        let room = Arc::new(Room {
            requests: Semaphore::new(requests),
            bytes: Semaphore::new(bytes as usize),
            requests_bound: requests,
            bytes_bound: bytes,
        });
        (Self { jobs, room: Arc::clone(&room) }, room, receiver)
    }

    /// How many requests wait in it, and their bytes.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let Room { requests, bytes, requests_bound, bytes_bound } = &*self.room;
        let taken = |bound: usize, free: &Semaphore| bound.saturating_sub(free.available_permits());
        (taken(*requests_bound, requests), taken(*bytes_bound as usize, bytes))
    }

    /// Puts a request into the queue, or answers what to wait for where that is full. Those who wait are served in the order
    /// in which they came.
    pub(crate) fn push(&self, write: Write, ticket: Ticket) -> Option<Push> {
        let job = Job { bytes: self.room.bytes_of(&write), write, ticket };
        let room = &*self.room;
        let permits = room.requests.try_acquire().and_then(|one| Ok((one, room.bytes.try_acquire_many(job.bytes)?)));
        match permits {
            Ok(permits) => self.send(job, permits),
            Err(TryAcquireError::NoPermits) => return Some(Box::pin(self.clone().push_when_there_is_room(job))),
            // The writer is gone; the ticket says so.
            Err(TryAcquireError::Closed) => drop(job),
        }
        None
    }

    async fn push_when_there_is_room(self, job: Job) {
        let Ok(one) = self.room.requests.acquire().await else { return };
        let Ok(bytes) = self.room.bytes.acquire_many(job.bytes).await else { return };
        self.send(job, (one, bytes));
    }

    fn send(&self, job: Job, (one, bytes): (SemaphorePermit<'_>, SemaphorePermit<'_>)) {
        // The writer gives them back when it takes the job.
        one.forget();
        bytes.forget();
        // A job that cannot be sent comes back and is dropped: its ticket answers.
        let _ = self.jobs.send(job);
    }
}
