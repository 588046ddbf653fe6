//! Whether the writer waits a moment for those whom it has just answered.
//!
//! Clients that write again and again come back right after they were answered, a little too late for the next group: they fall
//! into two halves, one of which waits for the other's sync. Where a sync takes much longer than they need to come back, one
//! sync for all of them does nearly twice as much: of 50 clients on a disk of 3,000 writes a second a third more. On one that
//! takes 250 µs a sync, 50 clients that do nothing else write 0.9 times as much so; but the disk is asked half as often for
//! it, the journal has a quarter less of blocks that are half full, and whoever reads beside them has the processor time of
//! the syncs that are spared. On a disk that is quicker still there is nothing to spare, and nobody waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::queue::Waiting;

/// A group is so many times less than the mean of those before it: a disk that is rented lets one write quickly for a while, and
/// then not at all.
const WEIGHT: u32 = 256;
/// A sync that takes less is not worth waiting.
const LONG: Duration = Duration::from_micros(100);
/// It is waited as long as a sync takes, and no longer than this.
const MOST: Duration = Duration::from_millis(2);

/// What the last groups say of the next one.
#[derive(Debug, Default)]
pub(super) struct Company {
    /// How many requests were under way when the last group had been answered: its own, and those that waited by then.
    under_way: usize,
    /// How long groups wait for the disk: the mean, of the last ones above all.
    waited: Duration,
}

impl Company {
    /// Waits for others, if that is worth it.
    pub(super) fn await_in(&mut self, waiting: &Waiting, rung: &Receiver<()>) {
        let patience = self.patience();
        if patience.is_zero() {
            return;
        }
        let until = Instant::now() + patience;
        while !waiting.has(self.under_way) {
            match rung.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                // Some do not come any more: next time nobody waits for them.
                Err(RecvTimeoutError::Timeout) => self.under_way = waiting.len(),
            }
        }
    }

    fn patience(&self) -> Duration {
        if self.waited < LONG || self.under_way < 2 { Duration::ZERO } else { self.waited.min(MOST) }
    }

    /// Notes a group of so many requests, begun then, after which others waited already.
    pub(super) fn note(&mut self, taken: usize, since: Moment, waiting: usize) {
        let waited = since.wall.elapsed().saturating_sub(processor_time().saturating_sub(since.processor));
        // One that stands still for seconds says little of the next syncs.
        self.waited = (self.waited * (WEIGHT - 1) + waited.min(64 * MOST)) / WEIGHT;
        self.under_way = taken + waiting;
    }
}

/// A time by both clocks: the world's, and that of the processor as this thread has had it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    wall: Instant,
    processor: Duration,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { wall: Instant::now(), processor: processor_time() }
    }
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(tv_sec).unwrap_or(0), u32::try_from(tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::super::mailbox::Mailbox;
    use super::super::queue::{Job, Pushed, Queue};
    use super::super::seat::Seat;
    use super::super::tests::set;
    use super::*;

    #[test]
    fn it_is_waited_where_syncs_take_long_and_others_were_there() {
        let after =
            |waited, under_way| Company { under_way, waited: Duration::from_micros(waited) }.patience().as_micros();
        assert_eq!([after(600, 50), after(90_000, 50)], [600, MOST.as_micros()]);
        assert_eq!([after(99, 50), after(900, 1)], [0; 2]);
    }

    #[test]
    fn who_does_not_come_is_waited_for_once() {
        let (waiting, (_bell, rung)) = (Waiting::default(), channel());
        let mut company = Company { under_way: 50, waited: LONG };
        let begun = Instant::now();
        company.await_in(&waiting, &rung);
        assert!(begun.elapsed() >= LONG);
        assert_eq!((company.under_way, company.patience()), (0, Duration::ZERO));
    }

    #[test]
    fn who_waits_is_woken_once_all_are_there_and_afterwards_by_each() {
        let seat = Arc::new(Seat::new(|_: Vec<Job>| ()));
        let (queue, _room, waiting, rung) = Queue::new(100, 1 << 20, seat);
        let answers = Mailbox::default();
        let mut wakes = |id| {
            drop(queue.push(set(1), answers.ticket(1, id)));
            rung.try_iter().count()
        };
        assert!(!waiting.has(3));
        assert_eq!([0, 1, 2, 3].map(&mut wakes), [0, 0, 1, 1]);
        assert!(waiting.has(4));
        assert_eq!(waiting.take().len(), 4);
        assert_eq!([4, 5].map(&mut wakes), [1, 1]);
    }

    #[test]
    fn no_more_are_waited_for_than_there_is_room_for() {
        let seat = Arc::new(Seat::new(|_: Vec<Job>| ()));
        let (queue, _room, waiting, rung) = Queue::new(2, 1 << 20, seat);
        let answers = Mailbox::default();
        assert!(!waiting.has(5));
        let pushed: Vec<_> = (0..3).map(|id| queue.push(set(1), answers.ticket(1, id))).collect();
        assert!(matches!(pushed[2], Pushed::Waits(_)));
        assert_eq!(rung.try_iter().count(), 1);
        assert!(waiting.has(5));
        assert_eq!(waiting.take().len(), 2);
        assert!(!waiting.has(5));
    }
}
