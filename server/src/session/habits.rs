//! Which threads serve a connection: those of everybody, those for connections that send many requests at once and for a few of
//! the others, or one of its own, while it writes alone.

use std::sync::Arc;
use std::{io, panic};

use tokio::runtime::Handle;
use tracing::{Instrument as _, debug};

use super::codec::Codec;
use super::serve::Session;
use super::socket::Socket;
use crate::bursts::{Bursts, Place, Way};
use crate::lone::OwnThread;
use crate::shared::Shared;

/// So many requests in one turn are a burst,
const BURST: u32 = 8;
/// and a connection that has sent so many bursts, one after the other, goes on doing so.
const HABIT: u32 = 16;
/// So many turns in a row with fewer requests, none of them a write, make a connection one of those that wait for each answer:
/// who asks for little is served where it came. So many turns with writes, without that in between, make it none any more; what
/// many write is gathered best where all are served.
const REGULAR: u32 = 64;
/// The same for writes that were done where they came, and for others, after which it shares a thread again.
const ALONE: u32 = 64;
const AMONG_OTHERS: u32 = 256;

/// How a session's run has ended.
pub(super) enum Until {
    /// With the connection.
    Ended,
    /// It has been handed over to these threads, and is to go on there.
    Moved(Threads),
}

/// Who serves a connection.
#[derive(Debug)]
pub(super) enum Threads {
    Everybodys,
    ForBursts(Handle),
    Own(OwnThread),
}

impl Threads {
    /// Their runtime, where it is not that of everybody.
    fn elsewhere(&self) -> Option<&Handle> {
        match self {
            Self::Everybodys => None,
            Self::ForBursts(runtime) => Some(runtime),
            Self::Own(thread) => thread.handle(),
        }
    }

    const fn kind(&self) -> By {
        match self {
            Self::Everybodys => By::Everybodys,
            Self::ForBursts(_) => By::ForBursts,
            Self::Own(_) => By::Own,
        }
    }
}

/// Which of them it is.
#[derive(Debug, Clone, Copy)]
enum By {
    Everybodys,
    ForBursts,
    Own,
}

/// The bursts that came one after the other.
#[derive(Debug, Default)]
struct InARow {
    bursts: u32,
    /// The last turn was cut: what is taken next came together with what was taken in it.
    goes_on: bool,
}

impl InARow {
    const fn count(&mut self, taken: u32, cut: bool) {
        if taken >= BURST {
            self.bursts = self.bursts.saturating_add(1);
        } else if taken > 0 && !self.goes_on {
            self.bursts = 0;
        }
        if taken > 0 {
            self.goes_on = cut;
        }
    }
}

/// What a connection's way to send is, and where that leads it.
#[derive(Debug)]
pub(super) struct Habits {
    shared: Arc<Shared>,
    in_a_row: InARow,
    /// Turns in a row that were no bursts, and in which nothing was written; turns with writes since there were many of
    /// them.
    reads: u32,
    writes: u32,
    /// Once it has a way to send. That of one which sends bursts is not given up before the connection's end.
    place: Option<(Way, Place)>,
    alone_in_a_row: u32,
    among_others: u32,
    served_by: By,
    /// It cannot be handed over.
    stays: bool,
}

