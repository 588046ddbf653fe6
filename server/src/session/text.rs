//! The text dialect: lines in, lines out, in order.
//!
//! Each line sees what the lines before it did. Writes that follow one another go to the writer without waiting, so that a
//! piped script is committed in groups; any other command waits until they are answered.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use boltkv_protocol::command::Verb;
use boltkv_protocol::text::{
    self, Answer, LineCodec, LineEvent, MAX_LINE, MissingBucket, QueuedAnswers, Reads, TextCommand, write_end,
    write_error, write_help, write_ok, write_queued,
};
use boltkv_protocol::{Entry, EntryKind, ErrorCode, ErrorReply, Op, Path, Reply, Request};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;
use tokio_util::codec::Decoder;

use super::codec::{Asked, Codec, Due, MOST_OF_STRANGER, Step};
use super::input::Input;
use super::linger::Linger;
use super::multi::{Multi, QueueRoom};
use crate::commands::{Asker, Progress, Reader, ScanRun};
use crate::counters::Command;
use crate::memory::OWN_INPUT;
use crate::shared::Shared;

/// What a text connection has to remember.
#[derive(Debug)]
pub(crate) struct TextCodec {
    lines: LineCodec,
    linger: Linger,
    /// The client has yet to say who it is.
    is_stranger: bool,
    /// The bucket in which keys are looked up.
    bucket: Path,
    /// The rest of several reads that one line asked for.
    reads: Option<(Reads, Answer)>,
    /// The lines since MULTI.
    multi: Option<Multi>,
    room: QueueRoom,
    /// How the transactions are printed that are being done.
    executing: HashMap<u32, QueuedAnswers>,
    last_id: u32,
}

/// What is answered beside the executor.
#[derive(Debug)]
pub(crate) enum Own {
    Use(Path),
    Done,
    /// The client has said who it is.
    LetIn,
    Queued,
    Stats,
    Help,
    Error(ErrorReply),
}

/// The most bytes that one byte of a value is printed as: `\xNN`.
const MOST_ESCAPED: usize = 4;

/// How a reply is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tag {
    /// So, and what a missing bucket means.
    Line(Answer, MissingBucket),
    /// As the lines of its transaction ask for.
    Exec,
}
type TextAsked = Asked<Tag, Own>;

impl TextCodec {
    /// Before the first line of a connection that was opened at `opened`; its sending side ends some time after the last
    /// reply, if the client looks as if it waited for that.
    pub(crate) fn new(opened: Instant, server: &Shared) -> Self {
        let Shared { limits, timeouts, memory, .. } = server;
        let room = QueueRoom { memory: Arc::clone(memory), max_frame: limits.max_frame, patience: timeouts.request };
        Self {
            lines: LineCodec::default(),
            linger: Linger::new(opened, timeouts.text_linger),
            is_stranger: server.access.asks(),
            bucket: text::default_bucket(),
            reads: None,
            multi: None,
            room,
            executing: HashMap::new(),
            last_id: 0,
        }
    }

    fn asked(&mut self, line: &LineEvent, arrived: Instant) -> TextAsked {
        if let Some(error) = line.to_error() {
            return if *line == LineEvent::Http { Asked::Close(Some(Own::Error(error))) } else { self.refused(error) };
        }
        let LineEvent::Line { text, .. } = line else { return Asked::Nothing };
        match text::parse(text, &self.bucket) {
            Ok(Some(command)) if self.is_stranger && !is_for_strangers(&command) => self.refused(auth_comes_first()),
            Ok(Some(command)) => self.queue(command, arrived),
            Ok(None) => Asked::Nothing,
            Err(error) => self.refused(error),
        }
    }

    /// A line that is only answered with an error; after MULTI, nothing will be done.
    fn refused(&mut self, error: ErrorReply) -> TextAsked {
        if let Some(multi) = &mut self.multi {
            multi.refuse(&self.room);
        }
        Asked::Own(Own::Error(error))
    }

    /// Queues what is for a transaction, if there is one, and does what is not.
    fn queue(&mut self, command: TextCommand, arrived: Instant) -> TextAsked {
        let Some(multi) = &mut self.multi else { return self.command(command) };
        match multi.queue(command, arrived, &self.room) {
            Ok(None) => Asked::Own(Own::Queued),
            // It is for the lines that follow, up to EXEC. Whether it is there, the transaction will find.
            Ok(Some(TextCommand::Use(path))) => {
                self.bucket = path;
                Asked::Own(Own::Done)
            }
            Ok(Some(TextCommand::Multi)) => self.refused(malformed("MULTI was said already; EXEC or DISCARD ends it")),
            Ok(Some(other)) => self.command(other),
            Err(error) => self.refused(error),
        }
    }

