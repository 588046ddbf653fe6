//! A text connection: lines in, lines out, in order.
//!
//! Each line sees what the lines before it did. Writes that follow one another go to the writer without waiting, so that a
//! piped script is committed in groups; any other command waits until they are answered.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use boltkv_protocol::text::{
    self, Answer, LineCodec, LineEvent, MissingBucket, TextCommand, write_end, write_error, write_help, write_ok,
};
use boltkv_protocol::{ErrorCode, ErrorReply, Path, ReadRequest, Reply, StreamRequest, WriteRequest};
use bytes::{BufMut, Bytes};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::codec::Decoder;
use tracing::debug;

use super::linger::Linger;
use super::wire::OUTPUT_FULL;
use super::{Connection, Event, shutting_down, stalled};
use crate::commands::{Progress, ScanRun, Snapshot};
use crate::executor::Caller;

/// What is done in one turn, before other connections have theirs: so many commands, or this much of a long one.
const COMMANDS_PER_TURN: usize = 64;
const READS_PER_TURN: usize = 256;

/// A text connection.
pub(crate) struct TextSession<S> {
    conn: Connection<S>,
    lines: LineCodec,
    linger: Linger,
    /// The bucket in which keys are looked up.
    bucket: Path,
    caller: Arc<Caller>,
    /// How the writes that are not answered yet are to be printed, in their order.
    writes: VecDeque<(Answer, MissingBucket)>,
    todo: Todo,
    /// There is no whole line in the input.
    starved: bool,
    /// Nothing more is taken; what was taken is answered, then the connection is closed.
    closing: bool,
    /// The sending side has ended: what is executed is not answered.
    muted: bool,
}

/// What is to be done before the next line is taken.
#[derive(Debug)]
enum Todo {
    Nothing,
    /// A command that waits until the writes before it are answered.
    Waiting(Result<TextCommand, ErrorReply>),
    /// What is said last, also once the writes before it are answered.
    LastWords(ErrorReply),
    /// The rest of several reads.
    Reads(std::vec::IntoIter<ReadRequest>, Answer),
    /// The rest of a scan, and when its last step was.
    Scan(Box<ScanRun>, Answer, Instant),
}

