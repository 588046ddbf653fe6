//! What a connection needs of its socket beside reading and writing.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

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

impl Socket for TcpStream {
    fn reset_when_closed(&self) {
        // Without it the peer is told a little later, by its first bytes that find the socket closed.
        let _ = self.set_zero_linger();
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
        Self::from_std(self.as_fd().try_clone_to_owned()?.into())
    }
}
