//! A binary connection: frames in, frames out.
//!
//! Reads are answered where they stand, all of a burst from one snapshot and into one write to the socket. Writes go to the
//! writer and are answered when it has committed; scans go on frame by frame. So replies may come in any order, and `in_use`
//! knows which are due.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use boltkv_protocol::{
    ErrorCode, ErrorReply, Frame, FrameCodec, Hello, HelloReply, Op, Reply, Request, SessionRequest, StreamRequest,
};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::codec::Decoder;
use tracing::debug;

use super::stream::{Next, Streams, put_reply};
use super::wire::OUTPUT_FULL;
use super::{Connection, Event, shutting_down, stalled};
use crate::commands::{Reader, Snapshot};
use crate::executor::Caller;
use crate::writer::Answered;

/// What is done in one turn, before other connections have theirs: so many requests, where beginning a scan counts for many.
const TURN: usize = 1_024;
const SCAN_COST: usize = TURN / 8;
/// The features this server knows, a bit each.
const FEATURES: u32 = 0;

/// A binary connection.
pub(crate) struct BinarySession<S> {
    conn: Connection<S>,
    codec: FrameCodec,
    greeted: bool,
    caller: Arc<Caller>,
    /// The requests that are not answered yet: writes and streams.
    in_use: HashSet<u32>,
    streams: Streams,
    /// How long the input was when there was no whole frame in it.
    starved_at: Option<usize>,
    /// Nothing more is taken; what was taken is answered, then the connection is closed.
    closing: bool,
    /// What is said last.
    last_words: Option<(u32, ErrorReply)>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> BinarySession<S> {
    /// A session whose HELLO is still to come.
    pub(crate) fn new(conn: Connection<S>) -> Self {
        let limits = &conn.shared.limits;
        let streams = Streams::new(limits.max_streams as usize, limits.max_frame);
        Self {
            conn,
            codec: FrameCodec::default(),
            greeted: false,
            caller: Arc::default(),
            in_use: HashSet::new(),
            streams,
            starved_at: None,
            closing: false,
            last_words: None,
        }
    }

    /// Serves the connection until it ends.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        loop {
            let again = self.work();
            if self.is_finished() {
                break;
            }
            if again {
                yield_now().await;
            }
            let (read, deadline) = (self.wants_bytes(), self.deadline());
            let event = tokio::select! {
                biased;
                event = self.conn.event(read, deadline) => event?,
                () = std::future::ready(()), if again => continue,
            };
            match event {
                Event::Progress => {}
                Event::Answered(answered) => self.answered(&answered),
                Event::Stop => self.stop(),
                Event::Deadline => self.deadline_passed(),
            }
        }
        if let Some((id, error)) = self.last_words {
            put_reply::<Bytes>(&Reply::Error(error), id, &mut self.conn.wire.output);
        }
        self.conn.wire.close().await;
        Ok(())
    }

    /// Does what can be done without waiting. `true` if there is more of it, and only others' turn has come.
    fn work(&mut self) -> bool {
        while let Some(answered) = self.conn.answer() {
            self.answered(&answered);
        }
        let interrupted = self.take_requests();
        if self.has_room()
            && let Some(ended) = self.streams.step(&mut self.conn.wire.output)
        {
            self.in_use.remove(&ended);
        }
        interrupted || (!self.streams.is_empty() && self.has_room())
    }

    /// Whether the client has taken enough of its replies to be given more.
    fn has_room(&self) -> bool {
        self.conn.wire.output.len() < OUTPUT_FULL
    }

    fn can_take(&self) -> bool {
        !self.closing
            && self.conn.queueing.is_none()
            && self.in_use.len() < self.conn.shared.limits.max_in_flight as usize
            && self.has_room()
    }

    /// Whether to read: also where nothing can be taken, up to what may be a frame, so that a CANCEL is there to be taken
    /// before the streams that it could end fill the output again.
    fn wants_bytes(&self) -> bool {
        self.can_take() || (self.is_starved() && !self.closing)
    }

    fn is_starved(&self) -> bool {
        self.starved_at == Some(self.conn.wire.input.len())
    }

    fn is_finished(&self) -> bool {
        let no_more = self.closing || (self.conn.wire.has_ended() && self.is_starved());
        no_more && self.in_use.is_empty() && self.conn.queueing.is_none()
    }

    /// Takes what has arrived. `true` if it stopped for others to have their turn.
    fn take_requests(&mut self) -> bool {
        let shared = Arc::clone(&self.conn.shared);
        let snapshot = Snapshot::default();
        let caller = Arc::clone(&self.caller);
        let mut reader = shared.executor.admit(&caller).reader(&snapshot);
        let mut done = 0;
        self.starved_at = None;
        while self.can_take() {
            if done >= TURN {
                return true;
            }
            match self.codec.decode(&mut self.conn.wire.input) {
                Ok(Some(frame)) => done += if self.take(frame, &mut reader) { SCAN_COST } else { 1 },
                Ok(None) => {
                    self.starved_at = Some(self.conn.wire.input.len());
                    return false;
                }
                Err(error) => match error.to_reply() {
                    Some(error) => self.close_with(0, error),
                    None => self.closing = true,
                },
            }
        }
        false
    }

    /// Takes one request. `true` if it was a scan.
    fn take(&mut self, frame: Frame, reader: &mut Reader<'_>) -> bool {
        let id = frame.id;
        if self.in_use.contains(&id) {
            let message = format!("id {id} is still in use");
            self.close_with(0, ErrorReply::new(ErrorCode::Malformed, message));
            return false;
        }
        if !self.greeted {
            self.greet(frame);
            return false;
        }
        let unanswered = is_unanswered(&frame);
        match Request::decode(frame) {
            Ok(request) => return self.execute(id, request, reader),
            Err(_) if unanswered => {}
            Err(error) => self.error(id, error.into()),
        }
        false
    }

    /// Executes a request. `true` if it was a scan.
    fn execute(&mut self, id: u32, request: Request, reader: &mut Reader<'_>) -> bool {
        match request {
            Request::Session(request) => self.session_matter(id, &request),
            Request::Read(request) => put_reply(&reader.answer(&request), id, &mut self.conn.wire.output),
            Request::Write(request) => {
                self.in_use.insert(id);
                self.conn.submit(id, &self.caller, request);
            }
            Request::Stream(request) => {
                self.stream(id, request);
                return true;
            }
        }
        false
    }

    fn session_matter(&mut self, id: u32, request: &SessionRequest) {
        match request {
            SessionRequest::Hello(_) => self.error(id, ErrorReply::new(ErrorCode::Malformed, "HELLO is said once")),
            SessionRequest::Cancel { stream } => self.cancel(*stream),
            // Streams are held back by the connection itself: by what it does not take.
            SessionRequest::Credit { .. } => {}
        }
    }

    fn stream(&mut self, id: u32, request: StreamRequest) {
        match self.conn.shared.executor.admit(&self.caller).stream(request) {
            Ok(run) => {
                if self.streams.start(id, run, &mut self.conn.wire.output) == Next::Open {
                    self.in_use.insert(id);
                }
            }
            Err(error) => self.error(id, error),
        }
    }

    fn greet(&mut self, frame: Frame) {
        let id = frame.id;
        if Op::from_u8(frame.op) != Some(Op::Hello) {
            self.close_with(id, ErrorReply::new(ErrorCode::HelloRequired, "a binary connection starts with HELLO"));
            return;
        }
        match Request::decode(frame) {
            Ok(Request::Session(SessionRequest::Hello(hello))) => match hello.common_version() {
                Some(version) => self.agree(id, version, &hello),
                None => self.close_with(id, unsupported_version(&hello)),
            },
            Ok(_) => self.close_with(id, ErrorReply::new(ErrorCode::HelloRequired, "this is no HELLO")),
            Err(error) => self.close_with(id, error.into()),
        }
    }

    fn agree(&mut self, id: u32, version: u8, hello: &Hello) {
        let shared = &self.conn.shared;
        let reply = Reply::<Bytes>::Hello(HelloReply {
            version,
            features: hello.features & FEATURES,
            // Limits are checked at the start: a frame is far below 2^32.
            max_frame: u32::try_from(shared.limits.max_frame).unwrap_or(u32::MAX),
            max_in_flight: shared.limits.max_in_flight,
            max_streams: shared.limits.max_streams,
            read_only: shared.executor.is_read_only(),
            server: Bytes::from_static(concat!("boltkv/", env!("CARGO_PKG_VERSION")).as_bytes()),
        });
        debug!(client = %hello.client.escape_ascii(), version, "hello");
        self.codec.set_max_frame(shared.limits.max_frame);
        self.greeted = true;
        put_reply(&reply, id, &mut self.conn.wire.output);
    }

    fn answered(&mut self, (id, reply): &Answered) {
        self.in_use.remove(id);
        put_reply(reply, *id, &mut self.conn.wire.output);
    }

    fn error(&mut self, id: u32, error: ErrorReply) {
        put_reply::<Bytes>(&Reply::Error(error), id, &mut self.conn.wire.output);
    }

    fn cancel(&mut self, stream: u32) {
        let error = ErrorReply::new(ErrorCode::Cancelled, "the client cancelled the stream");
        if self.streams.end(stream, error, &mut self.conn.wire.output) {
            self.in_use.remove(&stream);
        }
    }

    fn end_streams(&mut self, error: &ErrorReply) {
        for id in self.streams.end_all(error, &mut self.conn.wire.output) {
            self.in_use.remove(&id);
        }
    }

    /// Closes the connection with these last words, after the writes that it has sent are answered.
    fn close_with(&mut self, id: u32, error: ErrorReply) {
        debug!(code = %error.code, "closing: {}", error.message);
        self.end_streams(&ErrorReply::new(ErrorCode::Cancelled, "the connection is being closed"));
        self.last_words = Some((id, error));
        self.closing = true;
    }

    /// The server stops: streams end, and what has arrived and was not taken is refused.
    fn stop(&mut self) {
        self.closing = true;
        self.end_streams(&shutting_down());
        while let Ok(Some(frame)) = self.codec.decode(&mut self.conn.wire.input) {
            if !is_unanswered(&frame) {
                self.error(frame.id, shutting_down());
            }
        }
    }

    /// What happens when nothing happens.
    fn deadline(&self) -> Option<Instant> {
        if self.closing {
            None
        } else if !self.greeted {
            Some(self.conn.opened + self.conn.shared.timeouts.hello)
        } else if !self.streams.is_empty() {
            Some(self.conn.stall_deadline(self.streams.last_step()))
        } else if !self.in_use.is_empty() {
            None
        } else {
            Some(self.conn.idle_deadline())
        }
    }

    fn deadline_passed(&mut self) {
        if !self.greeted {
            self.close_with(0, ErrorReply::new(ErrorCode::HelloRequired, "no HELLO came in time"));
        } else if self.streams.is_empty() {
            debug!("closing: idle");
            self.closing = true;
        } else {
            self.end_streams(&stalled());
        }
    }
}

/// Whether a frame gets no answer, whatever it holds.
fn is_unanswered(frame: &Frame) -> bool {
    matches!(Op::from_u8(frame.op), Some(Op::Credit | Op::Cancel))
}

fn unsupported_version(hello: &Hello) -> ErrorReply {
    let message = format!(
        "the client speaks versions {} to {}, the server speaks version {}",
        hello.min_version,
        hello.max_version,
        boltkv_protocol::VERSION
    );
    ErrorReply::new(ErrorCode::UnsupportedVersion, message)
}
