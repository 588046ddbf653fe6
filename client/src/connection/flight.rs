//! What is in flight on a connection: the bytes to be written, and who waits for which reply.
//!
//! Both tasks and all callers meet here. The lock is held for moments and never while waiting.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use boltkv_protocol::{
    EncodeError, ErrorReply, Expect, Frame, HelloReply, Reply, Request, SessionRequest, SnapshotRead,
};
use bytes::BytesMut;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::hello::HELLO_ID;
use super::{Failure, Limits};
use crate::Loss;

/// How many bytes wait to be written before callers have to wait for room.
const OUT_LIMIT: usize = 1024 * 1024;
const UNKNOWN_ID: Cow<'static, str> = Cow::Borrowed("a reply under an id that is not in use");

/// Who waits for a reply.
#[derive(Debug)]
pub(super) enum Waiter {
    /// A caller, for one frame.
    Reply { expect: Expect, sender: oneshot::Sender<Result<Reply, Failure>> },
    /// The receiver of a stream, and how many bytes more the server may send of it: what waits for a slow caller is bounded
    /// by that, and the connection is read on.
    Stream { expect: Expect, sender: mpsc::UnboundedSender<Piece>, credit: i64 },
    /// Nobody any more: a stream was given up, of which the server may still send so many bytes, before it hears of that.
    Nobody { late: usize },
}

#[derive(Debug)]
struct Pending {
    waiter: Waiter,
    /// Where the request starts among all bytes of the connection: it was sent if these were taken to be written.
    at: u64,
    /// Counts towards `max_in_flight`, and `max_streams` if it is a stream for the server, until the last frame of the reply
    /// is here.
    _slot: Slot,
}

/// Leave to have a request in flight.
#[derive(Debug)]
struct Slot {
    _request: OwnedSemaphorePermit,
    _stream: Option<OwnedSemaphorePermit>,
}

/// What a stream's receiver gets.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A frame of it.
    Chunk(Chunk),
    /// The server ended the stream with an error.
    Error(ErrorReply),
    /// The connection is lost.
    Lost(Loss),
}

/// One frame of a stream.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) reply: Reply,
    /// What the frame took of the stream's credit, in bytes.
    pub(crate) cost: u32,
    /// Whether it is the stream's last.
    pub(crate) last: bool,
}

#[derive(Debug)]
pub(super) struct Flight {
    state: Mutex<State>,
    limits: Limits,
    /// How long the server may take for anything.
    pub(super) timeout: Duration,
    /// One permit for each request that the server takes before it wants to answer one. An `Arc`, because the permits lie in
    /// `state`.
    slots: Arc<Semaphore>,
    /// The same for streams, of which the server refuses those that are too many.
    streams: Arc<Semaphore>,
    /// There is something to write, or nothing more to wait for.
    pub(super) to_write: Notify,
    /// There is room in `out` again.
    written: Notify,
    /// How many frames have been received.
    heard: AtomicU64,
}

#[derive(Debug)]
struct State {
    out: BytesMut,
    /// How many bytes were taken from `out` to be written, since the beginning.
    taken: u64,
    pending: HashMap<u32, Pending>,
    last_id: u32,
    /// The server is stopping: what is in flight may still be answered, but nothing more is sent.
    leaving: bool,
    lost: Option<Loss>,
}

impl Flight {
    pub(super) fn new(hello: &HelloReply, timeout: Duration) -> Self {
        let limits = Limits::from(hello);
        let state = State {
            out: BytesMut::new(),
            taken: 0,
            pending: HashMap::new(),
            last_id: HELLO_ID,
            leaving: false,
            lost: None,
        };
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Self {
            state: Mutex::new(state),
            limits,
            timeout,
            slots: semaphore(limits.in_flight),
            // A server that takes none says so itself.
            streams: semaphore(limits.streams.max(1)),
            to_write: Notify::new(),
            written: Notify::new(),
            heard: AtomicU64::new(0),
        }
    }

    /// Puts a request into the buffer, once there is a slot and room for it, and returns its id.
    pub(super) async fn send(&self, request: &Request<&[u8]>, waiter: Waiter) -> Result<u32, Failure> {
        let slot = self.slot(is_stream(request)).await?;
        let mut state = self.state_with_room().await;
        if let Some(loss) = state.unusable() {
            return Err(Failure::NotSent(loss));
        }
        let id = state.fresh_id();
        let at = state.taken + state.out.len() as u64;
        self.encode(&mut state, id, request).map_err(Failure::TooLarge)?;
        state.pending.insert(id, Pending { waiter, at, _slot: slot });
        drop(state);
        self.to_write.notify_one();
        Ok(id)
    }

