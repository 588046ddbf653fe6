//! The writer, which goes from hand to hand: whoever has it writes.

use std::collections::VecDeque;
use std::sync::mpsc::{SendError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::Writer;

/// Where the writer waits for whoever wants to write next: first come, first served.
#[derive(Debug)]
pub(crate) struct WriterSlot {
    slot: Mutex<Slot>,
    /// Why nobody may write any more.
    failure: OnceLock<String>,
}

#[derive(Debug)]
struct Slot {
    writer: Option<Box<Writer>>,
    /// Where those who wait get it from, in the order in which they came.
    waiting: VecDeque<SyncSender<Box<Writer>>>,
}

impl WriterSlot {
    pub(crate) fn new(writer: Option<Writer>) -> Self {
        let slot = Mutex::new(Slot { writer: writer.map(Box::new), waiting: VecDeque::new() });
        Self { slot, failure: OnceLock::new() }
    }

    /// From now on nobody may write any more. The first reason is the one that matters.
    pub(crate) fn end(&self, reason: String) {
        let _ = self.failure.set(reason);
    }

    /// Why nobody may write any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the writer.
    pub(crate) fn take(&self) -> Box<Writer> {
        let mut slot = self.lock();
        if let Some(writer) = slot.writer.take() {
            return writer;
        }
        let (turn, given) = sync_channel(1);
        slot.waiting.push_back(turn);
        drop(slot);
        given.recv().expect("the slot keeps the other end until it has sent the writer")
    }

    /// Hands it to the first who waits, so that nobody who comes later is before him.
    pub(crate) fn put_back(&self, mut writer: Box<Writer>) {
        let mut slot = self.lock();
        while let Some(next) = slot.waiting.pop_front() {
            match next.send(writer) {
                Ok(()) => return,
                Err(SendError(back)) => writer = back,
            }
        }
        slot.writer = Some(writer);
    }

    /// Waits for the writer and lets `work` have it.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> T {
        /// Puts the writer back also where `work` panics: everybody else would wait for ever. What it has is not to be
        /// trusted then.
        struct Held<'a> {
            slot: &'a WriterSlot,
            writer: Option<Box<Writer>>,
            was_panicking: bool,
        }
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                if thread::panicking() && !self.was_panicking {
                    self.slot.end("a panic in the midst of a change".into());
                }
                if let Some(writer) = self.writer.take() {
                    self.slot.put_back(writer);
                }
            }
        }
        let mut held = Held { slot: self, writer: Some(self.take()), was_panicking: thread::panicking() };
        work(held.writer.as_mut().expect("it is there until the drop"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use std::sync::Mutex;

    use crate::Options;

    #[test]
    fn writers_are_served_in_the_order_in_which_they_came() {
        const WRITERS: usize = 6;
        let db = Options::new().open_in_memory().unwrap();
        let order = Mutex::new(Vec::new());
        let first = db.begin_mut().unwrap();
        std::thread::scope(|scope| {
            for number in 0..WRITERS {
                let (db, order) = (&db, &order);
                scope.spawn(move || {
                    let tx = db.begin_mut().unwrap();
                    order.lock().unwrap().push(number);
                    drop(tx);
                });
                while db.0.shared.writer.lock().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            drop(first);
            // Whoever comes when the writer is about to go from hand to hand is the last.
            let last = db.begin_mut().unwrap();
            assert_eq!(*order.lock().unwrap(), (0..WRITERS).collect::<Vec<_>>());
            drop(last);
        });
    }
}
