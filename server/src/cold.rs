//! Reads that have to wait for the disk, and wait where nobody waits with them.
//!
//! A page of the file that is not in memory is read when it is looked at, and the thread that looks at it waits, with all
//! connections whose turn it would be. To ask beforehand whether a read would wait costs about as much as the read. So it
//! is asked only while there is reason to: a turn took longer than work does, or a read would have waited not long ago.
//!
//! What would wait goes to a few threads. Each takes all that has gathered while it waited, from however many connections,
//! and asks the disk for it at once: as with commits, many together cost far less than one after the other.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use boltkv_protocol::ReadRequest;
use boltkv_storage::{Db, Tx};
use tokio::sync::oneshot;

use crate::commands::{self, ColdReads};

/// So many reads are looked at where one may have waited,
const SUSPECTED: u32 = 64;
/// and so many more where one would have.
const CERTAIN: u32 = 512;

/// Threads that wait for the disk. While one waits, what is next gathers for the others.
const THREADS: usize = 4;

/// So many reads a thread takes at a time, and those of one connection more: what a disk has at once is to be waited for.
const AT_ONCE: usize = 64;

/// Is ready when the pages are in memory, or nobody brings them there any more.
pub(crate) type FaultIn = oneshot::Receiver<()>;

/// Whether reads may have to wait, and the way to where they do.
#[derive(Debug)]
pub(crate) struct Cold {
    /// So many reads more are looked at before they are done. Threads may count over one another: it need not be exact.
    wary_for: AtomicU32,
    shared: Arc<Shared>,
}

/// The threads that wait.
#[derive(Debug)]
pub(crate) struct Waiting(Vec<JoinHandle<()>>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    wanted: VecDeque<Wanted>,
    closed: bool,
}

/// What a connection waits for.
#[derive(Debug)]
struct Wanted {
    reads: Vec<ReadRequest>,
    /// As of this state; none: of the newest.
    state: Option<Arc<Tx>>,
    done: oneshot::Sender<()>,
}

impl Cold {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system's, which has none.
    pub(crate) fn start(db: &Db) -> io::Result<(Self, Waiting)> {
        // After the start nothing may be in memory.
        let cold = Self { wary_for: AtomicU32::new(SUSPECTED), shared: Arc::default() };
        let start = |_| {
            let (db, shared) = (db.clone(), Arc::clone(&cold.shared));
            thread::Builder::new().name("boltkv-reads".into()).spawn(move || shared.serve(&db))
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        Ok((cold, Waiting(threads)))
    }

    /// A read may have waited for the disk.
    pub(crate) fn suspect(&self) {
        self.wary_for.fetch_max(SUSPECTED, Relaxed);
    }
}

impl Cold {
    /// Has a read's pages brought into memory as of this state.
    pub(crate) fn fault_in_at(&self, state: Arc<Tx>, read: ReadRequest) -> FaultIn {
        self.want(vec![read], Some(state))
    }

    fn want(&self, reads: Vec<ReadRequest>, state: Option<Arc<Tx>>) -> FaultIn {
        self.wary_for.store(CERTAIN, Relaxed);
        let (done, fault_in) = oneshot::channel();
        self.shared.lock().wanted.push_back(Wanted { reads, state, done });
        self.shared.changed.notify_one();
        fault_in
    }
}

impl ColdReads for Cold {
    fn is_wary(&self) -> bool {
        self.wary_for.load(Relaxed) > 0
    }

    fn is_warm(&self) {
        let left = self.wary_for.load(Relaxed);
        self.wary_for.store(left.saturating_sub(1), Relaxed);
    }

    /// As of the newest state of the database.
    fn fault_in(&self, reads: Vec<ReadRequest>) -> FaultIn {
        self.want(reads, None)
    }
}

impl Drop for Cold {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Waiting {
    /// Waits until the threads have ended, as they do when nobody can ask for anything any more.
    pub(crate) fn join(self) {
        for thread in self.0 {
            // What goes wrong with a read does not end them; and nothing depends on them any more.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that is done under the lock can leave it half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, db: &Db) {
        while let Some(wanted) = self.take() {
            // Should it ever panic, what it did not bring is waited for by the reads themselves.
            let _ = catch_unwind(AssertUnwindSafe(|| fault_in(db, &wanted)));
            for Wanted { done, .. } in wanted {
                // A connection that has ended needs no answer.
                let _ = done.send(());
            }
        }
    }

    /// What has gathered, as much as is asked of the disk at once; waits until there is something. `None` at the end.
    fn take(&self) -> Option<Vec<Wanted>> {
        let mut queue = self.lock();
        while queue.wanted.is_empty() {
            if queue.closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut taken, mut reads) = (Vec::new(), 0);
        while reads < AT_ONCE
            && let Some(wanted) = queue.wanted.pop_front()
        {
            if !wanted.done.is_closed() {
                reads += wanted.reads.len();
                taken.push(wanted);
            }
        }
        Some(taken)
    }
}

/// Waits until all that is wanted is in memory, what is of the newest state together.
fn fault_in(db: &Db, wanted: &[Wanted]) {
    let of_newest: Vec<_> =
        wanted.iter().filter(|wanted| wanted.state.is_none()).flat_map(|w| w.reads.clone()).collect();
    if !of_newest.is_empty()
        && let Ok(tx) = db.begin()
    {
        commands::fault_in(&tx, &of_newest);
    }
    for Wanted { reads, state, .. } in wanted {
        if let Some(state) = state {
            commands::fault_in(state, reads);
        }
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::Path;
    use boltkv_storage::Options;

    use super::*;

    fn get(bucket: &str, key: &str) -> ReadRequest {
        ReadRequest::Get { path: bucket.parse::<Path>().unwrap(), key: key.to_owned().into() }
    }

    #[tokio::test]
    async fn everybody_is_told_and_the_threads_end_with_the_last_who_could_ask() {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| tx.create_bucket("b")?.put("k", "v")).unwrap();
        let (cold, waiting) = Cold::start(&db).unwrap();
        let reads = vec![get("b", "k"), ReadRequest::Ping("p".into()), get("b", "?"), get("nowhere", "k")];
        let mut asked: Vec<_> = (0..1_000).map(|_| cold.fault_in(reads.clone())).collect();
        // Those that are given up delay nobody.
        let given_up = asked.split_off(500);
        drop(given_up);
        for fault_in in asked {
            fault_in.await.unwrap();
        }
        let last = cold.fault_in(reads);
        drop(cold);
        last.await.unwrap();
        waiting.join();
    }

    #[tokio::test]
    async fn reads_are_looked_at_for_a_while_after_one_has_waited() {
        let db = Options::new().open_in_memory().unwrap();
        let (cold, _waiting) = Cold::start(&db).unwrap();
        let wary_for = || std::iter::from_fn(|| cold.is_wary().then(|| cold.is_warm())).count();
        assert_eq!(wary_for(), SUSPECTED as usize, "at the start");
        cold.suspect();
        assert_eq!(wary_for(), SUSPECTED as usize);
        cold.fault_in(vec![]).await.unwrap();
        cold.suspect();
        assert_eq!(wary_for(), CERTAIN as usize);
    }
}