/// What happens when nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    EndSending,
    GiveUpScan,
    Close,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TextSession<S> {
    /// A session before its first line.
    pub(crate) fn new(conn: Connection<S>) -> Self {
        let linger = Linger::new(conn.opened, conn.shared.timeouts.text_linger);
        Self {
            conn,
            lines: LineCodec::default(),
            linger,
            bucket: text::default_bucket(),
            caller: Arc::new(Caller { default_bucket: Some(text::default_bucket()) }),
            writes: VecDeque::new(),
            todo: Todo::Nothing,
            starved: false,
            closing: false,
            muted: false,
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
            let (read, deadline) = (self.can_take(), self.deadline());
            let event = tokio::select! {
                biased;
                event = self.conn.event(read, deadline.map(|(at, _)| at)) => event?,
                () = std::future::ready(()), if again => continue,
            };
            match (event, deadline) {
                (Event::Answered((_, reply)), _) => self.answered(&reply),
                (Event::Stop, _) => self.closing = true,
                (Event::Deadline, Some((_, due))) => self.deadline_passed(due).await?,
                (Event::Progress | Event::Deadline, _) => {}
            }
        }
        if self.conn.stopping {
            self.refuse_the_rest();
        }
        self.conn.wire.close().await;
        Ok(())
    }

    /// Does what can be done without waiting. `true` if there is more of it, and only others' turn has come.
    fn work(&mut self) -> bool {
        while let Some((_, reply)) = self.conn.answer() {
            self.answered(&reply);
        }
        self.starved = false;
        for _ in 0..COMMANDS_PER_TURN {
            if !self.can_take() {
                return false;
            }
            let is_long = matches!(self.todo, Todo::Scan(..) | Todo::Reads(..));
            if !self.advance() {
                return false;
            }
            if self.muted {
                self.conn.wire.output.clear();
            }
            if is_long {
                return true;
            }
        }
        true
    }

    /// Whether the next line, or the rest of the last, can be taken on.
    fn can_take(&self) -> bool {
        let waits = matches!(self.todo, Todo::Waiting(_) | Todo::LastWords(_)) && !self.writes.is_empty();
        !self.closing
            && !waits
            && self.conn.queueing.is_none()
            && self.writes.len() < self.conn.shared.limits.max_in_flight as usize
            && self.conn.wire.output.len() < OUTPUT_FULL
    }

    fn is_finished(&self) -> bool {
        let ended = self.conn.wire.has_ended() && self.starved && matches!(self.todo, Todo::Nothing);
        (self.closing || ended) && self.writes.is_empty() && self.conn.queueing.is_none()
    }

    /// Takes one step. `false` if there is nothing to do.
    fn advance(&mut self) -> bool {
        match std::mem::replace(&mut self.todo, Todo::Nothing) {
            Todo::Nothing => return self.take_line(),
            Todo::Waiting(command) => self.execute(command),
            Todo::LastWords(error) => {
                debug!("closing: {}", error.message);
                write_error(&error, &mut self.conn.wire.output);
                self.closing = true;
            }
            Todo::Reads(requests, answer) => self.read_each(requests, answer),
            Todo::Scan(run, answer, _) => self.scan(run, answer),
        }
        true
    }

    fn take_line(&mut self) -> bool {
        let Some(line) = self.next_line() else {
            self.starved = true;
            return false;
        };
        if let LineEvent::Line { end, .. } | LineEvent::TooLong { end } = line {
            self.linger.line(end, self.conn.wire.last_received());
        }
        let is_http = line == LineEvent::Http;
        match self.parse(line) {
            Err(error) if is_http => self.todo = Todo::LastWords(error),
            Ok(None) => {}
            Ok(Some(TextCommand::Write { request, answer })) => self.write(request, answer),
            Ok(Some(command)) => self.todo = Todo::Waiting(Ok(command)),
            Err(error) => self.todo = Todo::Waiting(Err(error)),
        }
        true
    }

    fn next_line(&mut self) -> Option<LineEvent> {
        let wire = &mut self.conn.wire;
        let cut = if wire.has_ended() { LineCodec::decode_eof } else { LineCodec::decode };
        // Cutting lines from memory cannot fail.
        cut(&mut self.lines, &mut wire.input).ok().flatten()
    }

    fn parse(&self, line: LineEvent) -> Result<Option<TextCommand>, ErrorReply> {
        if let Some(error) = line.to_error() {
            return Err(error);
        }
        let LineEvent::Line { text, .. } = line else { return Ok(None) };
        text::parse(&text, &self.bucket)
    }

    /// Executes a command once all writes before it are answered.
    fn execute(&mut self, command: Result<TextCommand, ErrorReply>) {
        let out = &mut self.conn.wire.output;
        match command {
            Err(error) => write_error(&error, out),
            Ok(command) => match command {
                TextCommand::Read { request, answer } => self.read(&request, answer),
                TextCommand::ReadEach { requests, answer } => {
                    self.todo = Todo::Reads(requests.into_iter(), answer);
                }
                TextCommand::Write { request, answer } => self.write(request, answer),
                TextCommand::Stream { request, answer } => self.stream(request, answer),
                TextCommand::Use(path) => self.use_bucket(path),
                TextCommand::Stats => self.stats(),
                TextCommand::Help => write_help(out),
                TextCommand::Quit => self.closing = true,
            },
        }
    }

    fn read(&mut self, request: &ReadRequest, answer: Answer) {
        let snapshot = Snapshot::default();
        let mut reader = self.conn.shared.executor.admit(&self.caller).reader(&snapshot);
        let missing = self.missing();
        answer.write(&reader.answer(request), missing, &mut self.conn.wire.output);
    }

    fn write(&mut self, request: WriteRequest, answer: Answer) {
        self.writes.push_back((answer, self.missing()));
        self.conn.submit(0, &self.caller, request);
    }

    fn stream(&mut self, request: StreamRequest, answer: Answer) {
        match self.conn.shared.executor.admit(&self.caller).stream(request) {
            Ok(run) => self.todo = Todo::Scan(Box::new(run), answer, Instant::now()),
            Err(error) => {
                let missing = self.missing();
                answer.write(&Reply::<Bytes>::Error(error), missing, &mut self.conn.wire.output);
            }
        }
    }

    /// Answers reads as far as there is room and it is this connection's turn, those from one snapshot.
    fn read_each(&mut self, mut requests: std::vec::IntoIter<ReadRequest>, answer: Answer) {
        let missing = self.missing();
        let shared = Arc::clone(&self.conn.shared);
        let snapshot = Snapshot::default();
        let mut reader = shared.executor.admit(&self.caller).reader(&snapshot);
        for request in requests.by_ref().take(READS_PER_TURN) {
            answer.write(&reader.answer(&request), missing, &mut self.conn.wire.output);
            if self.conn.wire.output.len() >= OUTPUT_FULL {
                break;
            }
        }
        if requests.len() > 0 && !self.muted {
            self.todo = Todo::Reads(requests, answer);
        }
    }

    /// Takes a scan's next step.
    fn scan(&mut self, mut run: Box<ScanRun>, answer: Answer) {
        let out = &mut self.conn.wire.output;
        let progress = run.step(|entry| {
            if out.len() >= OUTPUT_FULL {
                return ControlFlow::Break(());
            }
            answer.write_entry(entry, out);
            ControlFlow::Continue(())
        });
        match progress {
            // Nobody hears of the rest.
            Ok(Progress::More) if self.muted => {}
            Ok(Progress::More) => self.todo = Todo::Scan(run, answer, Instant::now()),
            Ok(Progress::Done) => write_end(out),
            Ok(Progress::Counted(count)) => answer.write(&Reply::<Bytes>::Count(count), MissingBucket::Error, out),
            Err(error) => write_error(&error, out),
        }
    }

    fn use_bucket(&mut self, path: Path) {
        let snapshot = Snapshot::default();
        let shared = Arc::clone(&self.conn.shared);
        let checked = shared.executor.admit(&self.caller).reader(&snapshot).check_bucket(&path);
        // Where every connection starts, there or not.
        let is_to_come = |error: &ErrorReply| {
            error.code == ErrorCode::BucketNotFound && self.caller.default_bucket.as_ref() == Some(&path)
        };
        match checked {
            Err(error) if !is_to_come(&error) => write_error(&error, &mut self.conn.wire.output),
            _ => {
                self.bucket = path;
                write_ok(&mut self.conn.wire.output);
            }
        }
    }

    fn stats(&mut self) {
        let shared = Arc::clone(&self.conn.shared);
        let out = &mut self.conn.wire.output;
        for (name, figure) in shared.stats.figures(shared.executor.db(), shared.executor.is_read_only()) {
            out.put_slice(format!("{name} {figure}\n").as_bytes());
        }
        write_end(out);
    }

    fn answered(&mut self, reply: &Reply) {
        if let Some((answer, missing)) = self.writes.pop_front()
            && !self.muted
        {
            answer.write(reply, missing, &mut self.conn.wire.output);
        }
    }

    /// What it means that the connection's bucket is not there.
    fn missing(&self) -> MissingBucket {
        if self.caller.default_bucket.as_ref() == Some(&self.bucket) {
            MissingBucket::Empty
        } else {
            MissingBucket::Error
        }
    }

    /// The server stops: what has arrived and was not taken is refused.
    fn refuse_the_rest(&mut self) {
        if self.muted {
            return;
        }
        if !matches!(self.todo, Todo::Nothing) {
            write_error(&shutting_down(), &mut self.conn.wire.output);
        }
        while let Ok(Some(line)) = self.lines.decode(&mut self.conn.wire.input) {
            if !matches!(&line, LineEvent::Line { text, .. } if text.trim_ascii().is_empty()) {
                write_error(&shutting_down(), &mut self.conn.wire.output);
            }
        }
    }

    fn deadline(&self) -> Option<(Instant, Due)> {
        if self.closing || !self.writes.is_empty() {
            return None;
        }
        if let Todo::Scan(_, _, last_step) = &self.todo {
            return Some((self.conn.stall_deadline(*last_step), Due::GiveUpScan));
        }
        let quiet = !self.muted && matches!(self.todo, Todo::Nothing) && self.conn.wire.output.is_empty();
        let idle = (self.conn.idle_deadline(), Due::Close);
        let end = self.linger.deadline(self.conn.wire.last_sent()).filter(|_| quiet);
        Some(end.map_or(idle, |end| (end, Due::EndSending)))
    }

    async fn deadline_passed(&mut self, due: Due) -> io::Result<()> {
        match due {
            Due::EndSending => {
                self.muted = true;
                self.conn.wire.end_sending().await?;
            }
            Due::GiveUpScan => {
                self.todo = Todo::Nothing;
                write_error(&stalled(), &mut self.conn.wire.output);
            }
            Due::Close => {
                debug!("closing: idle");
                self.closing = true;
            }
        }
        Ok(())
    }
}