    /// Puts a request into the buffer whose answer nobody waits for, if there is a slot for it at once.
    pub(super) fn send_unheard(&self, request: &Request) -> bool {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else { return false };
        let mut state = self.lock();
        let (id, at) = (state.fresh_id(), state.taken + state.out.len() as u64);
        if state.unusable().is_some() || self.encode(&mut state, id, request).is_err() {
            return false;
        }
        let slot = Slot { _request: slot, _stream: None };
        state.pending.insert(id, Pending { waiter: Waiter::Nobody { late: 0 }, at, _slot: slot });
        drop(state);
        self.to_write.notify_one();
        true
    }

    /// Waits until the server takes one more request. For a stream first among streams: who waits there takes no other's place.
    async fn slot(&self, is_stream: bool) -> Result<Slot, Failure> {
        let one_of = async |semaphore: &Arc<Semaphore>| {
            let permit = Arc::clone(semaphore).acquire_owned().await;
            permit.map_err(|_| Failure::NotSent(self.reason()))
        };
        let stream = if is_stream { Some(one_of(&self.streams).await?) } else { None };
        Ok(Slot { _request: one_of(&self.slots).await?, _stream: stream })
    }

    /// Puts a request that has no reply into the buffer, if the connection is still there.
    pub(super) fn tell(&self, request: &Request) {
        let mut state = self.lock();
        // The few bytes of CREDIT and CANCEL always fit.
        if state.lost.is_none() && self.encode(&mut state, 0, request).is_ok() {
            self.to_write.notify_one();
        }
    }

    fn encode<B: AsRef<[u8]>>(&self, state: &mut State, id: u32, request: &Request<B>) -> Result<(), EncodeError> {
        let start = state.out.len();
        request.encode(id, &mut state.out)?;
        let (len, limit) = (state.out.len() - start, self.limits.frame);
        if len > limit {
            state.out.truncate(start);
            return Err(EncodeError { field: "frame", len, limit });
        }
        Ok(())
    }

