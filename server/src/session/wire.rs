//! A connection's bytes: what has arrived, what is to leave, and the socket between them.
//!
//! It knows no dialect. While nothing is to be taken or sent it keeps no buffer. Both buffers grow beyond a connection's own
//! room only by a lease of the server's memory; how much is read and produced, the session decides by that.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_util::io::poll_read_buf;

use super::flow::Flow;
use super::input::Input;
use super::socket::{Encrypting, Socket};
use crate::memory::{Lease, Memory, OWN_INPUT, OWN_OUTPUT};

/// A session adds nothing to an output of so many bytes until some of it has been sent.
const OUTPUT_FULL: usize = 256 * 1024;
/// How much is read at once, unless a long frame is on its way.
const READ: usize = 16 * 1024;
/// How long a client has to take what is left for it before its connection is closed.
pub(super) const CLOSE_FLUSH: Duration = Duration::from_secs(5);
/// How long a closed connection is still read, so that the last reply is not lost to a reset.
const CLOSE_DRAIN: Duration = Duration::from_millis(500);

/// A socket with its buffers.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    memory: Arc<Memory>,
    pub(crate) input: Input,
    /// Replies that are not sent yet.
    pub(crate) output: BytesMut,
    output_lease: Option<Lease>,
    /// The memory of replies that had theirs already.
    output_held: Vec<Arc<Lease>>,
    /// Nobody knows yet whose it is: it has its own room for replies, and nothing of the server's memory.
    is_strangers: bool,
    /// The socket may keep some of what was written to it.
    kept_back: bool,
    ended: bool,
    received: Flow,
    sent: Flow,
}

impl<S: Socket> Wire<S> {
    pub(crate) fn new(socket: S, memory: Arc<Memory>) -> Self {
        let flow = Flow::begun();
        Self {
            socket,
            memory,
            input: Input::default(),
            output: BytesMut::new(),
            output_lease: None,
            output_held: Vec::new(),
            is_strangers: false,
            kept_back: false,
            ended: false,
            received: flow,
            sent: flow,
        }
    }

    /// Hands the socket over to the runtime that is entered.
    ///
    /// # Errors
    /// The system's; then it stays where it was.
    pub(super) fn hand_over(&mut self) -> io::Result<()> {
        self.socket = self.socket.handed_over()?;
        Ok(())
    }

    /// What leaves is seen as the client takes it, from now on.
    pub(super) fn keep_little_unsent(&self) {
        self.socket.keep_little_unsent();
    }

    /// Encrypted from now on: what has arrived is the beginning of that. With it, the names that the peer has a certificate for.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the peer sends.
    pub(super) async fn encrypted(self, how: Encrypting) -> io::Result<(Self, Vec<String>)> {
        let Self { socket, memory, input, .. } = self;
        let socket = socket.encrypted(input.bytes, how).await?;
        let names = socket.peer_names();
        Ok((Self::new(socket, memory), names))
    }

    /// From now on it has nothing of the server's memory for replies, or may have.
    pub(crate) const fn set_strangers(&mut self, is_strangers: bool) {
        self.is_strangers = is_strangers;
    }

