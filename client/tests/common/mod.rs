//! A peer that the test plays by hand: it takes connections and speaks in bytes, without the protocol's own codec.

#![allow(dead_code, reason = "each test file uses its part")]

use std::future::Future;
use std::time::Duration;

use boltkv_client::{Client, ClientBuilder, Entries, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Long enough for anything that should happen; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const OK: u8 = 0;
pub(crate) const LAST: u8 = 0x80;
pub(crate) const MORE: u8 = 0x81;

/// The bytes that hexadecimal digits name; blanks are for the reader.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    assert_eq!(digits.len() % 2, 0, "an odd number of digits");
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

/// An error reply's body.
pub(crate) fn error_body(message: &str) -> Vec<u8> {
    let len = u16::try_from(message.len()).unwrap().to_be_bytes();
    [&len[..], message.as_bytes(), &[0; 4]].concat()
}

/// The body of a value.
pub(crate) fn value_body(value: &[u8]) -> Vec<u8> {
    let len = u32::try_from(value.len()).unwrap().to_be_bytes();
    [&len[..], value].concat()
}

/// A body of scan entries, all of them values.
pub(crate) fn entries_body(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = u32::try_from(entries.len()).unwrap().to_be_bytes().to_vec();
    for (key, value) in entries {
        body.push(0);
        body.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
        body.extend(key.as_bytes());
        body.extend(value_body(value));
    }
    body
}

/// What must happen before the test's patience ends.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened")
}

/// A whole scan of bucket `b`.
pub(crate) const ALL: &str = "01 0001 62 00 00 00 0000000000000000";

/// Opens a scan of all of bucket `b`, which the peer answers with a first frame on a new connection; more follow.
pub(crate) async fn open_scan(peer: &Peer, client: &Client) -> (Entries, Conn, u32) {
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, OK, MORE, &entries_body(&[("a", b"1")])).await;
        (conn, id)
    };
    let (entries, (conn, id)) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    (entries.unwrap(), conn, id)
}

/// The keys of all entries that are still to come.
pub(crate) async fn keys(entries: &mut Entries) -> Result<Vec<String>, Error> {
    let mut keys = Vec::new();
    while let Some(entry) = soon(entries.next()).await {
        keys.push(String::from_utf8(entry?.key.to_vec()).unwrap());
    }
    Ok(keys)
}

/// A listening peer.
pub(crate) struct Peer {
    listener: TcpListener,
    pub(crate) addr: String,
}

impl Peer {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        Self { listener, addr }
    }

    /// A client that is patient, and its first connection.
    pub(crate) async fn client(&self) -> (Client, Conn) {
        self.client_by(Client::builder(self.addr.as_str())).await
    }

    /// A client that waits for `timeout` only, and its first connection.
    pub(crate) async fn hasty_client(&self, timeout: Duration) -> (Client, Conn) {
        self.client_by(Client::builder(self.addr.as_str()).timeout(timeout)).await
    }

    pub(crate) async fn client_by(&self, builder: ClientBuilder) -> (Client, Conn) {
        let (client, conn) = tokio::join!(builder.connect(), self.accept());
        (client.unwrap(), conn)
    }

    /// The next connection, before it has said anything.
    pub(crate) async fn accept_raw(&self) -> Conn {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        Conn { stream }
    }

    /// The next connection, with HELLO done: frames up to 1 MiB, 4 requests and 2 streams in flight.
    pub(crate) async fn accept(&self) -> Conn {
        self.accept_raw().await.greeted().await
    }
}

/// A request as the peer sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u32,
    pub(crate) op: u8,
    pub(crate) flags: u8,
    pub(crate) body: Vec<u8>,
}

/// One connection of the client, seen from the peer.
pub(crate) struct Conn {
    stream: TcpStream,
}

impl Conn {
    /// Answers HELLO.
    pub(crate) async fn greeted(mut self) -> Self {
        let hello = self.request().await;
        assert_eq!((hello.id, hello.op, hello.flags), (1, 0x01, 0));
        self.reply(1, OK, LAST, &hex("01 00000000 00100000 00000004 00000002 00 0004 70656572")).await;
        self
    }

    /// The next request.
    pub(crate) async fn request(&mut self) -> Request {
        let mut header = [0; 10];
        soon(self.stream.read_exact(&mut header)).await.unwrap();
        let len = u32::from_be_bytes(header[..4].try_into().unwrap());
        let mut body = vec![0; usize::try_from(len).unwrap() - 6];
        soon(self.stream.read_exact(&mut body)).await.unwrap();
        let id = u32::from_be_bytes(header[4..8].try_into().unwrap());
        Request { id, op: header[8], flags: header[9], body }
    }

    /// The next request, which must be this one; returns its id.
    pub(crate) async fn expect(&mut self, op: u8, body: &str) -> u32 {
        self.expect_flagged(op, 0, body).await
    }

    /// The next request, which must be this one, with these flags; returns its id.
    pub(crate) async fn expect_flagged(&mut self, op: u8, flags: u8, body: &str) -> u32 {
        let request = self.request().await;
        assert_eq!((request.op, request.flags), (op, flags));
        assert_eq!(request.body, hex(body));
        request.id
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        soon(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Sends one frame.
    pub(crate) async fn reply(&mut self, id: u32, status: u8, flags: u8, body: &[u8]) {
        self.try_reply(id, status, flags, body).await.unwrap();
    }

    /// Sends one frame, if the client still takes it.
    pub(crate) async fn try_reply(&mut self, id: u32, status: u8, flags: u8, body: &[u8]) -> std::io::Result<()> {
        let len = u32::try_from(body.len() + 6).unwrap();
        let mut frame = [len.to_be_bytes(), id.to_be_bytes()].concat();
        frame.extend([status, flags]);
        frame.extend(body);
        soon(self.stream.write_all(&frame)).await
    }

    /// Whether nothing comes within a moment.
    pub(crate) async fn is_quiet(&mut self, moment: Duration) -> bool {
        tokio::time::timeout(moment, self.stream.peek(&mut [0])).await.is_err()
    }

    /// Waits until the client has closed, and returns what it sent before.
    pub(crate) async fn closed(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        soon(self.stream.read_to_end(&mut rest)).await.unwrap();
        rest
    }
}
