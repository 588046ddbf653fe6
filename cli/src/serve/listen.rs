//! Where a server may listen: on loopback and on sockets in the file system, and elsewhere where only who is known is let in.

use std::net::{SocketAddr, ToSocketAddrs as _};

use boltkv_server::Listen;

use crate::arguments::{REDIS, UNIX};

/// Its owner may connect to a socket, and nobody else.
const USUAL_MODE: u32 = 0o600;

/// Where `text` says to listen.
///
/// # Errors
/// It names nothing, or an address beyond loopback where nothing says that it may be: why it cannot be used, to stand behind
/// the setting's name.
pub(super) fn parse(text: &str, may_be_anywhere: bool) -> Result<Listen, String> {
    const COULD: &str = "read and write everything";
    if let Some(socket) = text.strip_prefix(UNIX) {
        return unix(socket).map_err(|why| format!("is {text}: {why}"));
    }
    match text.strip_prefix(REDIS) {
        Some(of_redis) => address(of_redis, may_be_anywhere, COULD).map(Listen::Redis),
        None => address(text, may_be_anywhere, COULD).map(Listen::Tcp),
    }
}

/// `PATH`, or `PATH?mode=MODE`.
fn unix(text: &str) -> Result<Listen, &'static str> {
    let (path, mode) = match text.rsplit_once("?mode=") {
        Some((path, mode)) => {
            let mode = u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o777);
            (path, mode.ok_or("the mode is no octal number such as 0660")?)
        }
        None => (text, USUAL_MODE),
    };
    if path.is_empty() {
        return Err("no path behind unix:");
    }
    Ok(Listen::Unix { path: path.into(), mode })
}

/// The address that `text` names, where whoever reaches it `could` do something.
///
/// # Errors
/// It names none, or one beyond loopback where nothing says that it may be.
pub(super) fn address(text: &str, may_be_anywhere: bool, could: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map(|mut addresses| addresses.next());
    let address = match found {
        Ok(Some(address)) => address,
        Ok(None) => return Err(format!("is {text}, which is no address")),
        Err(error) => return Err(format!("is {text}, which is no address: {error}")),
    };
    if address.ip().to_canonical().is_loopback() || may_be_anywhere {
        return Ok(address);
    }
    Err(format!(
        "is {text}, which is beyond loopback: whoever can reach it could {could}. --tls-cert with --tokens \
         or --tls-client-ca lets in only who is known, and nobody read on the way; where the way is protected otherwise, say \
         --insecure or BOLTKV_INSECURE=1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_needs_no_leave() {
        for text in ["127.0.0.1:0", "127.1.2.3:7878", "[::1]:7878", "[::ffff:127.0.0.1]:7878", "localhost:7878"] {
            assert!(address(text, false, "").is_ok(), "{text}");
        }
    }

    #[test]
    fn beyond_loopback_needs_leave() {
        for text in ["0.0.0.0:7878", "[::]:7878", "192.0.2.1:7878", "[::ffff:192.0.2.1]:7878"] {
            assert!(address(text, false, "").is_err(), "{text}");
            assert!(address(text, true, "").is_ok(), "{text}");
        }
    }

    #[test]
    fn a_socket_may_have_a_mode_and_needs_no_leave() {
        let listen = |path: &str, mode| Listen::Unix { path: path.into(), mode };
        assert_eq!(parse("unix:/run/a b", false).unwrap(), listen("/run/a b", 0o600));
        assert_eq!(parse("unix:b.sock?mode=0660", false).unwrap(), listen("b.sock", 0o660));
        for text in ["unix:", "unix:?mode=600", "unix:a?mode=", "unix:a?mode=rw", "unix:a?mode=1777", "unix:a?mode=9"] {
            assert!(parse(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn a_port_may_be_for_the_redis_dialect_only() {
        let address = "127.0.0.1:6379".parse().unwrap();
        assert_eq!(parse("redis://127.0.0.1:6379", false).unwrap(), Listen::Redis(address));
        assert!(parse("redis://0.0.0.0:6379", false).is_err());
        assert!(parse("redis://", true).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused_even_with_leave() {
        for text in ["", "7878", ":7878", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "no host:1"] {
            assert!(address(text, true, "").is_err(), "{text}");
        }
    }
}