    /// Whether the peer has sent all it will.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) const fn received(&self) -> Flow {
        self.received
    }

    pub(super) const fn sent(&self) -> Flow {
        self.sent
    }

    /// Whether an item of `len` bytes may be read, or has to wait for memory.
    pub(super) fn make_input_room(&mut self, len: usize) -> bool {
        if len <= OWN_INPUT {
            self.input.release();
            return true;
        }
        let held = self.input.lease.as_ref().map_or(0, Lease::bytes);
        if held < len {
            // One that turns out to be longer takes as much again, so that it does not ask for each part.
            let more = self.memory.try_take(len.max(2 * held) - held).or_else(|| self.memory.try_take(len - held));
            match (&mut self.input.lease, more) {
                (_, None) => return false,
                (Some(lease), Some(more)) => lease.add(more),
                (none, more) => *none = more,
            }
        }
        self.reserve_input(len);
        true
    }

    /// The memory that an item of `len` bytes has waited for.
    pub(super) fn lease_input(&mut self, lease: Lease, len: usize) {
        self.input.lease = Some(lease);
        self.reserve_input(len);
    }

    /// Whether an item that has begun, and has at least `len` bytes, will never arrive in full.
    pub(super) fn is_given_up(&self, len: usize) -> bool {
        self.socket.is_given_up(len.saturating_sub(self.input.bytes.len()))
    }

    fn reserve_input(&mut self, len: usize) {
        if self.input.is_leased() {
            self.input.bytes.reserve(len.saturating_sub(self.input.bytes.len()));
        }
    }

    /// Whether the client has taken enough of its replies to be given more.
    pub(super) fn has_output_room(&mut self) -> bool {
        self.output.len() < OWN_OUTPUT || self.output_room() > 0
    }

    /// How many bytes may be added to the output now; 0 where the client is to take some first.
    pub(super) fn output_room(&mut self) -> usize {
        let used = self.output.len();
        if used >= OUTPUT_FULL {
            return 0;
        }
        if !self.is_strangers
            && self.output_leased() < OUTPUT_FULL
            && let Some(lease) = self.memory.try_take(OUTPUT_FULL - self.output_leased())
        {
            self.lease_output(lease);
        }
        OWN_OUTPUT.max(self.output_leased()).saturating_sub(used)
    }

    /// Whether one reply of `len` bytes may be added to the output, or has to wait for memory.
    pub(super) fn make_output_room(&mut self, len: usize) -> bool {
        let (wanted, leased) = (self.output.len() + len, self.output_leased());
        if len <= OWN_OUTPUT || wanted <= leased {
            return true;
        }
        let lease = self.memory.try_take(wanted - leased);
        lease.is_some_and(|lease| {
            self.lease_output(lease);
            true
        })
    }

    fn output_leased(&self) -> usize {
        self.output_lease.as_ref().map_or(0, Lease::bytes)
    }

    /// Whether the system has got all that there was to send.
    pub(super) fn is_all_sent(&self) -> bool {
        self.output.is_empty() && !self.kept_back
    }

    /// Whether the client is given a lot at once.
    pub(super) fn is_output_large(&self) -> bool {
        self.output.len() > OUTPUT_FULL
    }

    /// Whether the client is to take what it is given in time: it is a lot, or others need the memory that it is in.
    pub(super) fn is_output_dear(&self) -> bool {
        let is_leased = self.output_lease.is_some() || !self.output_held.is_empty();
        self.is_output_large() || is_leased && self.memory.left() < OUTPUT_FULL
    }

    /// Memory that the output has waited for.
    pub(super) fn lease_output(&mut self, lease: Lease) {
        match &mut self.output_lease {
            Some(held) => held.add(lease),
            none => *none = Some(lease),
        }
    }

    /// Memory of a reply that is added to the output now, and perhaps of others: it is held until it has been sent.
    pub(super) fn hold_output(&mut self, memory: Arc<Lease>) {
        // However little is left of those before it: the buffer keeps its size until it is empty.
        if !self.output_held.iter().any(|held| Arc::ptr_eq(held, &memory)) {
            self.output_held.push(memory);
        }
    }

    /// Waits until bytes have arrived (if `read`), left, or the peer has ended. Can be dropped and called again at any time.
    pub(crate) async fn transfer(&mut self, read: bool) -> io::Result<()> {
        poll_fn(|cx| self.poll_transfer(cx, read)).await
    }

    /// Sends what the peer takes at once. `true` if it took something.
    pub(super) async fn flush(&mut self) -> io::Result<bool> {
        poll_fn(|cx| Poll::Ready(self.send_some(cx))).await
    }

    fn send_some(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut sent = !self.output.is_empty() && self.poll_send(cx)?.is_ready();
        if self.output.is_empty() {
            self.output = BytesMut::new();
            self.output_lease = None;
            self.output_held = Vec::new();
            // What a socket cannot pass on yet wakes this task when it can.
            if self.kept_back && Pin::new(&mut self.socket).poll_flush(cx)?.is_ready() {
                self.kept_back = false;
                sent = true;
            }
        }
        Ok(sent)
    }

    fn poll_transfer(&mut self, cx: &mut Context<'_>, read: bool) -> Poll<io::Result<()>> {
        let sent = self.send_some(cx)?;
        let received = read && !self.ended && self.poll_receive(cx)?.is_ready();
        if sent || received { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.output))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.output.advance(sent);
        self.kept_back = self.socket.keeps_back();
        self.sent = self.sent.and(sent);
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let input = &mut self.input.bytes;
        let received = if input.capacity() - input.len() > READ {
            ready!(poll_read_buf(Pin::new(&mut self.socket), cx, input))?
        } else {
            // By way of the stack, so that who waits for bytes holds no memory for them.
            let mut space = [MaybeUninit::uninit(); READ];
            let mut read = ReadBuf::uninit(&mut space);
            let polled = Pin::new(&mut self.socket).poll_read(cx, &mut read);
            if input.is_empty() {
                // An empty buffer still holds the memory of what was taken from it.
                *input = BytesMut::from(read.filled());
            } else {
                input.extend_from_slice(read.filled());
            }
            ready!(polled)?;
            read.filled().len()
        };
        self.ended = received == 0;
        self.received = self.received.and(received);
        Poll::Ready(Ok(()))
    }

    /// Sends what is left and says that nothing more will come.
    pub(super) async fn end_sending(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            self.transfer(false).await?;
        }
        self.socket.shutdown().await
    }

    /// Closes the connection: sends what is left, ends the sending side, and reads on for a moment, because a socket that is
    /// closed with unread bytes resets the connection, and the reset can overtake the last reply.
    pub(crate) async fn close(&mut self) {
        let ended = timeout(CLOSE_FLUSH, self.end_sending()).await;
        if matches!(ended, Ok(Ok(()))) && !self.ended {
            // Whether the peer ends in time or not, the connection is closed.
            let _ = timeout(CLOSE_DRAIN, self.discard_input()).await;
        }
    }

    async fn discard_input(&mut self) -> io::Result<()> {
        self.input = Input::default();
        let mut discarded = BytesMut::with_capacity(1024);
        while self.socket.read_buf(&mut discarded).await? > 0 {
            discarded.clear();
        }
        Ok(())
    }

    /// Has the connection reset when it is dropped, so that the peer notices.
    pub(crate) fn reset(&self) {
        self.socket.reset_when_closed();
    }
}

#[cfg(test)]
mod tests;
