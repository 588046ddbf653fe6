//! What a connection needs of its socket beside reading and writing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustls::ServerConfig;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::handshakes::Rewound;
use crate::memory::OWN_OUTPUT;
use crate::peer::{Origin, Peer};
use crate::tls::{Encryption, Whose, client_names};

/// How a connection is encrypted, whose it is, and what ends it.
pub(crate) struct Encrypting {
    pub(super) encryption: Arc<Encryption>,
    pub(super) config: Arc<ServerConfig>,
    pub(super) origin: Origin,
    pub(super) end: CancellationToken,
}

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

    /// Has the system take little before it can send it. What is on its way is not counted among that, so that nothing is slower
    /// on a long way.
    fn keep_little_unsent(&self) {}

    /// Whether it keeps what was written to it until it is flushed.
    fn keeps_back(&self) -> bool {
        false
    }

    /// The names that the peer has a certificate for; none where it has shown none.
    fn peer_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Encrypted from now on; `first` is what has been read of it already.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the peer sends.
    fn encrypted(self, _first: BytesMut, _how: Encrypting) -> impl Future<Output = io::Result<Self>> + Send {
        async { Err(io::ErrorKind::Unsupported.into()) }
    }
}

/// A connection's socket, of whatever kind. One type for all, so that there is one session and not one for each.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<Rewound<Self>>>),
}

impl Stream {
    /// Makes it ready to be served to this peer.
    ///
    /// # Errors
    /// The system's: the peer is gone.
    pub(crate) fn prepare(&self, peer: Peer) -> io::Result<()> {
        let Self::Tcp(stream) = self else { return Ok(()) };
        // Replies are gathered before they are sent; waiting for more of them is not TCP's to do.
        stream.set_nodelay(true)?;
        if peer.is_here() {
            shares_no_link(stream);
        }
        Ok(())
    }
}

/// What the system keeps of a stream that it cannot send yet, in bytes. It would keep megabytes of each connection, and take
/// more only when much of that has gone: of a client that reads slowly it would seem for minutes that it takes nothing.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Within one machine there is nothing to measure and nobody to make room for: where the system has all connections measure
/// their link and pace what they send (`bbr`), this one does not. 50 clients' GETs became 2 % faster by it, with 16 in flight
/// each 4 %, and the slowest of them 5 %.
#[cfg(target_os = "linux")]
fn shares_no_link(stream: &TcpStream) {
    // The one that is always there, and allowed to everybody. Where it is refused all the same, as some sandboxes do, the
    // connection is served as it is; and one whose peer is gone is found out by the first look at it.
    if let Err(error) = rustix::net::sockopt::set_tcp_congestion(stream, "reno") {
        debug!(%error, "a connection from this machine keeps the system's congestion control");
    }
}

/// Elsewhere the system does as it likes.
#[cfg(not(target_os = "linux"))]
const fn shares_no_link(_stream: &TcpStream) {}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.get_ref().0.inner.as_fd(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Socket for Stream {
    fn reset_when_closed(&self) {
        // Without it the peer is told a little later, by its first bytes that find the socket closed. One that is no port's is
        // always told at once.
        match self {
            Self::Tcp(stream) => drop(stream.set_zero_linger()),
            Self::Unix(_) => {}
            Self::Tls(stream) => stream.get_ref().0.inner.reset_when_closed(),
        }
    }

    fn is_given_up(&self, missing: usize) -> bool {
        let mut socket = [PollFd::new(self, PollFlags::RDHUP)];
        if !poll(&mut socket, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return false;
        }
        let seen = socket[0].revents();
        // Of what is encrypted it is not known how much of it is here, nor whether more than is seen.
        let is_encrypted = matches!(self, Self::Tls(_));
        let is_all_here = || is_encrypted || ioctl_fionread(self).is_ok_and(|there| there >= missing as u64);
        seen.intersects(PollFlags::HUP | PollFlags::ERR) || (seen.contains(PollFlags::RDHUP) && !is_all_here())
    }

    fn handed_over(&self) -> io::Result<Self> {
        if matches!(self, Self::Tls(_)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "what is encrypted stays where it is"));
        }
        let descriptor = self.as_fd().try_clone_to_owned()?;
        match self {
            Self::Tcp(_) => TcpStream::from_std(descriptor.into()).map(Self::Tcp),
            Self::Unix(_) | Self::Tls(_) => UnixStream::from_std(descriptor.into()).map(Self::Unix),
        }
    }

    #[cfg(target_os = "linux")]
    fn keep_little_unsent(&self) {
        // Of one that is no port's the system keeps little anyway.
        if let Err(error) = SockRef::from(self).set_tcp_notsent_lowat(UNSENT) {
            debug!(%error, "the system keeps as much of a connection's replies as it likes");
        }
    }

    fn keeps_back(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    fn peer_names(&self) -> Vec<String> {
        let Self::Tls(stream) = self else { return Vec::new() };
        client_names(stream.get_ref().1.peer_certificates())
    }

    async fn encrypted(self, first: BytesMut, how: Encrypting) -> io::Result<Self> {
        let Encrypting { encryption, config, origin, end } = how;
        let mut stream = encryption.accept(Whose::Clients, Rewound::new(first, self), config, origin, end).await?;
        // What it keeps until the system takes it is room for replies, too.
        stream.get_mut().1.set_buffer_limit(Some(OWN_OUTPUT));
        Ok(Self::Tls(Box::new(stream)))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt::{tcp_congestion, tcp_nodelay};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn within_the_machine_nothing_is_paced() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else { continue };
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (accepted, peer) = listener.accept().await.unwrap();
            let stream = Stream::Tcp(accepted);
            stream.prepare(Peer::Tcp(peer)).unwrap();
            assert_eq!(tcp_congestion(&stream).unwrap(), "reno", "{address}");
            assert!(tcp_nodelay(&stream).unwrap(), "{address}");
            stream.keep_little_unsent();
            assert_eq!(SockRef::from(&stream).tcp_notsent_lowat().unwrap(), UNSENT, "{address}");
            drop(client);
        }
    }
}
