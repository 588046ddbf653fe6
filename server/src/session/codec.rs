//! What a dialect is: how requests are read off the input, and how replies look. Everything else, a session does the same in
//! all of them.
//!
//! A codec keeps what its dialect has to remember, and decides nothing: not what a request does, and not when anything is
//! read, executed, sent or closed.

use boltkv_protocol::resp::Writer;
use boltkv_protocol::{
    ErrorCode, ErrorReply, Op, OperatorRequest, Path, ReadRequest, Reply, SnapshotRead, SnapshotRequest, StreamRequest,
    Token, WriteRequest,
};
use bytes::BytesMut;
use tokio::time::Instant;

use super::input::Input;
use super::tally::Noted;
use crate::access::Standing;
use crate::commands::{Asker, BackupRun, Call, Failure, Reader, RespWork, ScanRun, Stepped};
use crate::counters::Command;
use crate::shared::Shared;

/// The longest item that is taken from a client which has yet to say who it is, in bytes.
pub(super) const MOST_OF_STRANGER: usize = 4 * 1024;

/// A dialect.
pub(crate) trait Codec: Send + 'static {
    /// What it is called.
    const NAME: &'static str;

    /// What a reply has to know of its request beside the id.
    type Tag: Copy + Send;
    /// What the dialect answers itself, once it is its turn.
    type Own: Send;

    /// Whether replies come in the order of the requests, and each request sees what those before it did. Otherwise replies
    /// name their request, and come in any order.
    const IN_ORDER: bool;

    /// Whether a client whose token is wrong may say another one. Otherwise the connection ends with that answer.
    const MAY_TRY_AGAIN: bool = false;

    /// Bytes of rows that one reply tells.
    const MOST_OF_ROWS: usize;

    /// How many bytes a stream may send before its client gives it more credit.
    const INITIAL_CREDIT: i64;

    /// What the dialect has to do with how requests are done.
    fn asker(&self) -> Asker;

    /// Takes the next item off the input; `None` where it is not whole yet. At the end of the input (`ended`) a dialect may
    /// have something to say about what is left.
    fn decode(&mut self, input: &mut Input, arrived: Instant, ended: bool) -> Option<Asked<Self::Tag, Self::Own>>;

    /// How long the item at the front of the input will be at most, which is not whole yet, as far as can be told; `None`
    /// where none has begun.
    fn item_len(&self, input: &[u8]) -> Option<usize>;

    /// How long it will be at the least.
    fn least_item_len(&self, _input: &[u8]) -> usize {
        0
    }

    /// Writes a reply.
    fn reply<B: AsRef<[u8]>>(&mut self, due: Due<Self::Tag>, reply: &Reply<B>, out: &mut BytesMut);

    /// How many bytes a reply takes; one of a line or two may be told as 0.
    fn reply_len(&self, due: Due<Self::Tag>, reply: &Reply<&[u8]>) -> usize;

    /// Writes the next part of a stream, of at most `room` bytes.
    fn step(&self, due: Due<Self::Tag>, run: &mut ScanRun, room: usize, out: &mut BytesMut)
    -> Result<Step, ErrorReply>;

    /// Writes the next part of a backup, of at most `room` bytes. Not every dialect can ask for one.
    fn step_backup(
        &self,
        _due: Due<Self::Tag>,
        _run: &mut BackupRun,
        _room: usize,
        _out: &mut BytesMut,
    ) -> Result<Step, ErrorReply> {
        Err(ErrorReply::new(ErrorCode::Unsupported, "this dialect has no backups"))
    }

    /// Answers what the dialect answers itself; an error is what it was refused with.
    fn answer(
        &mut self,
        own: Self::Own,
        server: &Shared,
        reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode>;

    /// Answers a command of the Redis dialect that concerns the connection or the server, and may have a long reply.
    fn tell(&mut self, call: &Call, _asking: &Asking<'_>, _out: &mut Writer<'_>) -> Result<(), Failure> {
        Err(Failure::new(ErrorCode::Unsupported, call.spec.name))
    }

    /// The id that its reply will have, where the client has named one.
    fn id_of(_own: &Self::Own) -> Option<u32> {
        None
    }

    /// Which command that is; `None` for what is a part of another one.
    fn command(own: &Self::Own) -> Option<Command>;

    /// Refuses what the dialect would answer itself.
    fn refuse(&self, own: &Self::Own, error: ErrorReply, out: &mut BytesMut);

    /// An error that belongs to no request, to be said before closing.
    fn farewell(&self, error: ErrorReply) -> Self::Own;

    /// Another answer to what the dialect would answer itself.
    fn instead(&self, own: Self::Own, error: ErrorReply) -> Self::Own;

    /// The bucket that such an answer tells of, where it does.
    fn reads<'o>(&self, _own: &'o Self::Own) -> Option<&'o Path> {
        None
    }

    /// What the client calls itself, where such an answer tells.
    fn names<'o>(&self, _own: &'o Self::Own) -> Option<&'o [u8]> {
        None
    }

    /// The client was let in.
    fn introduced(&mut self) {}

    /// What is said to a client that has not introduced itself in time; `None` once it has, or need not.
    fn not_introduced(&self) -> Option<ErrorReply> {
        None
    }

    /// Whether what comes next has a meaning only once something was answered that was taken.
    fn waits(&self) -> bool {
        false
    }

    /// It is known whether a transaction is done, whose reply follows in parts.
    fn decided(&mut self, _id: u32, _is_done: bool) {}

    /// Nothing is executed any more: what was kept for that can go.
    fn mute(&mut self) {}

    /// When to end the sending side because the client seems to wait for that, if nothing happens till then. `last_reply`:
    /// when the last byte of a reply left.
    fn end_of_sending(&self, _last_reply: Instant) -> Option<Instant> {
        None
    }
}

