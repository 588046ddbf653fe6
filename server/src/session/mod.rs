//! A connection from its first byte to its last, in one dialect.
//!
//! - `serve`: the session, the same in all dialects: taking, executing, answering, closing; `deadline`: its deadlines
//! - `admission`: who the client is, and what is allowed to it; `operator`: what is asked of the server itself
//! - `codec`: what a dialect is; `binary`, `text`, `resp`: those that there are; `linger`: when a text one ends its sending
//!   side; `multi`: its transactions
//! - `socket`, `wire`, `input`, `flow`: the bytes and their memory; `stream`, `steps`, `credit`: what is answered in steps;
//!   `snapshots`: those that the client holds open; `turn`: how much is done at a time; `tally`: what is counted of it;
//!   `ahead`, `faults`: what waits for the disk; `habits`: which threads serve one that sends much at once, or writes alone;
//!   `pace`, `alarm`: whether something goes on, and when not; `ending`: the end that others bring about
//!
//! A session is one task. It turns bytes into requests and replies into bytes, and bounds what one client can ask for at a
//! time; what a request does, it leaves to the executor. It waits at one place, [`Connection::event`], for everything.

mod admission;
mod ahead;
mod alarm;
mod binary;
mod codec;
mod credit;
mod crowding;
mod deadline;
mod ending;
mod faults;
mod flow;
mod habits;
mod input;
mod linger;
mod multi;
mod operator;
mod pace;
mod resp;
mod room;
mod serve;
mod snapshots;
mod socket;
mod steps;
mod stream;
mod tally;
mod text;
mod turn;
mod wire;

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use boltkv_protocol::WriteRequest;
use rustls::ServerConfig;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use alarm::Alarm;
pub(crate) use binary::BinaryCodec;
use ending::Ending;
pub(crate) use resp::RespCodec;
pub(crate) use serve::Session;
use socket::Encrypting;
pub(crate) use socket::{Socket, Stream};
pub(crate) use text::TextCodec;
use wire::CLOSE_FLUSH;
pub(crate) use wire::Wire;

use crate::access::Standing;
use crate::clients::Listed;
use crate::cold::FaultIn;
use crate::commands::RespWork;
use crate::executor::Caller;
use crate::memory::Lease;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::silent::Silent;
use crate::sockets::Speaks;
use crate::writer::{Answered, Bell, Held, Mailbox, Push, Pushed, Ticket};

/// What a connection has, before it is known what it speaks and after.
pub(crate) struct Connection<S> {
    pub(crate) wire: Wire<S>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) opened: Instant,
    alarm: Alarm,
    ending: Ending,
    pub(crate) peer: Peer,
    /// What may be spoken on it.
    pub(crate) speaks: Speaks,
    /// Where it is listed for whoever looks after the server.
    pub(crate) listed: Listed,
    /// Who it is by its certificate, until a session goes by it.
    known: Option<Standing>,
    /// Its place among those of whom nobody knows who they are.
    pub(crate) stranger: Option<Silent>,
    /// Where the writer's answers arrive, once there was a write; and whether any are due.
    answers: Option<Mailbox>,
    has_due: bool,
    /// A write that waits for room in the writer's queue. Nothing is taken meanwhile, so that writes keep their order.
    queueing: Option<Push>,
    /// A write that came alone, while requests are taken: the next one shows that it did not.
    held: Option<Held>,
    /// That was done in this turn.
    did_held: bool,
    /// The writer is to be told of its writes, and of others' that come until then: when this turn ends.
    bell: Option<Bell>,
    /// Whether it was asked to write since that was last looked at.
    has_written: bool,
    /// What waits for memory. Nothing is taken meanwhile.
    starving: Option<Starving>,
    /// What waits for the disk. Nothing is taken meanwhile.
    faulting: Option<FaultIn>,
}

/// What waits for memory, and for how much.
struct Starving {
    use_for: UseFor,
    since: Instant,
    /// When it was last seen that the client is there, which nothing is read of.
    seen: Instant,
    lease: Pin<Box<dyn Future<Output = Lease> + Send>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UseFor {
    /// The item at the front of the input, of this length.
    Input(usize),
    Output,
}

/// What a connection waits for.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes arrived or left, the peer ended, the queue took a write, or there is memory, or what is to be read.
    Progress,
    /// The writer answered.
    Answered(Answered),
    /// The server stops, or needs this connection's place.
    Stop,
    /// The deadline has passed.
    Deadline,
}

