//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A host and its port.
    Tcp(SocketAddr),
    /// A process of this machine, by a socket in the file system; the number of its user.
    Unix(Option<u32>),
}

impl Peer {
    /// Whether it is on this machine, so that nobody is on the way.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(Some(user)) => write!(f, "unix (user {user})"),
            Self::Unix(None) => f.write_str("unix"),
        }
    }
}
