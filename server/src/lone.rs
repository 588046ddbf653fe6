//! A thread of its own for a connection that writes alone.
//!
//! What comes alone is written where it comes (`writer::seat`), and that thread waits for the disk. If it serves others, too,
//! the runtime has to wake another for them beforehand, which takes about half as long as a sync of a quick disk. So who goes
//! on writing alone gets a thread that serves nobody else.

use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};

const NAME: &str = "boltkv-lone";

/// So many may have one: more do not write alone at a time.
const MOST: usize = 4;

/// How many have one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lone(Arc<AtomicUsize>);

impl Lone {
    /// Starts a thread; `None` where there are enough, or the system has none.
    pub(crate) fn start(&self) -> Option<OwnThread> {
        self.0.fetch_update(Relaxed, Relaxed, |taken| (taken < MOST).then_some(taken + 1)).ok()?;
        // Whatever becomes of it, it has its place until it is dropped.
        let mut thread = OwnThread { runtime: None, lone: self.clone() };
        thread.runtime = Some(runtime().ok()?);
        Some(thread)
    }
}

fn runtime() -> io::Result<Runtime> {
    // A runtime panics where the system has no thread for it. Whether it has is seen by one that ends at once.
    let tried = thread::Builder::new().name(NAME.into()).spawn(|| ())?;
    // It does nothing that could panic.
    let _ = tried.join();
    let build = || Builder::new_multi_thread().worker_threads(1).thread_name(NAME).enable_all().build();
    // Another may have taken its place meanwhile. Nothing of the runtime is left then.
    catch_unwind(build).unwrap_or_else(|_| Err(io::Error::other("the system has no thread for a runtime")))
}

/// A thread that serves one connection.
#[derive(Debug)]
pub(crate) struct OwnThread {
    /// `None` when it is over.
    runtime: Option<Runtime>,
    lone: Lone,
}

impl OwnThread {
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        // Who drops it is a thread of another runtime, and waits for nothing.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.lone.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_have_one_and_who_gives_it_up_leaves_it_to_others() {
        let lone = Lone::default();
        let mut threads: Vec<_> = (0..MOST).map(|_| lone.start().unwrap()).collect();
        assert!(lone.start().is_none());
        drop(threads.pop());
        let thread = lone.start().unwrap();
        assert!(thread.handle().is_some());
        assert!(lone.start().is_none());
    }
}
