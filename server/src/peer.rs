//! Who is at the other end of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

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

    /// Whose doing it is.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Tcp(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => Origin::V4(ip.octets()),
                IpAddr::V6(ip) => Origin::V6(*ip.octets().first_chunk().unwrap_or(&[0; 8])),
            },
            Self::Unix(user) => Origin::Local(*user),
        }
    }
}

/// Who is one as far as can be seen: an IPv4 address, the network of an IPv6 one (a host has 2^64 of these), or a user of this
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Origin {
    V4([u8; 4]),
    V6([u8; 8]),
    Local(Option<u32>),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_ipv6_network_are_one() {
        let of = |text: &str| Peer::Tcp(text.parse().unwrap()).origin();
        assert_eq!(of("[2001:db8::1]:1"), of("[2001:db8::2]:2"));
        assert_ne!(of("[2001:db8::1]:1"), of("[2001:db8:0:1::1]:1"));
        assert_eq!(of("[::ffff:192.0.2.1]:1"), of("192.0.2.1:9"));
        assert_ne!(of("192.0.2.1:1"), of("192.0.2.2:1"));
    }
}