impl<S: Socket> Connection<S> {
    /// On the heap, so that the futures through which it goes stay small.
    pub(crate) fn new(
        socket: S,
        peer: Peer,
        speaks: Speaks,
        shared: Arc<Shared>,
        stop: CancellationToken,
    ) -> Box<Self> {
        let listed = shared.clients.add(peer, stop.clone());
        Box::new(Self {
            wire: Wire::new(socket, Arc::clone(&shared.memory)),
            shared,
            opened: Instant::now(),
            alarm: Alarm::new(),
            listed,
            ending: Ending::new(stop),
            peer,
            known: None,
            speaks,
            stranger: None,
            answers: None,
            has_due: false,
            queueing: None,
            held: None,
            did_held: false,
            bell: None,
            has_written: false,
            starving: None,
            faulting: None,
        })
    }

    /// The same connection, encrypted, if the client does its part by `deadline`, and the connection's end does not come first.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the client sends.
    pub(crate) async fn encrypted(
        self: Box<Self>,
        config: Arc<ServerConfig>,
        deadline: Instant,
    ) -> io::Result<Box<Self>> {
        let mut conn = *self;
        let (origin, end, encryption) =
            (conn.peer.origin(), conn.ending.token().clone(), Arc::clone(&conn.shared.encryption));
        let encrypting = conn.wire.encrypted(Encrypting { encryption, config, origin, end });
        let (wire, names) = tokio::select! {
            () = conn.ending.come() => return Err(io::ErrorKind::ConnectionAborted.into()),
            encrypted = timeout_at(deadline, encrypting) => encrypted.map_err(|_| io::ErrorKind::TimedOut)??,
        };
        conn.wire = wire;
        conn.listed.says(|said| said.encrypted = true);
        conn.known = conn.shared.access.recognize(&names, conn.ending.token());
        Ok(Box::new(conn))
    }

    /// Waits for whatever comes first. Bytes are read only if `read`.
    pub(crate) async fn event(&mut self, read: bool, deadline: Option<Instant>) -> io::Result<Event> {
        // Before all else, or a client that always has something to send or to take would keep the server from stopping, and
        // its token would be good for ever.
        if self.ending.is_time_to_look() {
            if self.ending.comes() {
                return Ok(Event::Stop);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(Event::Deadline);
            }
        }
        tokio::select! {
            biased;
            moved = self.wire.transfer(read) => moved.map(|()| Event::Progress),
            () = self.ending.come(), if !self.ending.has_come() => Ok(Event::Stop),
            answered = next_answer(self.answers.as_ref()), if self.has_due => Ok(Event::Answered(answered)),
            () = until_queued(&mut self.queueing) => Ok(Event::Progress),
            (use_for, lease) = until_fed(&mut self.starving) => {
                match use_for {
                    UseFor::Input(len) => self.wire.lease_input(lease, len),
                    UseFor::Output => self.wire.lease_output(lease),
                }
                Ok(Event::Progress)
            }
            () = until_faulted(&mut self.faulting) => Ok(Event::Progress),
            () = self.alarm.until(deadline) => Ok(Event::Deadline),
        }
    }

    /// Whether somebody has ended it, which was not seen yet. What comes after he was told so is not done any more.
    fn is_killed(&self) -> bool {
        self.listed.is_killed() && !self.ending.has_come()
    }

    /// Whether it is to end, and nobody knows whose it is: another one may wait for its place, so that it ends without waiting
    /// for its client.
    const fn gives_way(&self) -> bool {
        self.ending.has_come() && self.stranger.is_some()
    }

