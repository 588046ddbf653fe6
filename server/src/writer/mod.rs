//! The writer: one thread, the only one that changes the database.
//!
//! It takes all that waits in its queue, applies it in one transaction, commits once and answers each request. While it syncs,
//! the next group gathers; there is no timer, and a lone write waits for nobody. It never waits for a client, and no client
//! waits for it in vain: whatever becomes of it, every request that it was given is answered.

mod group;
mod queue;

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::{io, thread};

use boltkv_storage::Db;

use group::Groups;
pub(crate) use queue::{Answered, Push, Queue, Ticket};
use queue::{Job, Room};

use crate::stats::Stats;

/// The writer's thread. It ends when the last [`Queue`] is gone and all that was queued is answered.
#[derive(Debug)]
pub(crate) struct Writer {
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the writer of a database. At most `requests` requests of `bytes` bytes together wait for it.
    pub(crate) fn start(db: Db, requests: usize, bytes: u32, stats: Arc<Stats>) -> io::Result<(Self, Queue)> {
        let mut groups = Groups::new(db, stats);
        Self::start_with(requests, bytes, move |jobs| groups.run(jobs))
    }

    fn start_with(
        requests: usize,
        bytes: u32,
        run_group: impl FnMut(Vec<Job>) + Send + 'static,
    ) -> io::Result<(Self, Queue)> {
        let (queue, room, jobs) = Queue::new(requests, bytes);
        let thread = thread::Builder::new().name("boltkv-writer".into()).spawn(move || work(&jobs, room, run_group))?;
        Ok((Self { thread }, queue))
    }

    /// Waits until the thread has ended. `false` if it panicked.
    pub(crate) fn join(self) -> bool {
        self.thread.join().is_ok()
    }
}

/// Takes groups until there will be no more.
fn work(jobs: &Receiver<Job>, room: Arc<Room>, mut run_group: impl FnMut(Vec<Job>)) {
    let room = CloseOnDrop(room);
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        // Room is given back after the group is complete, so the queue's bounds are the group's too.
        group.extend(jobs.try_iter());
        room.0.give_back(&group);
        run_group(group);
    }
}

/// However the writer ends, whoever waits for room in its queue is told.
struct CloseOnDrop(Arc<Room>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
