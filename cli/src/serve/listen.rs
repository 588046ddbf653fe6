//! Where a server may listen: on loopback, as long as nobody has to say who he is.

use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::failure::{Failure, Outcome};

/// The address that `text` names.
///
/// # Errors
/// It names none, or one beyond loopback where `insecure` does not say that this is meant.
pub(super) fn address(text: &str, insecure: bool) -> Outcome<SocketAddr> {
    let found = text.to_socket_addrs().map(|mut addresses| addresses.next());
    let address = match found {
        Ok(Some(address)) => address,
        Ok(None) => return Err(Failure::usage(format!("cannot listen on {text}: it is no address"))),
        Err(error) => return Err(Failure::usage(format!("cannot listen on {text}: {error}"))),
    };
    if address.ip().to_canonical().is_loopback() || insecure {
        return Ok(address);
    }
    Err(Failure::usage(format!(
        "will not listen on {text}, which is beyond loopback: there is no authentication yet, so whoever can reach it \
         could read and write everything. If that is meant, say --insecure or BOLTKV_INSECURE=1"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_needs_no_leave() {
        for text in ["127.0.0.1:0", "127.1.2.3:7878", "[::1]:7878", "[::ffff:127.0.0.1]:7878", "localhost:7878"] {
            assert!(address(text, false).is_ok(), "{text}");
        }
    }

    #[test]
    fn beyond_loopback_needs_leave() {
        for text in ["0.0.0.0:7878", "[::]:7878", "192.0.2.1:7878", "[::ffff:192.0.2.1]:7878"] {
            assert!(address(text, false).is_err(), "{text}");
            assert!(address(text, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_even_with_leave() {
        for text in ["", "7878", ":7878", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "no host:1"] {
            assert!(address(text, true).is_err(), "{text}");
        }
    }
}
