//! A client of the binary dialect.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use boltkv_protocol::{
    Cond, Entry, ErrorCode, ErrorReply, Expect, FLAG_REPLY, Frame, Hello, HelloReply, KeyRange, Path, ReadRequest,
    Reply, Request, Scan, ScanOptions, SessionRequest, StreamRequest, WriteRequest,
};
use bytes::{Bytes, BytesMut};

use super::{connect, read_to_end};

pub struct Binary {
    pub socket: TcpStream,
    next_id: u32,
    /// Streams get as much credit again as was read of them.
    pub gives_credit: bool,
}

pub fn path(text: &str) -> Path {
    text.parse().unwrap()
}

pub fn ping(bytes: &[u8]) -> Request {
    Request::Read(ReadRequest::Ping(Bytes::copy_from_slice(bytes)))
}

pub fn get(bucket: &str, key: &str) -> Request {
    Request::Read(ReadRequest::Get { path: path(bucket), key: Bytes::copy_from_slice(key.as_bytes()) })
}

pub fn set(bucket: &str, key: &str, value: impl Into<Bytes>) -> Request {
    set_if(bucket, key, value, Cond::Always)
}

pub fn set_if(bucket: &str, key: &str, value: impl Into<Bytes>, cond: Cond) -> Request {
    Request::Write(WriteRequest::Set {
        path: path(bucket),
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: value.into(),
        cond,
    })
}

pub fn delete(bucket: &str, key: &str) -> Request {
    delete_if(bucket, key, Cond::Always)
}

pub fn delete_if(bucket: &str, key: &str, cond: Cond) -> Request {
    Request::Write(WriteRequest::Delete { path: path(bucket), key: Bytes::copy_from_slice(key.as_bytes()), cond })
}

pub fn create(bucket: &str) -> Request {
    Request::Write(WriteRequest::CreateBucket(path(bucket)))
}

pub fn create_if_missing(bucket: &str) -> Request {
    Request::Write(WriteRequest::CreateBucketIfMissing(path(bucket)))
}

pub fn delete_bucket(bucket: &str) -> Request {
    Request::Write(WriteRequest::DeleteBucket(path(bucket)))
}

pub fn scan(bucket: &str, range: KeyRange, options: ScanOptions) -> Request {
    Request::Stream(StreamRequest::Scan(Scan { path: path(bucket), range, options }))
}

pub fn scan_all(bucket: &str) -> Request {
    scan(bucket, KeyRange::ALL, ScanOptions::default())
}

pub fn bucket_stat(bucket: &str) -> Request {
    Request::Stream(StreamRequest::BucketStat(path(bucket)))
}

pub fn list(bucket: &str) -> Request {
    Request::Stream(StreamRequest::ListBuckets(Scan { path: path(bucket), ..Scan::default() }))
}