    /// Says that nothing more will be sent. What is encrypted has to be said in bytes: a peer that takes none is waited for
    /// only for a while, and not by who ends the connection.
    ///
    /// # Errors
    /// The socket's, or that the peer has not taken it in time.
    async fn end_sending(&mut self) -> io::Result<()> {
        tokio::select! {
            biased;
            ended = timeout(CLOSE_FLUSH, self.wire.end_sending()) => ended?,
            () = self.ending.come(), if !self.ending.has_come() => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Closes it. A peer whose last reply is still on its way is waited for; where nobody knows whose it is, only as long as
    /// no other one needs its place.
    pub(crate) async fn close(&mut self) {
        let gives_way = self.stranger.is_some() && !self.ending.has_come();
        tokio::select! {
            () = self.wire.close() => {}
            () = self.ending.come(), if gives_way => {}
        }
    }

    /// Hands everything over that one runtime looks after to the one that is entered.
    ///
    /// # Errors
    /// The system's; then it stays where it was.
    fn hand_over(&mut self) -> io::Result<()> {
        self.wire.hand_over()?;
        self.alarm = Alarm::new();
        self.ending.hand_over();
        Ok(())
    }

    /// An answer that is there already.
    fn answer(&mut self) -> Option<Answered> {
        self.answers.as_ref().filter(|_| self.has_due)?.try_next()
    }

    /// Has a write done; its answer will carry `id`.
    fn submit(&mut self, id: u32, caller: &Caller, request: WriteRequest) {
        let ticket = self.ticket(id);
        self.held = None;
        self.pushed(self.shared.executor.admit(caller).write(request, ticket));
    }

    /// Has done what the Redis dialect asks for; its answer will carry `id`.
    fn submit_resp(&mut self, id: u32, caller: &Caller, work: RespWork) {
        let ticket = self.ticket(id);
        self.held = None;
        self.pushed(self.shared.executor.admit(caller).write_resp(work, ticket));
    }

    fn pushed(&mut self, pushed: Pushed) {
        self.has_written = true;
        match pushed {
            Pushed::Queued(None) => {}
            Pushed::Queued(bell) => self.bell = bell,
            Pushed::Waits(push) => self.queueing = Some(push),
            Pushed::Held(held) => self.held = Some(held),
        }
    }

    /// Does the write that was held back, if there is one, where nobody else writes and `is_alone` says that nothing comes
    /// behind it; otherwise it is the writer's. Whether it was done here; `None` where there was nothing to write.
    fn do_held(&mut self, is_alone: bool, has_own_thread: bool) -> Option<bool> {
        let has_written = std::mem::take(&mut self.has_written);
        self.did_held = self.held.take().filter(|_| is_alone).is_some_and(|held| held.run(has_own_thread));
        has_written.then_some(self.did_held)
    }

    fn ticket(&mut self, id: u32) -> Ticket {
        self.has_due = true;
        self.answers.get_or_insert_default().ticket(self.listed.id, id)
    }

    /// No more answers are due.
    fn all_answered(&mut self) {
        self.has_due = false;
        self.answers.iter().for_each(Mailbox::rest);
    }

    /// Begins to wait for `len` bytes of memory.
    fn starve(&mut self, use_for: UseFor, len: usize) {
        let lease = Box::pin(self.shared.memory.take(len));
        let now = Instant::now();
        self.starving = Some(Starving { use_for, since: now, seen: now, lease });
    }
}

/// Waits for an answer of the writer.
async fn next_answer(answers: Option<&Mailbox>) -> Answered {
    match answers {
        Some(answers) => answers.next().await,
        None => pending().await,
    }
}

/// Waits until the writer's queue has taken what is to go there.
async fn until_queued(queueing: &mut Option<Push>) {
    let Some(push) = queueing else { return pending().await };
    push.await;
    *queueing = None;
}

/// Waits until what is to be read is in memory.
async fn until_faulted(faulting: &mut Option<FaultIn>) {
    let Some(waiting) = faulting else { return pending().await };
    // Whether all pages were read or not, the session goes on with the reads.
    let _ = waiting.await;
    *faulting = None;
}

/// Waits until the memory that the session needs is there; for ever where it needs none.
async fn until_fed(starving: &mut Option<Starving>) -> (UseFor, Lease) {
    let Some(waiting) = starving else { return pending().await };
    let fed = (waiting.use_for, (&mut waiting.lease).await);
    *starving = None;
    fed
}