    fn exec(&mut self) -> TextAsked {
        let Some(multi) = self.multi.take() else { return Asked::Own(Own::Error(without_multi("EXEC"))) };
        let (bucket, txn) = multi.exec();
        self.bucket = bucket;
        let (txn, answers) = match txn {
            Ok(done) => done,
            Err(error) => return Asked::Own(Own::Error(error)),
        };
        let due = Due { tag: Tag::Exec, ..self.due(Answer::Done) };
        self.executing.insert(due.id, answers);
        match Request::from(txn) {
            Request::Write(write) => Asked::Write(due, write),
            Request::Stream(stream) => Asked::Stream(due, stream),
            // A transaction is one of the two.
            Request::Read(_) | Request::Session(_) | Request::OfSnapshot { .. } => Asked::Nothing,
        }
    }

    fn discard(&mut self) -> Own {
        let Some(multi) = self.multi.take() else { return Own::Error(without_multi("DISCARD")) };
        self.bucket = multi.into_bucket();
        Own::Done
    }

    fn command(&mut self, command: TextCommand) -> TextAsked {
        match command {
            TextCommand::Read { request, answer } => Asked::Read(self.due(answer), request),
            TextCommand::ReadEach { reads, answer } => {
                self.reads = Some((reads, answer));
                self.next_read().unwrap_or(Asked::Nothing)
            }
            TextCommand::Write { request, answer } => Asked::Write(self.due(answer), request),
            TextCommand::Stream { request, answer } => Asked::Stream(self.due(answer), request),
            TextCommand::Operator { request, answer } => Asked::Operator(self.due(answer), request),
            TextCommand::Use(path) => Asked::Own(Own::Use(path)),
            TextCommand::Multi => {
                self.multi = Some(Multi::new(self.bucket.clone(), &self.room));
                Asked::Own(Own::Done)
            }
            TextCommand::Condition(_) => Asked::Own(Own::Error(without_multi("IF"))),
            TextCommand::Exec => self.exec(),
            TextCommand::Discard => Asked::Own(self.discard()),
            TextCommand::Stats => Asked::Own(Own::Stats),
            TextCommand::Auth(token) => Asked::Introduce(Own::LetIn, token),
            TextCommand::Help => Asked::Own(Own::Help),
            TextCommand::Quit => Asked::Close(None),
        }
    }

    fn next_read(&mut self) -> Option<TextAsked> {
        let (reads, answer) = self.reads.as_mut()?;
        let (request, answer) = (reads.next(), *answer);
        if request.is_none() {
            self.reads = None;
        }
        Some(Asked::Read(self.due(answer), request?))
    }

    fn due(&mut self, answer: Answer) -> Due<Tag> {
        let starts_here = self.bucket == text::default_bucket();
        let missing = if starts_here { MissingBucket::Empty } else { MissingBucket::Error };
        self.last_id = self.last_id.wrapping_add(1);
        Due::new(self.last_id, Tag::Line(answer, missing))
    }

    fn use_bucket(&mut self, path: Path, reader: &mut Reader<'_>, out: &mut BytesMut) -> Result<(), ErrorCode> {
        // Every connection starts in the default bucket, which need not exist.
        let is_to_come = |error: &ErrorReply| error.code == ErrorCode::BucketNotFound && path == text::default_bucket();
        match reader.check_bucket(&path) {
            Err(error) if !is_to_come(&error) => {
                write_error(&error, out);
                Err(error.code)
            }
            _ => {
                self.bucket = path;
                write_ok(out);
                Ok(())
            }
        }
    }
}

impl Codec for TextCodec {
    type Tag = Tag;
    type Own = Own;

    const NAME: &'static str = "text";
    const IN_ORDER: bool = true;
    const MOST_OF_ROWS: usize = usize::MAX;
    /// There is no CREDIT: who does not read the lines holds them up.
    const INITIAL_CREDIT: i64 = i64::MAX;

    fn asker(&self) -> Asker {
        // No byte is printed as more than that, and what stands around a result is shorter in text.
        Asker { default_bucket: Some(text::default_bucket()), reply_growth: MOST_ESCAPED }
    }

    fn decode(&mut self, input: &mut Input, arrived: Instant, ended: bool) -> Option<TextAsked> {
        if let Some(read) = self.next_read() {
            return Some(read);
        }
        let cut = if ended { LineCodec::decode_eof } else { LineCodec::decode };
        // Cutting lines from memory cannot fail.
        let line = cut(&mut self.lines, &mut input.bytes).ok().flatten();
        if line.is_none() && self.is_stranger && input.bytes.len() > MOST_OF_STRANGER {
            return Some(Asked::Close(Some(Own::Error(auth_comes_first()))));
        }
        let mut line = line?;
        if let LineEvent::Line { text, .. } = &mut line {
            *text = input.settle(std::mem::take(text));
        }
        if let LineEvent::Line { end, .. } | LineEvent::TooLong { end } = line {
            self.linger.line(end, arrived);
        }
        Some(self.asked(&line, arrived))
    }

    fn item_len(&self, input: &[u8]) -> Option<usize> {
        // Of a line that is too long, and so is skipped, nothing is kept.
        match input.len() {
            0 if self.multi.as_ref().is_some_and(Multi::is_leased) => Some(1),
            0 if !self.lines.is_skipping() => None,
            // A long line has its memory at once. Its end is counted, and room for what is read beyond it.
            len if len >= OWN_INPUT => Some(MAX_LINE + OWN_INPUT),
            _ => Some(1),
        }
    }