/// A frame from its parts, right or wrong.
pub fn frame(id: u32, op: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(6 + body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend(id.to_be_bytes());
    frame.extend([op, flags]);
    frame.extend(body);
    frame
}

impl Binary {
    /// A connection that has not said HELLO.
    pub fn connect(address: SocketAddr) -> Self {
        Self { socket: connect(address), next_id: 1, gives_credit: true }
    }

    pub fn hello(&mut self) -> HelloReply {
        match self.ask(&Request::Session(SessionRequest::Hello(Hello::new("test")))) {
            Reply::Hello(reply) => reply,
            other => panic!("no HELLO came back but {other:?}"),
        }
    }

    pub fn ping(&mut self, bytes: &[u8]) -> Bytes {
        match self.ask(&Request::Read(ReadRequest::Ping(Bytes::copy_from_slice(bytes)))) {
            Reply::Pong(bytes) => bytes,
            other => panic!("no PONG came back but {other:?}"),
        }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends requests in one write; answers their ids.
    pub fn send_all(&mut self, requests: &[Request]) -> Vec<u32> {
        let mut out = BytesMut::new();
        let ids = requests.iter().map(|request| {
            let id = self.next_id;
            self.next_id += 1;
            request.encode(id, &mut out).unwrap();
            id
        });
        let ids = ids.collect();
        self.send(&out);
        ids
    }

    /// The next frame.
    pub fn frame(&mut self) -> Frame {
        let mut header = [0; 10];
        self.socket.read_exact(&mut header).expect("a frame comes");
        let len = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
        let mut body = vec![0; len - 6];
        self.socket.read_exact(&mut body).expect("the frame comes in full");
        let id = u32::from_be_bytes(header[4..8].try_into().unwrap());
        let frame = Frame { id, op: header[8], flags: header[9], body: body.into() };
        assert!(frame.flags & FLAG_REPLY != 0, "{frame:?}");
        if self.gives_credit && frame.has_more() {
            self.credit(frame.id, u32::try_from(frame.body.len()).unwrap());
        }
        frame
    }

    /// Lets a stream send so many bytes more. A server that is gone, or that knows that we are, need not hear of it.
    pub fn credit(&mut self, stream: u32, bytes: u32) {
        let mut out = BytesMut::new();
        Request::from(SessionRequest::Credit { stream, bytes }).encode(0, &mut out).unwrap();
        let _ = self.socket.write_all(&out);
    }

    /// Sends a CANCEL.
    pub fn cancel(&mut self, stream: u32) {
        let mut out = BytesMut::new();
        Request::from(SessionRequest::Cancel { stream }).encode(0, &mut out).unwrap();
        self.send(&out);
    }

    /// The next frame, which must be the only one of its reply.
    pub fn reply(&mut self, request: &Request) -> (u32, Reply) {
        let frame = self.frame();
        assert!(!frame.has_more(), "{frame:?}");
        (frame.id, Reply::decode(request.expects().unwrap(), frame).unwrap())
    }

    /// The next frame, which must be an error.
    pub fn error(&mut self) -> (u32, ErrorReply) {
        let frame = self.frame();
        let id = frame.id;
        match Reply::decode(Expect::Written, frame).unwrap() {
            Reply::Error(error) => (id, error),
            other => panic!("no error came but {other:?}"),
        }
    }

    /// Sends a request and answers its reply of one frame.
    pub fn ask(&mut self, request: &Request) -> Reply {
        let ids = self.send_all(std::slice::from_ref(request));
        let (id, reply) = self.reply(request);
        assert_eq!(id, ids[0]);
        reply
    }

    /// Sends a request that must fail, and answers with what code.
    pub fn ask_code(&mut self, request: &Request) -> ErrorCode {
        match self.ask(request) {
            Reply::Error(error) => error.code,
            other => panic!("{request:?} was answered with {other:?}"),
        }
    }

    /// Sends a request that must write, and answers the transaction's number.
    pub fn write(&mut self, request: &Request) -> u64 {
        match self.ask(request) {
            Reply::Written { txid } | Reply::Deleted { txid, .. } => txid,
            other => panic!("{request:?} was answered with {other:?}"),
        }
    }

    /// A figure of STATS.
    pub fn stat(&mut self, name: &str) -> String {
        let Reply::Stats(figures) = self.ask(&Request::Session(SessionRequest::Stats)) else { panic!("no figures") };
        let figure = figures.iter().find(|(known, _)| known == name);
        String::from_utf8(figure.expect("there is such a figure").1.to_vec()).unwrap()
    }

    /// Sends a GET and answers the value; `None` where there is no such key.
    pub fn value(&mut self, bucket: &str, key: &str) -> Option<Bytes> {
        match self.ask(&get(bucket, key)) {
            Reply::Value(value) => Some(value),
            Reply::Error(error) if error.code == ErrorCode::KeyNotFound => None,
            other => panic!("GET {key} was answered with {other:?}"),
        }
    }

    /// Sends a scan; answers its entries, and how many frames they came in.
    pub fn entries(&mut self, request: &Request) -> (Vec<Entry>, usize) {
        let ids = self.send_all(std::slice::from_ref(request));
        let (mut entries, mut frames) = (Vec::new(), 0);
        loop {
            let frame = self.frame();
            assert_eq!(frame.id, ids[0]);
            let more = frame.has_more();
            frames += 1;
            match Reply::decode(Expect::Entries, frame).unwrap() {
                Reply::Entries(some) => entries.extend(some),
                other => panic!("{request:?} was answered with {other:?}"),
            }
            if !more {
                return (entries, frames);
            }
        }
    }

    /// Sends a scan and answers the keys of its entries.
    pub fn keys(&mut self, request: &Request) -> Vec<String> {
        let (entries, _) = self.entries(request);
        entries.iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()).collect()
    }

    /// Ends the sending side.
    pub fn end(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    /// Whether the server resets the connection, sooner or later.
    pub fn is_reset(&mut self) -> bool {
        std::io::copy(&mut self.socket, &mut std::io::sink()).is_err()
    }

    /// Everything until the server ends the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        read_to_end(&mut self.socket)
    }
}
