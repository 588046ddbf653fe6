//! A server on a port of its own, and clients that speak raw bytes to it.
#![allow(dead_code, unreachable_pub, reason = "every test binary compiles all of this and uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

pub mod binary;
pub mod raw_resp;
pub mod resp;
pub mod running;
pub mod text;
pub mod txn;
pub mod watch;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Options};
use tempfile::TempDir;

pub use binary::Binary;
pub use resp::Resp;
pub use running::{PATIENCE, TestServer};
pub use text::Text;

impl TestServer {
    pub fn text(&self) -> Text {
        Text::connect(self.address)
    }

    /// A connection that will speak the Redis dialect.
    pub fn resp(&self) -> Resp {
        Resp::connect(self.address)
    }

    /// A binary connection that has said HELLO.
    pub fn binary(&self) -> Binary {
        let mut client = Binary::connect(self.address);
        client.hello();
        client
    }

    /// Fails unless the server serves new connections, in both dialects.
    pub fn assert_serving(&self) {
        assert_eq!(self.text().ask("PING"), "PONG");
        assert_eq!(self.binary().ping(b"still there"), &b"still there"[..]);
    }
}

/// A database file in a folder of its own.
pub struct TestFile {
    _folder: TempDir,
    pub path: PathBuf,
}

impl TestFile {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        Self { _folder: folder, path }
    }

    pub fn open(&self) -> Db {
        Options::new().timeout(PATIENCE).open(&self.path).unwrap()
    }
}

/// A connection that nothing has been said on.
pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Everything that the server sends until it ends the connection.
pub fn read_to_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    match socket.read_to_end(&mut all) {
        Ok(_) => all,
        // A peer that is gone has ended too.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => all,
        Err(error) => panic!("the server did not end the connection: {error}"),
    }
}

/// Sends bytes on a new connection, ends the sending side, and answers all that comes back.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(address);
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    read_to_end(&mut socket)
}

/// Sends bytes as they are.
pub fn send(socket: &mut TcpStream, bytes: &[u8]) {
    socket.write_all(bytes).unwrap();
}

/// Waits until something holds that another thread brings about.
pub fn eventually(mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "it does not come to hold");
        std::thread::sleep(Duration::from_millis(5));
    }
}