    fn reply<B: AsRef<[u8]>>(&mut self, due: Due<Tag>, reply: &Reply<B>, out: &mut BytesMut) {
        match due.tag {
            Tag::Line(answer, missing) => answer.write(reply, missing, out),
            Tag::Exec => self.executing.remove(&due.id).unwrap_or_default().write(reply, out),
        }
    }

    fn reply_len(&self, due: Due<Tag>, reply: &Reply<&[u8]>) -> usize {
        match (due.tag, reply) {
            (Tag::Line(Answer::Value, _), Reply::Value(value)) => value_len(value) + 1,
            // All other replies are short.
            _ => 0,
        }
    }

    fn step(&self, due: Due<Tag>, run: &mut ScanRun, room: usize, out: &mut BytesMut) -> Result<Step, ErrorReply> {
        let Tag::Line(answer, _) = due.tag else { return Ok(Step::Ended) };
        let (end, mut needs, mut wrote) = (out.len() + room, None, false);
        let progress = run.step(|entry| {
            let len = entry_len(entry);
            if out.len() + len > end {
                needs = Some(len).filter(|_| !wrote);
                return ControlFlow::Break(());
            }
            wrote = true;
            answer.write_entry(entry, out);
            ControlFlow::Continue(())
        })?;
        match progress {
            Progress::More => return Ok(needs.map_or(Step::More, Step::Needs)),
            Progress::Done => write_end(out),
            Progress::Counted(count) => answer.write(&Reply::<Bytes>::Count(count), MissingBucket::Error, out),
        }
        Ok(Step::Ended)
    }

    fn answer(
        &mut self,
        own: Own,
        server: &Shared,
        reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        match own {
            Own::Use(path) => return self.use_bucket(path, reader, out),
            Own::Done | Own::LetIn => write_ok(out),
            Own::Queued => write_queued(out),
            Own::Stats => Answer::Figures.write(&server.stats_reply(), MissingBucket::Error, out),
            Own::Help => write_help(out),
            Own::Error(error) => {
                write_error(&error, out);
                return Err(error.code);
            }
        }
        Ok(())
    }

    fn command(own: &Own) -> Option<Command> {
        match own {
            Own::Use(_) => Some(Command::of_verb(Verb::BucketUse)),
            Own::Stats => Some(Command::of_op(Op::Stats)),
            Own::Help => Some(Command::of_verb(Verb::Help)),
            Own::LetIn => Some(Command::of_verb(Verb::Auth)),
            Own::Error(_) => Some(Command::OTHER),
            // A transaction is counted when it is done.
            Own::Done | Own::Queued => None,
        }
    }

    fn refuse(&self, _own: &Own, error: ErrorReply, out: &mut BytesMut) {
        write_error(&error, out);
    }

    fn farewell(&self, error: ErrorReply) -> Own {
        Own::Error(error)
    }

    fn instead(&self, _own: Own, error: ErrorReply) -> Own {
        Own::Error(error)
    }

    fn reads<'o>(&self, own: &'o Own) -> Option<&'o Path> {
        if let Own::Use(path) = own { Some(path) } else { None }
    }

    fn introduced(&mut self) {
        self.is_stranger = false;
    }

    fn not_introduced(&self) -> Option<ErrorReply> {
        self.is_stranger.then(|| ErrorReply::new(ErrorCode::Unauthenticated, "no AUTH came in time"))
    }

    fn mute(&mut self) {
        self.multi = None;
    }

    fn end_of_sending(&self, last_reply: Instant) -> Option<Instant> {
        self.linger.deadline(last_reply)
    }
}

/// What somebody may say before he has said who he is.
const fn is_for_strangers(command: &TextCommand) -> bool {
    matches!(command, TextCommand::Auth(_) | TextCommand::Help | TextCommand::Quit)
}

fn auth_comes_first() -> ErrorReply {
    ErrorReply::new(ErrorCode::Unauthenticated, "this server asks for a token: AUTH token comes first")
}

fn without_multi(command: &str) -> ErrorReply {
    malformed(format!("{command} without MULTI"))
}

fn malformed(message: impl Into<Cow<'static, str>>) -> ErrorReply {
    ErrorReply::new(ErrorCode::Malformed, message)
}

/// How many bytes an entry takes at most.
fn entry_len(entry: &Entry<&[u8]>) -> usize {
    const BESIDE: usize = 64;
    let value = match entry.kind {
        EntryKind::Value => value_len(entry.value),
        EntryKind::Bucket | EntryKind::TooLarge => 0,
    };
    MOST_ESCAPED * entry.key.len() + value + BESIDE
}

/// How many bytes a value takes at most: counted for a long value, estimated for a short one.
fn value_len(value: &[u8]) -> usize {
    const SHORT: usize = 1024;
    if value.len() <= SHORT { MOST_ESCAPED * value.len() + 2 } else { text::value_len(value) }
}
