//! boltkv's HELLO, and its buckets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use boltkv_protocol::{
    ErrorCode, ErrorReply, Expect, Frame, FrameCodec, Hello, HelloReply, Path, ReadRequest, Reply, Request,
    SessionRequest, VERSION, WriteRequest,
};
use bytes::BytesMut;
use tokio_util::codec::Decoder as _;

use super::{MOST_TO_CONNECT, Server};
use crate::wire::shown;
use crate::{Error, Op, Work};

/// HELLO's id, and that of the one request that may follow here.
const HELLO_ID: u32 = 1;
const REQUEST_ID: u32 = 2;

/// A connection that has said HELLO, and blocks.
pub(super) struct Connected<'a> {
    pub(super) stream: TcpStream,
    pub(super) hello: Agreed,
    server: &'a Server,
    codec: FrameCodec,
    input: BytesMut,
}

/// What the server has agreed to.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) server: String,
    pub(super) max_frame: usize,
    max_in_flight: usize,
    max_streams: usize,
    read_only: bool,
}

impl Agreed {
    /// Says what of a work this server does not take, before it is flooded with errors.
    pub(super) fn can(&self, work: &Work) -> Result<(), Error> {
        let why = if work.pipeline > self.max_in_flight {
            format!("the server takes {} requests in flight a connection, not {}", self.max_in_flight, work.pipeline)
        } else if work.mix.has(Op::Scan) && work.pipeline > self.max_streams {
            format!("the server takes {} scans in flight a connection, not {}", self.max_streams, work.pipeline)
        } else if self.read_only && (work.mix.has(Op::Set) || work.mix.has(Op::Delete)) {
            "the server takes no writes".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::Impossible(why))
    }
}

impl From<HelloReply> for Agreed {
    fn from(hello: HelloReply) -> Self {
        let [max_frame, max_in_flight, max_streams] =
            [hello.max_frame, hello.max_in_flight, hello.max_streams].map(|limit| usize::try_from(limit).unwrap_or(0));
        let server = shown(&hello.server);
        Self { server, max_frame, max_in_flight, max_streams, read_only: hello.read_only }
    }
}

impl<'a> Connected<'a> {
    pub(super) fn new(server: &'a Server) -> Result<Self, Error> {
        let stream = server.connect()?;
        let set_up = Error::io("setting up a connection");
        // Another kind of server may wait for what never comes.
        stream.set_read_timeout(Some(server.timeout.min(MOST_TO_CONNECT))).map_err(&set_up)?;
        let hello = Agreed { server: String::new(), max_frame: 0, max_in_flight: 0, max_streams: 0, read_only: false };
        let (codec, input) = (FrameCodec::default(), BytesMut::new());
        let mut connected = Self { stream, hello, server, codec, input };
        let hello =
            Request::from(SessionRequest::Hello(Hello { token: server.token.clone(), ..Hello::new("boltkv-bench") }));
        connected.hello = match connected.ask(&hello, HELLO_ID, Expect::Hello)? {
            Ok(Reply::Hello(hello)) if hello.version == VERSION => hello.into(),
            Ok(_) => return Err(server.broken("it does not answer HELLO")),
            Err(error) => return Err(Error::Refused { what: "HELLO", why: error.to_string() }),
        };
        connected.stream.set_read_timeout(Some(server.timeout)).map_err(&set_up)?;
        connected.codec.set_max_frame(connected.hello.max_frame);
        Ok(connected)
    }

    /// Makes a bucket, and its parents; answers the topmost of those that were not there.
    pub(super) fn create(mut self, bucket: &Path) -> Result<Path, Error> {
        let names: Vec<_> = bucket.names().collect();
        let mut made = None;
        for depth in 1..names.len() {
            let parent = Path::from_names(names.iter().take(depth));
            let parent = parent.map_err(|error| Error::Impossible(error.to_string()))?;
            if self.is_new(&parent)? {
                made.get_or_insert(parent);
            }
        }
        if !self.is_new(bucket)? {
            let what = format!("bucket {bucket} is there already: another run uses it, or has left it");
            return Err(Error::Occupied(what));
        }
        Ok(made.unwrap_or_else(|| bucket.clone()))
    }

