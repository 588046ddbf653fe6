//! Threads for connections that send many requests at once.
//!
//! Connections that wait for each answer are served best by few threads: more of them take the processors from each other,
//! from the writer and from the system's network, and who has lost its processor keeps everybody waiting whose turn it has.
//! A connection that sends many requests at once is a long turn for its thread each time, and there more threads do more.
//! So there are some that serve only such connections; of these they take their share, the first of all to begin with, so
//! that one alone is in nobody's way.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::lone::Lone;

/// The threads, and how many connections that send bursts are served where.
#[derive(Debug)]
pub(crate) struct Bursts {
    /// `None` when it is over.
    runtime: Option<Runtime>,
    /// The runtime that serves everybody.
    home: Handle,
    here: Threads,
    there: Threads,
    /// The other threads of the server's own.
    lone: Lone,
}

/// Some threads, and how many such connections they serve.
#[derive(Debug)]
struct Threads {
    threads: usize,
    connections: AtomicUsize,
}

impl Threads {
    fn new(threads: usize) -> Self {
        Self { threads, connections: AtomicUsize::new(0) }
    }

    fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }
}

/// Where such a connection is served, for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where all others are.
    Here,
    /// By the threads for bursts.
    There,
}

impl Bursts {
    /// Starts so many threads. To be called within the runtime that serves everybody.
    ///
    /// # Errors
    /// The system's, which has none.
    pub(crate) fn start(threads: NonZeroUsize) -> io::Result<Self> {
        let name = "boltkv-bursts";
        let runtime =
            Builder::new_multi_thread().worker_threads(threads.get()).thread_name(name).enable_all().build()?;
        let home = Handle::current();
        let [here, there] = [home.metrics().num_workers(), threads.get()].map(Threads::new);
        Ok(Self { runtime: Some(runtime), home, here, there, lone: Lone::default() })
    }

    /// The place of one more. Connections that ask at the same moment may not see each other: it need not be exact.
    pub(crate) fn take_place(&self) -> Place {
        let [here, there] = [&self.here, &self.there].map(Threads::connections);
        let place = if there * self.here.threads <= here * self.there.threads { Place::There } else { Place::Here };
        self.at(place).connections.fetch_add(1, Relaxed);
        place
    }

    /// One that had this place is gone.
    pub(crate) fn leave(&self, place: Place) {
        self.at(place).connections.fetch_sub(1, Relaxed);
    }

    /// The runtime of the threads for bursts.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// The runtime of the threads that serve everybody.
    pub(crate) const fn home(&self) -> &Handle {
        &self.home
    }

    /// The threads that serve one connection each.
    pub(crate) const fn lone(&self) -> &Lone {
        &self.lone
    }

    const fn at(&self, place: Place) -> &Threads {
        match place {
            Place::Here => &self.here,
            Place::There => &self.there,
        }
    }
}

impl Drop for Bursts {
    fn drop(&mut self) {
        // The last who shares it may be one of its own threads, or another runtime's, where nobody may wait. No session is
        // left then: each shares it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_goes_to_them_and_then_each_has_its_share() {
        let bursts = Bursts::start(NonZeroUsize::new(2).unwrap()).unwrap();
        let places: Vec<_> = (0..6).map(|_| bursts.take_place()).collect();
        let (here, there) = (Place::Here, Place::There);
        assert_eq!(places, [there, here, there, there, here, there]);
        bursts.leave(there);
        bursts.leave(there);
        assert_eq!([(); 3].map(|()| bursts.take_place()), [there, there, there]);
    }
}
