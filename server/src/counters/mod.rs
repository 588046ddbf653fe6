//! What threads count while they serve, and what is read of it now and then.
//!
//! A counter that all cores write would cost more than many reads do. So each thread has a *shard* of its own, and writes
//! that once a turn, for all that was done in it; who wants to know adds up the shards.

mod command;
mod histogram;

use std::array;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread::available_parallelism;
use std::time::Duration;

use boltkv_protocol::{ErrorCode, resp};

use crate::slow_log::Slow;
pub(crate) use command::Command;
pub(crate) use histogram::{Buckets, Histogram, TIME_BOUNDS, TIMES};

/// More shards than this are no faster: threads that are so many share them.
const MOST_SHARDS: usize = 64;

/// What can come of a request: success, or one of the codes of errors, the last one a code without a name.
const RESULTS: usize = ErrorCode::ALL.len() + 2;

/// Where each code of an error is counted, by its number.
const PLACES: [u8; 256] = places();

/// What requests are, as far as it decides how long they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Stream,
}

impl From<resp::Kind> for Kind {
    fn from(kind: resp::Kind) -> Self {
        match kind {
            resp::Kind::Session | resp::Kind::Read => Self::Read,
            resp::Kind::Walk => Self::Stream,
            resp::Kind::Write => Self::Write,
        }
    }
}

/// A command with what came of it: where such requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    command: Command,
    /// 0 for success.
    result: u8,
}

/// All shards.
#[derive(Debug)]
pub(crate) struct Counters {
    /// A power of two.
    shards: Box<[Shard]>,
}

/// What some threads have counted. No two lie in one line of a processor's cache, nor in a pair of lines that it fetches
/// together.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    requests: Box<[[AtomicU64; RESULTS]]>,
    latencies: [Histogram<TIMES>; 3],
    received: AtomicU64,
    sent: AtomicU64,
}

impl Place {
    pub(crate) fn new(command: Command, error: Option<ErrorCode>) -> Self {
        Self { command, result: error.map_or(0, |code| PLACES[code.to_u8() as usize]) }
    }

    pub(crate) const fn command(self) -> Command {
        self.command
    }

    /// So many of these that took so long, together.
    pub(crate) fn slow(self, requests: u32, took: Duration) -> Slow {
        let code = usize::from(self.result).checked_sub(1);
        let result = code.map_or("ok", |index| ErrorCode::ALL.get(index).map_or("UNKNOWN", |code| code.name()));
        Slow { command: self.command.name(), result, requests, took }
    }
}

impl Counters {
    pub(crate) fn new() -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        let shards = threads.next_power_of_two().min(MOST_SHARDS);
        Self { shards: (0..shards).map(|_| Shard::new()).collect() }
    }

    /// That of the calling thread.
    pub(crate) fn shard(&self) -> &Shard {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
        }
        let thread = THREAD.get().unwrap_or_else(|| {
            let thread = THREADS.fetch_add(1, Relaxed);
            THREAD.set(Some(thread));
            thread
        });
        &self.shards[thread & (self.shards.len() - 1)]
    }

    /// How many requests of this command were answered so: with success, or with this error.
    pub(crate) fn requests(&self, command: Command, error: Option<ErrorCode>) -> u64 {
        let place = Place::new(command, error);
        self.sum(|shard| shard.requests(place))
    }

    /// How long requests of this kind took.
    pub(crate) fn latencies(&self, kind: Kind) -> Buckets<TIMES> {
        self.shards.iter().map(|shard| shard.latencies[kind as usize].buckets()).sum()
    }

    /// Bytes that connections have sent to the server.
    pub(crate) fn received(&self) -> u64 {
        self.sum(|shard| &shard.received)
    }

    /// Bytes that connections have taken.
    pub(crate) fn sent(&self) -> u64 {
        self.sum(|shard| &shard.sent)
    }

    fn sum<'a>(&'a self, counter: impl Fn(&'a Shard) -> &'a AtomicU64) -> u64 {
        self.shards.iter().map(|shard| counter(shard).load(Relaxed)).sum()
    }
}

impl Shard {
    fn new() -> Self {
        Self {
            requests: (0..Command::COUNT).map(|_| [const { AtomicU64::new(0) }; RESULTS]).collect(),
            latencies: array::from_fn(|_| Histogram::new(&TIME_BOUNDS)),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        }
    }

    /// So many requests more were answered.
    pub(crate) fn answered(&self, place: Place, requests: u32) {
        self.requests(place).fetch_add(requests.into(), Relaxed);
    }

    fn requests(&self, place: Place) -> &AtomicU64 {
        &self.requests[place.command.index()][usize::from(place.result)]
    }

    /// So many requests took so long.
    pub(crate) fn took(&self, kind: Kind, time: Duration, requests: u32) {
        self.latencies[kind as usize].record_time(time, requests);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Relaxed);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "looked at when this is compiled")]
const fn places() -> [u8; 256] {
    const { assert!(RESULTS <= 256, "a place has a byte") };
    let mut places = [RESULTS as u8 - 1; 256];
    let mut index = 0;
    while index < ErrorCode::ALL.len() {
        places[ErrorCode::ALL[index].to_u8() as usize] = index as u8 + 1;
        index += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{Op, ReadRequest};

    use super::*;

    #[test]
    fn what_threads_count_each_in_its_own_place_is_added_up() {
        let counters = Counters::new();
        let get = Command::of_op(Op::Get);
        let missing = Some(ErrorCode::KeyNotFound);
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let shard = counters.shard();
                    shard.answered(Place::new(get, None), 10);
                    shard.answered(Place::new(get, missing), 1);
                    shard.took(Kind::Read, Duration::from_micros(20), 11);
                    shard.received(7);
                });
            }
        });
        assert_eq!((counters.requests(get, None), counters.requests(get, missing)), (50, 5));
        let ping = Command::of_read(&ReadRequest::Ping(bytes::Bytes::new()));
        assert_eq!(counters.requests(ping, None), 0);
        assert_eq!((counters.received(), counters.sent()), (35, 0));
        let reads = counters.latencies(Kind::Read);
        assert_eq!((reads.count(), reads.sum()), (55, 55 * 20_000));
        assert_eq!(counters.latencies(Kind::Write).count(), 0);
    }

    #[test]
    fn every_code_has_a_place_of_its_own_and_those_without_a_name_share_one() {
        let mut places: Vec<_> =
            ErrorCode::ALL.iter().map(|code| Place::new(Command::OTHER, Some(*code)).result).collect();
        places.push(Place::new(Command::OTHER, None).result);
        places.push(Place::new(Command::OTHER, Some(ErrorCode::Other(200))).result);
        assert_eq!(Place::new(Command::OTHER, Some(ErrorCode::Other(201))).result, places[places.len() - 1]);
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), RESULTS);
    }
}
