//! What a connection needs of its socket beside reading and writing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// What connections are made of.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// From now on closing it resets the connection: the peer's next write fails.
    fn reset_when_closed(&self);

    /// Whether the peer is gone, or has ended its side before `missing` more bytes have arrived. Nothing is read for it.
    fn is_given_up(&self, missing: usize) -> bool;

    /// The same socket, which the runtime that is entered looks after. This one is to be dropped, and not used.
    ///
    /// # Errors
    /// The system's, which has no descriptor left.
    fn handed_over(&self) -> io::Result<Self>;
}

/// A connection's socket, of whatever kind. One type for all, so that there is one session and not one for each.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Makes it ready to be served.
    ///
    /// # Errors
    /// The system's: the peer is gone.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            // Replies are gathered before they are sent; waiting for more of them is not TCP's to do.
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) => Ok(()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Socket for Stream {
    fn reset_when_closed(&self) {
        // Without it the peer is told a little later, by its first bytes that find the socket closed. One that is no port's is
        // always told at once.
        if let Self::Tcp(stream) = self {
            let _ = stream.set_zero_linger();
        }
    }

    fn is_given_up(&self, missing: usize) -> bool {
        let mut socket = [PollFd::new(self, PollFlags::RDHUP)];
        if !poll(&mut socket, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let seen = socket[0].revents();
        let is_all_here = || ioctl_fionread(self).is_ok_and(|there| there >= missing as u64);
        seen.intersects(PollFlags::HUP | PollFlags::ERR) || (seen.contains(PollFlags::RDHUP) && !is_all_here())
    }

    fn handed_over(&self) -> io::Result<Self> {
        let descriptor = self.as_fd().try_clone_to_owned()?;
        match self {
            Self::Tcp(_) => TcpStream::from_std(descriptor.into()).map(Self::Tcp),
            Self::Unix(_) => UnixStream::from_std(descriptor.into()).map(Self::Unix),
        }
    }
}
