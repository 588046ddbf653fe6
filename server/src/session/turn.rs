//! How much a connection does before others have their turn on its thread, and what it does after them.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use boltkv_protocol::resp::{Flags, Kind};
use boltkv_protocol::{SnapshotRead, StreamRequest};
use tokio::task::yield_now;

use super::codec::{Asked, Codec};
use super::faults::has_waited_for_the_disk;
use super::serve::Session;
use super::socket::Socket;
use crate::commands::Call;
use crate::writer::Bell;

/// A turn ends after so many requests, where beginning a stream counts for many, and a transaction for its parts,
const MOST: u32 = 1_024;
const STREAM_COST: u32 = MOST / 8;
/// or after this time.
const TIME: Duration = Duration::from_micros(500);
/// The clock is read once in so many requests.
const LOOK: u32 = 16;

/// Work takes less than this, and less for each request on top of it: what takes longer has waited, for the disk or for
/// another process. On a busy machine it is nearly always the latter, which the system tells apart; but it is asked only then.
const WORK: Duration = Duration::from_micros(50);
const WORK_EACH: Duration = Duration::from_micros(10);

/// One turn of a connection: what it may do before the other connections on its thread go on.
#[derive(Debug)]
pub(super) struct Turn {
    started: Instant,
    /// How many requests.
    taken: u32,
    /// How much they count for.
    done: u32,
    /// When the clock is looked at next.
    look: u32,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), taken: 0, done: 0, look: LOOK }
    }

    /// Counts a request that was taken.
    pub(super) fn count<T, O>(&mut self, asked: &Asked<T, O>) {
        self.taken += 1;
        self.done += match asked {
            Asked::Stream(_, StreamRequest::Txn(txn))
            | Asked::OfSnapshot(_, _, SnapshotRead::Stream(StreamRequest::Txn(txn))) => {
                let parts = 1 + txn.conditions().len() + txn.requests().len();
                u32::try_from(parts).unwrap_or(STREAM_COST).min(STREAM_COST)
            }
            Asked::Stream(..) | Asked::OfSnapshot(_, _, SnapshotRead::Stream(_)) => STREAM_COST,
            Asked::Resp(_, work) => work.calls().iter().map(cost_of).fold(0, u32::saturating_add).min(MOST),
            _ => 1,
        };
    }

    /// How many requests were taken in it.
    pub(super) const fn taken(&self) -> u32 {
        self.taken
    }

    /// Whether something in it, which ends now, seems to have waited for the disk.
    pub(super) fn seems_to_have_waited(&self, now: Instant) -> bool {
        self.took_long(now) && has_waited_for_the_disk()
    }

    fn took_long(&self, now: Instant) -> bool {
        self.done > 0 && now.saturating_duration_since(self.started) >= WORK + WORK_EACH * self.done
    }

    pub(super) fn is_over(&mut self) -> bool {
        if self.done < self.look {
            return false;
        }
        self.look = self.done + LOOK;
        self.done >= MOST || self.started.elapsed() >= TIME
    }
}

/// What a command of the Redis dialect counts for. After one that may take long, alone, the clock is looked at.
fn cost_of(call: &Call) -> u32 {
    const WORDS: usize = 8;
    if call.kind() == Kind::Read && !call.spec.flags.has(Flags::FAST) {
        return LOOK;
    }
    u32::try_from(1 + call.args.len() / WORDS).unwrap_or(MOST)
}

thread_local! {
    /// How many more turns are taken as if there were long ones among those of others on this thread.
    static AMONG_LONG: Cell<u8> = const { Cell::new(0) };
}

/// After a long turn others are thought to be long, too, for so many.
const AMONG: u8 = 64;

/// Goes behind the tasks that can go on now; not behind those whose sockets have not been asked yet, which would cut in two
/// what can be answered at once.
///
/// Where turns are long, all that can go on now takes longer than anybody is to wait: there the runtime says when the turn
/// has come again, which asks the sockets every now and then.
///
/// Who has little to do himself does not wait for another long turn then, unless for others' writes.
async fn after_others(is_long: bool, has_bell: bool) {
    let among_long = if is_long { AMONG } else { AMONG_LONG.get().saturating_sub(1) };
    AMONG_LONG.set(among_long);
    if among_long > 0 {
        if is_long || has_bell {
            yield_now().await;
        }
        return;
    }
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// Sends what there is to send, after the others on this thread have had their turn. `true` if there is more to do.
    ///
    /// In that order the replies of all leave one after the other, when nothing else is left to do: whoever waits for them
    /// is woken once for many, and not by each in the middle of the next one's request. The writer is told of what all have
    /// brought, for the same reason.
    pub(super) async fn pass_on(&mut self, again: bool, bell: Option<Bell>) -> io::Result<bool> {
        // Among turns that are cut the writer would be told late, of others' writes, too.
        let bell = bell.filter(|_| !again);
        // Who has done a write here has let the others go on meanwhile, on another thread, if there were any.
        if again || bell.is_some() || !self.conn.wire.output.is_empty() && !self.conn.did_held {
            after_others(again || self.conn.wire.is_output_large(), bell.is_some()).await;
        }
        drop(bell);
        let sent = self.flush().await?;
        self.keep_paces();
        // Where the output was full, there is room for more now.
        Ok(again || sent && !(self.is_starved() && self.streams.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::resp::{Args, Version, find};
    use boltkv_protocol::{Cond, Path, Scan, Txn};

    use super::super::codec::Due;
    use super::*;
    use crate::commands::{Database, RespWork, What};

    #[test]
    fn a_turn_ends_by_what_is_done_and_by_the_clock() {
        let nothing = || Asked::<(), ()>::Nothing;
        let stream = |request| Asked::<(), ()>::Stream(Due::new(1, ()), request);
        let over_after = |asked: &Asked<(), ()>, most| {
            let mut turn = Turn::new();
            (0..most).find(|_| {
                turn.count(asked);
                turn.is_over()
            })
        };
        assert!(over_after(&nothing(), 2 * MOST).is_some());
        assert!(over_after(&stream(StreamRequest::Scan(Scan::default())), 9).is_some());
        let mut many = Txn::builder();
        for _ in 0..STREAM_COST {
            many.condition(&Path::ROOT, b"k", &Cond::<&[u8]>::Always).unwrap();
        }
        assert!(over_after(&stream(StreamRequest::Txn(many.build())), 9).is_some());
        let resp = |words: &[&str]| {
            let (spec, args) = (find(words[0].as_bytes()).unwrap(), Args::of(words));
            let what = What::One(Call { spec, args, db: Database::default(), owner: None });
            Asked::<(), ()>::Resp(Due::new(1, ()), Box::new(RespWork { what, version: Version::Two }))
        };
        assert_eq!(over_after(&resp(&["GET", "k"]), LOOK - 1), None, "it is cheap");
        let late = || Turn { started: Instant::now().checked_sub(2 * TIME).unwrap(), ..Turn::new() };
        for words in [&["HRANDFIELD", "h", "1000"][..], &["LCS", "a", "b"], &["MGET"; 8 * LOOK as usize]] {
            let mut turn = late();
            turn.count(&resp(words));
            assert!(turn.is_over(), "after one {}", words[0]);
        }
        let mut turn = late();
        assert!(!turn.took_long(Instant::now()), "nothing was done");
        (0..LOOK).for_each(|_| turn.count(&nothing()));
        assert!(turn.is_over() && turn.took_long(Instant::now()));
    }
}
