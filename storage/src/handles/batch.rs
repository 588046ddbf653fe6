//! Batches: many small changes from many threads, in one transaction and one sync.
//!
//! Whoever comes while nobody leads becomes the leader: it runs what has gathered, commits once,
//! and answers. What gathers meanwhile is led by the first of those who wait. So a lone caller
//! waits for nobody, and under load a batch is as long as a commit takes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, mem};

use super::callbacks::Callbacks;
use super::{Db, TxMut};
use crate::{Error, Result};

/// One caller's change; it keeps the closure's own result to itself. `false`: it returned an error.
type Change = Box<dyn FnOnce(&mut TxMut) -> bool + Send>;

struct Job {
    change: Change,
    caller: SyncSender<Message>,
}

/// What a waiting caller is told.
enum Message {
    /// Its change was run and committed (or undone, where it failed).
    Done,
    /// The commit failed.
    Failed(Error),
    /// Its change panicked, and was undone.
    Panicked(Box<dyn Any + Send>),
    /// Its change was not run yet, and it has become the leader.
    Lead,
}

/// The changes that wait, and whether somebody leads.
#[derive(Default)]
pub(crate) struct Batcher(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    waiting: Vec<Job>,
    led: bool,
}

impl Batcher {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change under the lock is whole: a thread that died held it in no half state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lead, which goes on to the first of those who wait, also where this thread dies.
struct Lead<'a>(&'a Batcher);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        match queue.waiting.first() {
            Some(next) => tell(&next.caller, Message::Lead),
            None => queue.led = false,
        }
    }
}

impl fmt::Debug for Batcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

impl Db {
    /// Runs `write` in a write transaction together with those of other threads that call this at
    /// the same time: one commit, one sync, for all of them. It is durable when this returns (as far
    /// as the database's [`Durability`](crate::Durability) promises).
    ///
    /// A change that returns an error or panics is undone, and does not hurt the others.
    ///
    /// ```
    /// # let db = boltkv_storage::Options::new().open_in_memory()?;
    /// db.update(|tx| tx.create_bucket("visits").map(|_| ()))?;
    /// std::thread::scope(|scope| {
    ///     for thread in 0..4_u32 {
    ///         let db = db.clone();
    ///         scope.spawn(move || {
    ///             for page in ["home", "about"] {
    ///                 db.batch(move |tx| {
    ///                     let mut visits = tx.bucket_mut("visits")?;
    ///                     let number = visits.next_sequence()?;
    ///                     visits.put(number.to_be_bytes(), format!("{thread}: {page}"))?;
    ///                     Ok(())
    ///                 })
    ///                 .expect("the disk has room");
    ///             }
    ///         });
    ///     }
    /// });
    /// assert_eq!(db.begin()?.bucket("visits")?.count()?, 8);
    /// # Ok::<_, boltkv_storage::Error>(())
    /// ```
    ///
    /// # Errors
    /// What `write` returns, and those of [`Self::begin_mut`] and [`TxMut::commit`].
    ///
    /// # Panics
    /// Where `write` does, or what it has given to [`TxMut::on_commit`]: then the change is committed.
    pub fn batch<T: Send + 'static>(&self, write: impl FnOnce(&mut TxMut) -> Result<T> + Send + 'static) -> Result<T> {
        self.try_batch(write)
    }

    /// As [`Self::batch`], with an error type of your own, as in [`Self::try_update`].
    ///
    /// # Errors
    /// As [`Self::batch`].
    ///
    /// # Panics
    /// As [`Self::batch`].
    pub fn try_batch<T, E>(&self, write: impl FnOnce(&mut TxMut) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (answer, answered) = sync_channel(1);
        let change = Box::new(move |tx: &mut TxMut| {
            let result = write(tx);
            let ok = result.is_ok();
            // The receiver is in this call's frame, which waits.
            let _ = answer.send(result);
            ok
        });
        match self.join_batch(change) {
            Message::Done => answered.recv().unwrap_or_else(|_| Err(lost().into())),
            Message::Failed(error) => match answered.try_recv() {
                Ok(Err(own)) => Err(own),
                _ => Err(error.into()),
            },
            Message::Panicked(panic) => resume_unwind(panic),
            Message::Lead => Err(lost().into()),
        }
    }

    /// Waits until the change is done, by this thread or another.
    fn join_batch(&self, change: Change) -> Message {
        let (caller, told) = sync_channel(2);
        let mut queue = self.0.batcher.queue();
        queue.waiting.push(Job { change, caller });
        let leads = !mem::replace(&mut queue.led, true);
        drop(queue);
        if leads {
            self.lead_batch();
        }
        match wait(&told) {
            Message::Lead => {
                self.lead_batch();
                wait(&told)
            }
            done => done,
        }
    }

    /// Runs what has gathered, this thread's own change among it, and hands the lead on.
    fn lead_batch(&self) {
        let lead = Lead(&self.0.batcher);
        let begun = self.begin_mut();
        let mut queue = self.0.batcher.queue();
        let count = queue.waiting.len().min(self.0.shared.options.max_batch.max(1));
        let jobs: Vec<Job> = queue.waiting.drain(..count).collect();
        drop(queue);
        let (callers, mut outcome) = run(begun, jobs);
        // Callbacks are called when somebody else can lead: they may call `batch` themselves.
        drop(lead);
        for Answered { caller, panic, callbacks } in callers {
            let message = match (&mut outcome, panic) {
                (_, Some(panic)) => Message::Panicked(panic),
                (Ok(all), None) => all.take_first(callbacks).call().map_or_else(Message::Panicked, |()| Message::Done),
                (Err(error), None) => Message::Failed(error.again()),
            };
            tell(&caller, message);
        }
    }
}