/// Of whom something is asked, and by whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) server: &'a Shared,
    pub(crate) standing: &'a Standing,
}

/// A request that is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due<T> {
    /// Its number; not that of another one which is not answered yet.
    pub(super) id: u32,
    pub(super) tag: T,
    /// What it is counted as.
    pub(super) noted: Noted,
}

impl<T> Due<T> {
    pub(super) fn new(id: u32, tag: T) -> Self {
        Self { id, tag, noted: Noted::default() }
    }
}

/// What was read off the input.
#[derive(Debug)]
pub(crate) enum Asked<T, O> {
    Read(Due<T>, ReadRequest),
    Write(Due<T>, WriteRequest),
    Stream(Due<T>, StreamRequest),
    /// Opens or closes a snapshot.
    Snapshot(Due<T>, SnapshotRequest),
    /// Reads from the snapshot of this id.
    OfSnapshot(Due<T>, u64, SnapshotRead),
    /// Ends the stream of this id early.
    Cancel(u32),
    /// Lets a stream send so many bytes more.
    Credit {
        stream: u32,
        bytes: u32,
    },
    /// What only the Redis dialect asks for.
    Resp(Due<T>, Box<RespWork>),
    /// It concerns the server and all its connections.
    Operator(Due<T>, OperatorRequest),
    /// What the dialect answers itself.
    Own(O),
    /// The client says who it is; the answer if it is let in.
    Introduce(O, Token),
    /// What is not allowed to the client.
    Refused(Due<T>, ErrorReply),
    /// Nothing more is to be taken; what was taken is answered, then this is said.
    Close(Option<O>),
    /// Something that has no answer.
    Nothing,
}

impl<T: Copy, O> Asked<T, O> {
    /// The request that is to be answered, where it is one that the session answers.
    pub(super) const fn due(&self) -> Option<Due<T>> {
        match self {
            Self::Read(due, _)
            | Self::Write(due, _)
            | Self::Stream(due, _)
            | Self::Snapshot(due, _)
            | Self::OfSnapshot(due, ..)
            | Self::Resp(due, _)
            | Self::Operator(due, _)
            | Self::Refused(due, _) => Some(*due),
            Self::Cancel(_)
            | Self::Credit { .. }
            | Self::Own(_)
            | Self::Introduce(..)
            | Self::Close(_)
            | Self::Nothing => None,
        }
    }

    /// What it asks for, where it is a request that the session answers.
    pub(super) fn name(&self) -> Option<&'static str> {
        let op = match self {
            Self::Read(_, request) => Some(request.op()),
            Self::Write(_, request) => Some(request.op()),
            Self::Stream(_, request) => Some(request.op()),
            Self::Snapshot(..) => Some(Op::Snapshot),
            Self::Operator(_, request) => Some(request.op()),
            Self::OfSnapshot(_, _, read) => Some(read.op()),
            Self::Resp(_, work) => return Some(Command::of_resp(work.command()).name()),
            Self::Refused(..)
            | Self::Introduce(..)
            | Self::Cancel(_)
            | Self::Credit { .. }
            | Self::Own(_)
            | Self::Close(_)
            | Self::Nothing => None,
        };
        op.map(Op::name)
    }
}

/// How a step of a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There may be more.
    More,
    /// That was all.
    Ended,
    /// The next entry needs room for so many bytes.
    Needs(usize),
    /// It was not done, and its client was told so.
    Failed,
}

impl From<Stepped> for Step {
    fn from(stepped: Stepped) -> Self {
        match stepped {
            Stepped::More => Self::More,
            Stepped::Ended => Self::Ended,
            Stepped::Needs(len) => Self::Needs(len),
        }
    }
}

impl Step {
    /// A step that has written this reply.
    pub(super) const fn after<B: AsRef<[u8]>>(reply: &Reply<B>) -> Self {
        if reply.is_followed() { Self::More } else { Self::Ended }
    }
}