    /// The state, once not too much waits to be written.
    async fn state_with_room(&self) -> MutexGuard<'_, State> {
        loop {
            let written = self.written.notified();
            {
                let state = self.lock();
                if state.out.len() < OUT_LIMIT || state.unusable().is_some() {
                    return state;
                }
            }
            written.await;
        }
    }

    /// Exchanges the bytes to be written for an empty buffer. `None` when nothing will come any more.
    pub(super) fn take_out(&self, empty: BytesMut) -> Option<BytesMut> {
        let mut state = self.lock();
        if state.out.is_empty() && state.lost.is_some() {
            return None;
        }
        let out = std::mem::replace(&mut state.out, empty);
        state.taken += out.len() as u64;
        drop(state);
        self.written.notify_waiters();
        Some(out)
    }

    /// Says who waits for a frame, and forgets them if it is the last of its reply.
    pub(super) fn waiter(&self, frame: &Frame) -> Result<Waiter, Loss> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if !frame.has_more() {
            let pending = state.pending.remove(&frame.id);
            return pending.map(|pending| pending.waiter).ok_or(Loss::Protocol(UNKNOWN_ID));
        }
        if frame.op != 0 {
            return Err(Loss::Protocol("an error that is not the last of its reply".into()));
        }
        match state.pending.get_mut(&frame.id).map(|pending| &mut pending.waiter) {
            None => Err(Loss::Protocol(UNKNOWN_ID)),
            Some(Waiter::Reply { .. }) => Err(Loss::Protocol("several frames where one is due".into())),
            Some(Waiter::Stream { expect, sender, credit }) => {
                // Its last frame may be longer than what was left.
                if *credit <= 0 {
                    return Err(Loss::Protocol("more of a stream than there was credit for".into()));
                }
                *credit = credit.saturating_sub(i64::try_from(frame.body.len()).unwrap_or(i64::MAX));
                Ok(Waiter::Stream { expect: *expect, sender: sender.clone(), credit: *credit })
            }
            Some(Waiter::Nobody { late }) => {
                *late = late.checked_sub(frame.body.len()).ok_or(Loss::Closed)?;
                Ok(Waiter::Nobody { late: *late })
            }
        }
    }

    /// Lets a stream send so many bytes more, unless it has ended already.
    pub(super) fn credit(&self, id: u32, bytes: u32) {
        let mut state = self.lock();
        if let Some(Pending { waiter: Waiter::Stream { credit, .. }, .. }) = state.pending.get_mut(&id) {
            *credit = credit.saturating_add(bytes.into());
            drop(state);
            self.tell(&SessionRequest::Credit { stream: id, bytes }.into());
        }
    }

    /// From now on nobody waits for this stream, and the server is told so, unless it has ended already.
    pub(super) fn cancel(&self, id: u32) {
        let abandoned = self.lock().pending.get_mut(&id).map(|pending| {
            let credit = if let Waiter::Stream { credit, .. } = pending.waiter { credit.max(0) } else { 0 };
            // Its last frame may be longer than what was left.
            let late = usize::try_from(credit).unwrap_or(usize::MAX).saturating_add(self.limits.frame);
            pending.waiter = Waiter::Nobody { late };
        });
        if abandoned.is_some() {
            self.tell(&SessionRequest::Cancel { stream: id }.into());
        }
    }

    /// The connection is lost: fails all that is in flight, and takes nothing more. What it was lost of first counts.
    pub(super) fn lose(&self, loss: &Loss) {
        let (pending, taken) = {
            let mut state = self.lock();
            if state.lost.is_some() {
                return;
            }
            state.lost = Some(loss.clone());
            state.out.clear();
            (std::mem::take(&mut state.pending), state.taken)
        };
        for pending in pending.into_values() {
            let was_sent = pending.at < taken;
            // Whoever does not wait any more need not hear of it.
            match pending.waiter {
                Waiter::Reply { sender, .. } if was_sent => drop(sender.send(Err(Failure::Lost(loss.clone())))),
                Waiter::Reply { sender, .. } => drop(sender.send(Err(Failure::NotSent(loss.clone())))),
                Waiter::Stream { sender, .. } => drop(sender.send(Piece::Lost(loss.clone()))),
                Waiter::Nobody { .. } => {}
            }
        }
        self.wake_all();
    }

    /// Nobody will ask any more: what is in the buffer is still written, then the connection ends.
    pub(super) fn close(&self) {
        self.lock().lost.get_or_insert(Loss::Closed);
        self.wake_all();
    }

    /// The server is stopping: nothing more is sent here. What is in flight may still be answered.
    pub(super) fn leave(&self) {
        self.lock().leaving = true;
        self.slots.close();
        self.streams.close();
        self.written.notify_waiters();
    }

    fn wake_all(&self) {
        self.slots.close();
        self.streams.close();
        self.written.notify_waiters();
        self.to_write.notify_one();
    }

    /// How many frames have been received so far.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// A request waited in vain. If nothing at all has been received since, the server is taken for gone: TCP alone would notice
    /// after a quarter of an hour.
    pub(super) fn lose_if_silent_since(&self, heard: u64) {
        if self.heard() == heard {
            self.lose(&Loss::Timeout(self.timeout));
        }
    }

    /// Whether requests can be sent here.
    pub(super) fn is_usable(&self) -> bool {
        self.lock().unusable().is_none()
    }

    /// How many requests have not been answered to their end, and whether a stream need not wait for another one's.
    pub(super) fn load(&self) -> (usize, bool) {
        (self.lock().pending.len(), self.streams.available_permits() > 0)
    }

    fn reason(&self) -> Loss {
        self.lock().unusable().unwrap_or(Loss::Closed)
    }

    /// Nothing panics while the lock is held; were it so, the state would be whole all the same.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the server counts a request as a stream: a count is one, and a transaction that reads, though each has one reply.
pub(super) const fn is_stream<B>(request: &Request<B>) -> bool {
    matches!(request, Request::Stream(_) | Request::OfSnapshot { read: SnapshotRead::Stream(_), .. })
}

impl State {
    /// Why nothing more can be sent, if so.
    fn unusable(&self) -> Option<Loss> {
        self.lost.clone().or(self.leaving.then_some(Loss::Closed))
    }

    /// An id that is not in use. There are far fewer in use than there are ids.
    fn fresh_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(HELLO_ID);
            if !self.pending.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{Path, ReadRequest};
    use bytes::Bytes;

    use super::*;

    #[tokio::test]
    async fn a_request_that_was_never_taken_to_be_written_was_not_sent() {
        let hello = HelloReply {
            version: 1,
            features: 0,
            max_frame: 1024,
            max_in_flight: 4,
            max_streams: 1,
            read_only: false,
            server: Bytes::new(),
        };
        let flight = Flight::new(&hello, Duration::from_secs(1));
        let request = Request::Read(ReadRequest::Get { path: Path::ROOT, key: &b"k"[..] });
        let ((first, taken), (second, waiting)) = (oneshot::channel(), oneshot::channel());
        flight.send(&request, Waiter::Reply { expect: Expect::Value, sender: first }).await.unwrap();
        assert!(!flight.take_out(BytesMut::new()).unwrap().is_empty());
        flight.send(&request, Waiter::Reply { expect: Expect::Value, sender: second }).await.unwrap();
        flight.lose(&Loss::Closed);
        assert!(matches!(taken.await.unwrap(), Err(Failure::Lost(Loss::Closed))));
        assert!(matches!(waiting.await.unwrap(), Err(Failure::NotSent(Loss::Closed))));
    }
}
