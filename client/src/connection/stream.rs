//! The bytes of a connection, however they come.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;

use crate::Tls;

/// What begins the address of a socket in the file system.
const UNIX: &str = "unix:";

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

/// Tries the addresses of a host one after the other.
async fn connect_to_one(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