impl TxMut {
    /// Lets all savepoints go: none can be gone back to any more, what was noted for them is free, and changes cost as
    /// little as before the first. As [`Db::batch`] does between one caller's change and the next; the savepoint that it
    /// has set before a change stays, whatever the change lets go.
    pub fn forget_savepoints(&mut self) {
        self.work.forget_savepoints();
    }
}

/// A caller whose change was run.
struct Answered {
    caller: SyncSender<Message>,
    panic: Option<Box<dyn Any + Send>>,
    /// How many callbacks its change has left.
    callbacks: usize,
}

/// Runs all jobs in one transaction, each undone by itself if it fails, and commits.
fn run(begun: Result<TxMut>, jobs: Vec<Job>) -> (Vec<Answered>, Result<Callbacks>) {
    let mut tx = match begun {
        Ok(tx) => tx,
        Err(error) => {
            let unheard = |job: Job| Answered { caller: job.caller, panic: None, callbacks: 0 };
            return (jobs.into_iter().map(unheard).collect(), Err(error));
        }
    };
    let mut outcome = Ok(Callbacks::default());
    let mut changed = false;
    let mut callers = Vec::with_capacity(jobs.len());
    for Job { change, caller } in jobs {
        let callbacks = tx.callbacks();
        let before = tx.savepoint();
        tx.work.keep_savepoints();
        let ran = catch_unwind(AssertUnwindSafe(|| change(&mut tx)));
        if matches!(ran, Ok(true)) {
            changed = true;
        } else if let Err(error) = tx.rollback_to(&before) {
            outcome = Err(error);
        }
        // A later change cannot go back to where this one was.
        tx.work.let_savepoints_go();
        callers.push(Answered { caller, panic: ran.err(), callbacks: tx.callbacks() - callbacks });
    }
    if outcome.is_ok() && changed {
        outcome = tx.commit_for_batch();
    }
    (callers, outcome)
}

fn wait(told: &Receiver<Message>) -> Message {
    told.recv().unwrap_or_else(|_| Message::Failed(lost()))
}

/// There is room for both messages that a caller can get, and it waits for them.
fn tell(caller: &SyncSender<Message>, message: Message) {
    let _ = caller.send(message);
}

/// The leader died without an answer: a panic in the engine itself.
#[cold]
fn lost() -> Error {
    Error::Poisoned { reason: "the thread that led the batch has died".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn one_that_lets_savepoints_go_and_fails_hurts_only_itself() {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| tx.create_bucket("bucket").map(drop)).unwrap();
        // Both wait until this ends, and are done in one transaction.
        let tx = db.begin_mut().unwrap();
        let put = |tx: &mut TxMut, key| tx.bucket_mut("bucket")?.put(key, "value");
        let (bad, good) = std::thread::scope(|scope| {
            let bad = scope.spawn(|| {
                db.batch(move |tx| {
                    put(tx, "bad")?;
                    tx.forget_savepoints();
                    put(tx, "worse")?;
                    Err::<(), _>(Error::BucketNameRequired)
                })
            });
            let good = scope.spawn(|| db.batch(move |tx| put(tx, "good")));
            while db.0.batcher.queue().waiting.len() < 2 {
                std::thread::yield_now();
            }
            drop(tx);
            (bad.join().unwrap(), good.join().unwrap())
        });
        assert!(matches!(bad, Err(Error::BucketNameRequired)), "{bad:?}");
        good.unwrap();
        let keys = db.view(|tx| Ok(tx.bucket("bucket")?.iter().count())).unwrap();
        assert_eq!(keys, 1);
    }
}
