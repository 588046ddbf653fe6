//! A connection's bytes: a buffer for what has arrived, a buffer for what is to leave, and the socket between them.
//!
//! It knows no dialect. What is written goes to the buffer; it leaves in as few writes as the socket takes, while whatever
//! arrives is read. How much is buffered is the session's to bound: it stops producing at [`OUTPUT_FULL`].

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};
use tokio_util::io::poll_read_buf;

/// From here on a session adds nothing to the output before some of it has left.
pub(super) const OUTPUT_FULL: usize = 256 * 1024;
/// How much is read at once: little from clients that send little, so that thousands of them take little memory.
const LEAST_READ: usize = 4 * 1024;
const MOST_READ: usize = 64 * 1024;
/// A buffer that has grown over this is let go of when it is empty.
const KEEP_BUFFER: usize = 128 * 1024;
/// How long a client has to take what is left for it before its connection is closed.
const CLOSE_FLUSH: Duration = Duration::from_secs(5);
/// How long a closed connection is still read, so that the last reply is not lost to a reset.
const CLOSE_DRAIN: Duration = Duration::from_millis(500);

/// A socket with its buffers.
#[derive(Debug)]
pub(crate) struct Wire<S> {
    socket: S,
    /// What has arrived and was not yet taken.
    pub(crate) input: BytesMut,
    /// What is to leave.
    pub(crate) output: BytesMut,
    /// How much to read next.
    read_size: usize,
    ended: bool,
    last_received: Instant,
    last_sent: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(socket: S) -> Self {
        Self {
            socket,
            input: BytesMut::new(),
            output: BytesMut::new(),
            read_size: LEAST_READ,
            ended: false,
            last_received: Instant::now(),
            last_sent: None,
        }
    }

    /// Whether the peer has sent all it will.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// When bytes last arrived; at first, when the connection was opened.
    pub(super) const fn last_received(&self) -> Instant {
        self.last_received
    }

    /// When bytes last left.
    pub(super) const fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// Waits until bytes have arrived (if `read`), left, or the peer has ended. Can be dropped and called again at any time.
    pub(crate) async fn transfer(&mut self, read: bool) -> io::Result<()> {
        poll_fn(|cx| self.poll_transfer(cx, read)).await
    }

    fn poll_transfer(&mut self, cx: &mut Context<'_>, read: bool) -> Poll<io::Result<()>> {
        let sent = !self.output.is_empty() && self.poll_send(cx)?.is_ready();
        let received = read && !self.ended && self.poll_receive(cx)?.is_ready();
        if sent || received { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.output))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.output.advance(sent);
        shrink(&mut self.output);
        self.last_sent = Some(Instant::now());
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        shrink(&mut self.input);
        self.input.reserve(self.read_size);
        let received = ready!(poll_read_buf(Pin::new(&mut self.socket), cx, &mut self.input))?;
        if received >= self.read_size {
            self.read_size = (self.read_size * 2).min(MOST_READ);
        }
        self.ended = received == 0;
        self.last_received = Instant::now();
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
    pub(crate) async fn close(mut self) {
        let ended = timeout(CLOSE_FLUSH, self.end_sending()).await;
        if matches!(ended, Ok(Ok(()))) && !self.ended {
            // Whether the peer ends in time or not, the connection is closed.
            let _ = timeout(CLOSE_DRAIN, self.discard_input()).await;
        }
    }

    async fn discard_input(&mut self) -> io::Result<()> {
        self.input = BytesMut::with_capacity(LEAST_READ);
        while self.socket.read_buf(&mut self.input).await? > 0 {
            self.input.clear();
        }
        Ok(())
    }
}

/// Lets go of an empty buffer that has grown large. What was taken from its front counts too: its memory is still there.
fn shrink(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.try_reclaim(KEEP_BUFFER + 1) {
        *buffer = BytesMut::new();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn a_buffer_that_was_large_once_is_let_go_of_when_it_is_empty() {
        let (here, mut there) = duplex(64 * 1024);
        let mut wire = Wire::new(here);
        wire.output.extend_from_slice(&vec![b'x'; 1 << 20]);
        let reader = tokio::spawn(async move {
            let mut all = vec![0; 1 << 20];
            there.read_exact(&mut all).await.map(|_| there)
        });
        while !wire.output.is_empty() {
            wire.transfer(false).await.unwrap();
        }
        let mut there = reader.await.unwrap().unwrap();
        assert!(!wire.output.try_reclaim(KEEP_BUFFER + 1), "the memory is gone");

        there.write_all(b"request").await.unwrap();
        wire.transfer(true).await.unwrap();
        assert_eq!(wire.input, &b"request"[..]);
        assert!(wire.input.capacity() <= LEAST_READ, "and a small client takes little");
    }
}
