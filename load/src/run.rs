//! A run: connections, threads, and what they have measured put together.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Opened;
use crate::measured::Measured;
use crate::steal::Processors;
use crate::worker::{Worker, values};
use crate::{Error, Server, Work};

/// How often a run that is under way is told of.
const TELL: Duration = Duration::from_millis(250);

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    /// Since it began.
    pub elapsed: Duration,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were not, or by an error.
    pub failed: u64,
}

/// What all threads of a run see.
pub(crate) struct Shared<'a> {
    pub(crate) stop: &'a AtomicBool,
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// Does a work, and says what it took. `tell` hears of it four times a second; `stop` ends it early, with what there is.
///
/// Connections are opened before the clock starts. One that is lost on the way is not made anew, and what was in flight
/// on it are errors; when all are lost, the run is over.
///
/// # Errors
/// [`Error::Impossible`] where the work cannot be done; those of connecting. What goes wrong after the start does not
/// end the run, but is [counted](Measured::errors).
pub fn run(server: &Server, work: &Work, stop: &AtomicBool, tell: &mut dyn FnMut(Live)) -> Result<Measured, Error> {
    work.check()?;
    server.can(work)?;
    let mut opened: Vec<Opened> = (0..work.connections).map(|_| server.open(work)).collect::<Result<_, _>>()?;
    let shared = Shared { stop, answered: AtomicU64::new(0), failed: AtomicU64::new(0) };
    let threads = work.threads.min(work.connections);
    let values = values(work);
    let mut workers = Vec::with_capacity(threads);
    for thread in 0..threads {
        let share = opened.split_off(opened.len() - opened.len() / (threads - thread));
        let place = (thread as u64, threads as u64);
        workers.push(Worker::new(work, &shared, values.clone(), share, place)?);
    }
    let (start, before) = (Instant::now(), Processors::now());
    thread::scope(|scope| {
        let (sender, done) = mpsc::channel();
        for worker in workers {
            let sender = sender.clone();
            let named = thread::Builder::new().name("load".into());
            let spawned = named.spawn_scoped(scope, move || drop(sender.send(worker.run())));
            if let Err(error) = spawned {
                stop.store(true, Relaxed);
                return Err(Error::io("no thread for the load")(error));
            }
        }
        drop(sender);
        let mut measured = Measured::new();
        loop {
            match done.recv_timeout(TELL) {
                Ok(Ok(part)) => measured.add(part)?,
                // The others have nobody to measure for.
                Ok(Err(error)) => {
                    stop.store(true, Relaxed);
                    return Err(error);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    measured.stolen = before.zip(Processors::now()).map(|(then, now)| now.stolen_since(then));
                    return Ok(measured);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let [answered, failed] = [&shared.answered, &shared.failed].map(|count| count.load(Relaxed));
                    tell(Live { elapsed: start.elapsed(), answered, failed });
                }
            }
        }
    })
}