impl Habits {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            in_a_row: InARow::default(),
            reads: 0,
            writes: 0,
            place: None,
            alone_in_a_row: 0,
            among_others: 0,
            served_by: By::Everybodys,
            stays: false,
        }
    }

    /// Counts a turn in which so many requests were taken; it ended before all were, where it was `cut`.
    pub(super) const fn count(&mut self, taken: u32, cut: bool) {
        self.in_a_row.count(taken, cut);
        if taken > 0 {
            self.reads = if self.in_a_row.bursts == 0 { self.reads.saturating_add(1) } else { 0 };
            if self.reads == REGULAR {
                self.writes = 0;
            }
        }
    }

    /// Counts a write that was done where it came, or was not.
    pub(super) const fn count_write(&mut self, alone: bool) {
        self.reads = 0;
        self.writes = self.writes.saturating_add(1);
        if alone {
            self.alone_in_a_row = self.alone_in_a_row.saturating_add(1);
            self.among_others = 0;
        } else {
            self.alone_in_a_row = 0;
            self.among_others = self.among_others.saturating_add(1);
        }
    }

    /// Whether its thread serves nobody else.
    pub(super) const fn has_own_thread(&self) -> bool {
        matches!(self.served_by, By::Own)
    }

    const fn is_among_bursts(&self) -> bool {
        matches!(self.served_by, By::ForBursts)
    }

    /// The threads that it is to be served by from now on, where that is another than before.
    fn next(&mut self) -> Option<Threads> {
        if self.stays || self.shared.bursts.is_none() {
            return None;
        }
        let way = self.place.map(|(way, _)| way);
        if self.in_a_row.bursts >= HABIT && way != Some(Way::Bursts) {
            return self.go(Way::Bursts);
        }
        if self.has_own_thread() {
            let is_to_share = self.among_others >= AMONG_OTHERS || self.reads >= REGULAR || way == Some(Way::Bursts);
            return is_to_share.then_some(Threads::Everybodys);
        }
        if self.alone_in_a_row >= ALONE && way != Some(Way::Bursts) {
            self.alone_in_a_row = 0;
            if let Some(thread) = self.shared.bursts.as_ref()?.lone().start() {
                self.leave();
                return Some(Threads::Own(thread));
            }
        }
        match way {
            None if self.reads >= REGULAR => self.go(Way::Singly),
            Some(Way::Singly) if self.writes >= REGULAR => {
                self.leave();
                self.is_among_bursts().then_some(Threads::Everybodys)
            }
            _ => None,
        }
    }

    /// Takes a place among those that send so, and says where that is, if it is not there yet.
    fn go(&mut self, way: Way) -> Option<Threads> {
        self.leave();
        let bursts = self.shared.bursts.as_ref()?;
        let place = bursts.take_place(way);
        self.place = Some((way, place));
        match place {
            Place::There if !self.is_among_bursts() => bursts.handle().cloned().map(Threads::ForBursts),
            Place::Here if self.is_among_bursts() => Some(Threads::Everybodys),
            Place::There | Place::Here => None,
        }
    }

    /// Gives its place up.
    fn leave(&mut self) {
        if let (Some(bursts), Some((way, place))) = (&self.shared.bursts, self.place.take()) {
            bursts.leave(way, place);
        }
        self.reads = 0;
    }

    /// It is served by these threads now.
    const fn has_moved(&mut self, threads: &Threads) {
        self.served_by = threads.kind();
    }
}

impl Drop for Habits {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// Serves the connection until it ends, by whichever threads.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) async fn serve(mut self: Box<Self>) -> io::Result<()> {
        let mut threads = Threads::Everybodys;
        loop {
            let until = match threads.elsewhere() {
                None => self.run().await,
                // This task stays, so that the connection is counted, and waited for, as others are.
                Some(there) => {
                    let rest = async move {
                        let until = self.run().await;
                        (self, until)
                    };
                    let until;
                    (self, until) = match there.spawn(rest.in_current_span()).await {
                        Ok(ended) => ended,
                        // A defect there is one of this connection.
                        Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                        Err(error) => return Err(io::Error::other(error)),
                    };
                    until
                }
            };
            match until? {
                Until::Ended => break,
                Until::Moved(others) => threads = others,
            }
        }
        // Before the thread that has served it.
        drop(self);
        Ok(())
    }

    /// Does the write that was held back, if there is one, where nobody else writes and nothing comes behind it.
    pub(super) fn do_held(&mut self) {
        let is_alone = self.is_starved() && self.in_flight() == 1;
        if let Some(alone) = self.conn.do_held(is_alone, self.habits.has_own_thread()) {
            self.habits.count_write(alone);
        }
    }

    /// Hands the connection over to the threads that it is to be served by from now on, where those are others and that can be
    /// done.
    pub(super) fn move_over(&mut self) -> Option<Threads> {
        // What is answered in steps may wait for the clock of the threads that it began on.
        if !self.streams.is_empty() {
            return None;
        }
        let threads = self.habits.next()?;
        let shared = Arc::clone(&self.habits.shared);
        let there = threads.elsewhere().or(shared.bursts.as_ref().map(Bursts::home))?;
        let _entered = there.enter();
        match self.conn.hand_over() {
            Ok(()) => {
                self.habits.has_moved(&threads);
                Some(threads)
            }
            Err(error) => {
                debug!(%error, "a connection stays with the threads that serve it");
                self.habits.stays = true;
                self.habits.leave();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_counted_until_few_requests_come_but_for_the_rest_of_one() {
        let mut row = InARow::default();
        let mut after = |turns: &[(u32, bool)]| {
            for &(taken, cut) in turns {
                row.count(taken, cut);
            }
            row.bursts
        };
        assert_eq!(after(&[(BURST, false), (0, false), (50, false)]), 2);
        // A turn ends by the clock, too: what was left of the burst is not another one, and no end of them.
        assert_eq!(after(&[(16, true), (2, false), (0, false), (48, true), (2, true), (1, false)]), 4);
        assert_eq!(after(&[(BURST - 1, false)]), 0);
        assert_eq!(after(&[(BURST, false), (1, false), (BURST, false)]), 1);
    }
}
