//! The bytes of a connection, however they come.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use crate::Tls;

/// What begins the address of a socket in the file system.
const UNIX: &str = "unix:";
/// How long an address of a host has to answer before the next one is tried, too.
const HEAD_START: Duration = Duration::from_millis(250);

/// What the server sends.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;
/// What is sent to it. Dropped, it ends the sending side.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection to a server.
pub(super) struct Stream {
    pub(super) input: Input,
    pub(super) output: Output,
}

/// Why there is none.
pub(super) enum NoStream {
    /// The name leads nowhere.
    Address(io::Error),
    /// Nobody is there.
    Connect(io::Error),
    /// Somebody is there, who does not encrypt, or is not to be trusted, or does not trust us.
    Encrypt(io::Error),
}

/// Connects to `host:port`, encrypted if `tls` says how; or to `unix:/path`, where nobody is on the way.
pub(super) async fn connect(address: &str, tls: Option<&Tls>) -> Result<Stream, NoStream> {
    if let Some(path) = address.strip_prefix(UNIX) {
        let stream = UnixStream::connect(Path::new(path)).await.map_err(NoStream::Connect)?;
        let (input, output) = stream.into_split();
        return Ok(Stream { input: Box::new(input), output: Box::new(output) });
    }
    let addresses = lookup_host(address).await.map_err(NoStream::Address)?;
    let stream = connect_to_one(addresses).await.map_err(NoStream::Connect)?;
    // Requests are gathered before they are written; waiting for more of them is not TCP's to do.
    stream.set_nodelay(true).map_err(NoStream::Connect)?;
    let Some(tls) = tls else {
        let (input, output) = stream.into_split();
        return Ok(Stream { input: Box::new(input), output: Box::new(output) });
    };
    let invalid = |error| NoStream::Address(io::Error::new(io::ErrorKind::InvalidInput, error));
    let name = tls.server_name(address).map_err(invalid)?;
    let stream = TlsConnector::from(tls.config()).connect(name, stream).await.map_err(NoStream::Encrypt)?;
    let (input, output) = tokio::io::split(stream);
    Ok(Stream { input: Box::new(input), output: Box::new(output) })
}

/// Tries the addresses of a host one after the other; the next one also while the one before says nothing (RFC 8305).
async fn connect_to_one(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut addresses = addresses.collect::<Vec<_>>().into_iter().peekable();
    let mut attempts = JoinSet::new();
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
    loop {
        attempts.extend(addresses.next().map(TcpStream::connect));
        tokio::select! {
            attempt = attempts.join_next() => match attempt {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = error,
                Some(Err(error)) => last = error.into(),
                None => return Err(last),
            },
            () = sleep(HEAD_START), if addresses.peek().is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[tokio::test]
    #[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
    async fn an_address_that_does_not_answer_keeps_nobody_from_the_next_one() {
        // An address that is nobody's (RFC 5737), one at which nobody listens, and a server's.
        let (gone, there) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (refuses, answers) = (gone.local_addr().unwrap(), there.local_addr().unwrap());
        drop(gone);
        let silent = ([192, 0, 2, 1], 7878).into();
        let found = connect_to_one([silent, refuses, answers].into_iter()).await.unwrap();
        assert_eq!(found.peer_addr().unwrap(), answers);
        assert_eq!(connect_to_one([refuses].into_iter()).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(connect_to_one([].into_iter()).await.is_err());
    }
}
