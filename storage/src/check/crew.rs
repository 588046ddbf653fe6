//! The walk by several threads, which share what is still ahead.
//!
//! It answers one question, whether all is sound, and the answer does not depend on who comes where
//! first: a walk that finds nothing wrong has seen every page once, in whatever order. What is
//! wrong does depend on it (of two references to a page, the second is the wrong one), so that the
//! first problem ends this walk, and whoever wants to know them all walks again, alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::CheckOptions;
use super::walk::{Seen, Subtree, Walk};
use crate::format::Pgid;
use crate::pages::{PageSet, Pages};

/// Fewer pages than this for each thread are walked before another thread has begun.
const PAGES_FOR_A_THREAD: u64 = 1024;

/// How many threads are to walk over so many pages.
pub(super) fn threads(options: &CheckOptions<'_>, mark: Pgid) -> usize {
    let worth_it = || usize::try_from(mark / PAGES_FOR_A_THREAD).unwrap_or(usize::MAX).max(1);
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    options.threads.unwrap_or_else(|| match worth_it() {
        1 => 1,
        worth_it => cores().min(worth_it),
    })
}

/// The pages that `root` leads to, or `None` where anything is wrong with them.
pub(super) fn walk(pages: Pages<'_>, root: Pgid, options: &CheckOptions<'_>, threads: usize) -> Option<PageSet> {
    let (used, seen) = (PageSet::new(pages.mark()), Seen::new(options.progress));
    let crew = Crew::new(root, threads);
    let options = options.most_problems(1);
    // Together they may see as much as one would.
    let new_walk = || Walk::new(pages, options, &used, &seen, threads as u64);
    thread::scope(|scope| {
        for _ in 1..threads {
            let spawned = thread::Builder::new().spawn_scoped(scope, || crew.work(&mut new_walk()));
            if spawned.is_err() {
                // The system gives no more threads: those that are there do it.
                crew.ahead().workers -= 1;
            }
        }
        crew.work(&mut new_walk());
    });
    let sound = !crew.ended_early.into_inner();
    sound.then_some(used)
}

/// What the threads have in common.
struct Crew<'a> {
    ahead: Mutex<Ahead<'a>>,
    more: Condvar,
    /// How many wait for something to do: looked at after every page, without the lock.
    waiting: AtomicUsize,
    /// Somebody has found a problem.
    ended_early: AtomicBool,
}

/// Subtrees that nobody has begun.
struct Ahead<'a> {
    subtrees: Vec<Subtree<'a>>,
    workers: usize,
}

impl<'a> Crew<'a> {
    fn new(root: Pgid, workers: usize) -> Self {
        Self {
            ahead: Mutex::new(Ahead { subtrees: vec![Subtree::root(root, None, b"")], workers }),
            more: Condvar::new(),
            waiting: AtomicUsize::new(0),
            ended_early: AtomicBool::new(false),
        }
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead<'a>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one subtree after another, and gives away half of what it has found when others wait.
    fn work(&self, walk: &mut Walk<'a, '_>) {
        let _guard = EndIfPanicking(self);
        while let Some(subtree) = self.next() {
            walk.ahead.push(subtree);
            while walk.step() {
                if walk.has_enough() {
                    self.end();
                }
                if self.ended_early.load(Ordering::Relaxed) {
                    return;
                }
                if walk.ahead.len() > 1 && self.waiting.load(Ordering::Relaxed) > 0 {
                    self.share(&mut walk.ahead);
                }
            }
        }
    }

    /// What was found first is nearest the root, and so the largest.
    fn share(&self, found: &mut Vec<Subtree<'a>>) {
        let half = found.len() / 2;
        self.ahead().subtrees.extend(found.drain(..half));
        self.more.notify_all();
    }

    /// Waits for a subtree; `None` when all wait, and there is nothing left, or when a problem was found.
    fn next(&self) -> Option<Subtree<'a>> {
        let mut ahead = self.ahead();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.ended_early.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(subtree) = ahead.subtrees.pop() {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                return Some(subtree);
            }
            if self.waiting.load(Ordering::Relaxed) == ahead.workers {
                self.more.notify_all();
                return None;
            }
            ahead = self.more.wait(ahead).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self) {
        // Under the lock: whoever has looked at it is waiting by now, and hears of it.
        let _ahead = self.ahead();
        self.ended_early.store(true, Ordering::Relaxed);
        self.more.notify_all();
    }
}

/// A thread that panics must not leave the others waiting for it; the scope hands the panic on.
struct EndIfPanicking<'a, 'b>(&'a Crew<'b>);

impl Drop for EndIfPanicking<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end();
        }
    }
}