    /// Makes one bucket; `false` where it is there.
    fn is_new(&mut self, bucket: &Path) -> Result<bool, Error> {
        match self.write(WriteRequest::CreateBucket(bucket.clone()))? {
            Ok(()) => Ok(true),
            Err(error) if error.code == ErrorCode::BucketExists => Ok(false),
            Err(error) => Err(refused("to create the bucket")(error)),
        }
    }

    /// Sees whether a bucket is there.
    pub(super) fn find(mut self, bucket: &Path) -> Result<(), Error> {
        let request = ReadRequest::Sequence(bucket.clone());
        let expect = request.expects();
        match self.ask(&request.into(), REQUEST_ID, expect)? {
            Ok(_) => Ok(()),
            Err(error) if error.code == ErrorCode::BucketNotFound => {
                Err(Error::Missing(format!("bucket {bucket} is not there: a run with --keep leaves it")))
            }
            Err(error) => Err(refused("to look for the bucket")(error)),
        }
    }

    /// Deletes a bucket.
    pub(super) fn delete(mut self, bucket: &Path) -> Result<(), Error> {
        self.write(WriteRequest::DeleteBucket(bucket.clone()))?.map_err(refused("to delete the bucket"))
    }

    fn write(&mut self, request: WriteRequest) -> Result<Result<(), ErrorReply>, Error> {
        Ok(self.ask(&request.into(), REQUEST_ID, Expect::Written)?.map(drop))
    }

    /// Asks, and waits for the one frame of the answer.
    fn ask(&mut self, request: &Request, id: u32, expect: Expect) -> Result<Result<Reply, ErrorReply>, Error> {
        let mut out = BytesMut::new();
        request.encode(id, &mut out).map_err(|error| Error::Impossible(error.to_string()))?;
        self.stream.write_all(&out).map_err(|error| self.server.silent(error))?;
        let frame = self.frame()?;
        // A refusal may concern the connection as a whole.
        let is_ours = frame.id == id || (frame.id == 0 && frame.op != 0);
        let reply = Reply::decode(expect, frame).map_err(|error| self.server.broken(error.to_string()))?;
        match reply {
            _ if !is_ours => Err(self.server.broken("an answer that nobody asked for")),
            Reply::Error(error) => Ok(Err(error)),
            reply => Ok(Ok(reply)),
        }
    }

    fn frame(&mut self) -> Result<Frame, Error> {
        let mut chunk = [0; 1024];
        loop {
            match self.codec.decode(&mut self.input) {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(_) => return Err(self.server.broken(format!("it says \"{}\"", shown(&self.input)))),
            }
            match self.stream.read(&mut chunk) {
                Ok(0) if self.input.is_empty() => return Err(self.server.broken("it closed the connection")),
                Ok(0) => return Err(self.server.broken(format!("it said \"{}\" and closed", shown(&self.input)))),
                Ok(read) => self.input.extend_from_slice(&chunk[..read]),
                Err(error) => return Err(self.server.silent(error)),
            }
        }
    }
}

fn refused(what: &'static str) -> impl Fn(ErrorReply) -> Error {
    move |error| Error::Refused { what, why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mix;

    #[test]
    fn what_the_server_does_not_take_is_told_before_it_is_sent() {
        let agreed = |read_only| Agreed {
            server: "boltkv".to_owned(),
            max_frame: 1 << 20,
            max_in_flight: 64,
            max_streams: 4,
            read_only,
        };
        let work = |text: &str, pipeline| Work { mix: text.parse::<Mix>().unwrap(), pipeline, ..Work::default() };
        for (text, pipeline, read_only, can) in [
            ("get", 64, true, true),
            ("get", 65, false, false),
            ("get+scan", 4, true, true),
            ("get+scan", 5, true, false),
            ("set", 1, true, false),
            ("get+delete", 1, true, false),
        ] {
            assert_eq!(agreed(read_only).can(&work(text, pipeline)).is_ok(), can, "{text} × {pipeline}");
        }
    }
}
