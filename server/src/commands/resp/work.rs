//! Commands on their way to where they are done, and what comes of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use boltkv_protocol::resp::{Args, Group, Kind, RespCommand, Spec, Version, Writer, write_error_line};
use boltkv_protocol::{ErrorCode, Path, ReadRequest, Reply};
use bytes::{Bytes, BytesMut};

use super::database::Database;
use super::failure::Failure;
use super::keyspace::KeyspaceMut;
use super::scans::Owner;
use super::watching::{WatchedKeys, Watching};
use super::{read, set, walk, write};
use crate::commands::expiry::Timed;
use crate::commands::number;
use crate::commands::results::{Outcome, ReplyRoom};
use crate::memory::Lease;
use boltkv_protocol::resp::names::{EMPTY, stored};

/// A transaction that takes longer is not done: each of its commands is bounded, and there may be very many.
const LONGEST: Duration = Duration::from_secs(5);

/// Replies that take no more than this take no memory of the server's, as no other short reply does.
const SHORT: usize = 256;

/// A command with its words.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) spec: &'static Spec,
    pub(crate) args: Args,
    pub(crate) db: Database,
    /// Whose it is, where something has to be remembered for it.
    pub(crate) owner: Option<Owner>,
}

/// What is to be done, and how its reply is to be written.
#[derive(Debug, Clone)]
pub(crate) struct RespWork {
    pub(crate) what: What,
    pub(crate) version: Version,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub(crate) enum What {
    One(Call),
    /// Keys are to be watched for a connection.
    Watch(Call, Arc<Watching>),
    Exec(Transaction),
}

/// Commands that are done as one, if nothing has changed that the connection watches.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub(crate) calls: Vec<Call>,
    pub(crate) watching: Option<Arc<Watching>>,
    /// One of them changes something.
    changes: bool,
}

impl Transaction {
    pub(crate) fn new(calls: Vec<Call>, watching: Option<Arc<Watching>>) -> Self {
        let changes = calls.iter().any(|call| call.kind() == Kind::Write);
        Self { calls, watching, changes }
    }
}

impl Call {
    /// How it is done: what a command of a command has to do with no key is not looked up in any.
    pub(crate) fn kind(&self) -> Kind {
        let is = |sub: &[u8]| self.args.word(1).eq_ignore_ascii_case(sub);
        match self.spec.command {
            RespCommand::Memory if !is(b"USAGE") => Kind::Session,
            RespCommand::Object if is(b"HELP") => Kind::Session,
            _ => self.spec.kind,
        }
    }

    /// Whether it is answered by the connection or the server, also within a transaction.
    pub(crate) fn needs_connection(&self) -> bool {
        use RespCommand::{Echo, Ping, Select, Time, Unwatch};
        self.kind() == Kind::Session && !matches!(self.spec.command, Echo | Ping | Select | Time | Unwatch)
    }

    /// Whether it is for whoever looks after the server.
    pub(crate) fn is_for_operators(&self) -> bool {
        self.spec.subcommand(self.args.word(1)).is_some_and(|sub| sub.for_operators)
    }

    /// The word at `at`, as the name that the file has for it.
    pub(crate) fn key(&self, at: usize) -> Bytes {
        if self.args.word(at).is_empty() { Bytes::from_static(EMPTY) } else { self.args.slice(at) }
    }

    /// The buckets that it reads, or changes.
    pub(crate) fn places(&self) -> Vec<Path> {
        let path = self.db.path();
        match (self.spec.group, self.spec.command) {
            (Group::Hash, _) => {
                // What is no path is refused when it is done; until then it is the database's own business.
                vec![self.hash().unwrap_or_else(|| path.clone())]
            }
            (_, RespCommand::FlushAll) => Database::all().map(|db| db.path().clone()).collect(),
            // These name other databases.
            (_, RespCommand::SwapDb) => self.with_databases([1, 2].into_iter()),
            (_, RespCommand::Move) => self.with_databases([2].into_iter()),
            (_, RespCommand::Copy) => {
                let named = (3..self.args.len()).filter(|at| self.args.word(*at).eq_ignore_ascii_case(b"db"));
                self.with_databases(named.map(|at| at + 1))
            }
            _ => vec![path.clone()],
        }
    }

    /// The look-ups that it consists of, as far as they can be told before.
    pub(super) fn look_ups(&self) -> Vec<ReadRequest> {
        let (path, args) = (self.db.path(), &self.args);
        match self.spec.command {
            RespCommand::HMGet | RespCommand::HExists | RespCommand::HStrLen => {
                let Some(path) = self.hash() else { return Vec::new() };
                let get = |at| ReadRequest::Get { path: path.clone(), key: self.key(at) };
                (2..args.len()).map(get).collect()
            }
            _ => {
                let positions = self.spec.keys.positions(args.len());
                positions.map(|at| ReadRequest::Get { path: path.clone(), key: self.key(at) }).collect()
            }
        }
    }

    /// The bucket that the hash is which its first argument names, if that is a path.
    fn hash(&self) -> Option<Path> {
        Path::from_names(self.db.path().names().chain([stored(self.args.word(1))])).ok()
    }

    /// The database that it is in, and those that these words name.
    fn with_databases(&self, words: impl Iterator<Item = usize>) -> Vec<Path> {
        let others = words.filter_map(|at| number::parse(self.args.word(at))).filter_map(Database::new);
        std::iter::once(self.db).chain(others).map(|db| db.path().clone()).collect()
    }
}

impl RespWork {
    /// How it is done.
    pub(crate) fn kind(&self) -> Kind {
        match &self.what {
            What::One(call) => call.kind(),
            What::Exec(transaction) if !transaction.changes => Kind::Walk,
            What::Watch(..) | What::Exec(_) => Kind::Write,
        }
    }

    /// What it is counted as.
    pub(crate) const fn command(&self) -> RespCommand {
        match &self.what {
            What::One(call) | What::Watch(call, _) => call.spec.command,
            What::Exec(_) => RespCommand::Exec,
        }
    }

    /// The bucket and the key that a single command looks up first, as far as they can be told before.
    pub(crate) fn first_place(&self) -> Option<(&Path, &[u8])> {
        match &self.what {
            What::One(call) if !matches!(call.spec.group, Group::Hash) => Some((call.db.path(), call.args.get(1)?)),
            _ => None,
        }
    }

    /// The commands that it is made of.
    pub(crate) fn calls(&self) -> &[Call] {
        match &self.what {
            What::One(call) | What::Watch(call, _) => std::slice::from_ref(call),
            What::Exec(transaction) => &transaction.calls,
        }
    }

    /// The same, keeping no buffer that it was read into.
    pub(crate) fn detached(self) -> Self {
        let detached = |call: Call| Call { args: call.args.detached(), ..call };
        let what = match self.what {
            What::One(call) => What::One(detached(call)),
            What::Watch(call, watching) => What::Watch(detached(call), watching),
            // What was queued was copied then.
            exec @ What::Exec(_) => exec,
        };
        Self { what, ..self }
    }

    /// How many bytes it keeps in memory.
    pub(crate) fn kept(&self) -> usize {
        self.calls().iter().map(|call| size_of::<Call>() + call.args.kept()).sum()
    }

    /// The look-ups that it consists of, as far as they can be told before.
    pub(crate) fn look_ups(&self) -> Vec<ReadRequest> {
        if let What::One(call) = &self.what { call.look_ups() } else { Vec::new() }
    }
}

/// What was done, with its reply as it will be sent, once it is committed.
#[derive(Debug)]
pub(crate) struct RespDone {
    reply: Bytes,
    lease: Option<Lease>,
    /// The memory of values that were made, until they are committed.
    made: Option<Lease>,
    changed: bool,
    failed: Option<ErrorCode>,
    /// Where in the reply the connection's own answers belong.
    gaps: Vec<Gap>,
    version: Version,
}

impl RespDone {
    pub(in crate::commands) const fn is_change(&self) -> bool {
        self.changed
    }

    /// How many bytes the values have that were made.
    pub(in crate::commands) fn made(&self) -> usize {
        self.made.as_ref().map_or(0, Lease::bytes)
    }

    pub(in crate::commands) fn reply(self) -> Outcome {
        let Self { reply, lease, failed, gaps, version, .. } = self;
        let gaps = if gaps.is_empty() { None } else { Some(Box::new(Gaps { version, gaps })) };
        Outcome { reply: Reply::Value(reply), lease, failed, gaps }
    }
}

/// A place in a reply, and what is to be answered there by the connection, or by the server.
pub(crate) type Gap = (usize, Call);

/// The answers that a reply waits for, from its beginning on.
#[derive(Debug)]
pub(crate) struct Gaps {
    pub(crate) version: Version,
    pub(crate) gaps: Vec<Gap>,
}

/// Does it within the writer's transaction, or nothing of it.
pub(in crate::commands) fn apply(
    timed: &mut Timed<'_>,
    work: &RespWork,
    room: &ReplyRoom,
    watched: &WatchedKeys,
) -> RespDone {
    let (version, mut gaps) = (work.version, Vec::new());
    if let What::One(call) = &work.what
        && set::set_alone(timed, watched, call)
    {
        let reply = Bytes::from_static(b"+OK\r\n");
        return RespDone { reply, lease: None, made: None, changed: true, failed: None, gaps, version };
    }
    let (mut out, mut lease, mut changed, mut made) = (BytesMut::new(), None, false, None);
    let done = timed.undoably(|timed| {
        let mut writer = Writer::new(&mut out, work.version, room.max_frame());
        let mut doing = Doing { timed, watched, room, gaps: &mut gaps, changed: false, made: None };
        match &work.what {
            What::One(call) => doing.one(call, &mut writer)?,
            What::Watch(call, watching) => doing.watch(call, watching, &mut writer)?,
            What::Exec(transaction) => doing.exec(transaction, &mut writer)?,
        }
        (changed, made) = (doing.changed, doing.made.take());
        if !writer.fits() {
            return Err(too_large(room.max_frame()));
        }
        if writer.len() > SHORT {
            let taken = room.try_take(writer.len());
            lease = Some(taken.ok_or_else(|| Failure::from(room.no_memory("the reply")))?);
        }
        Ok(())
    });
    let Err(failure) = done else {
        return RespDone { reply: out.freeze(), lease, made, changed, failed: None, gaps, version };
    };
    out.clear();
    write_error_line(&failure.line, &mut out);
    let failed = Some(failure.code);
    RespDone { reply: out.freeze(), lease: None, made: None, changed: false, failed, gaps: Vec::new(), version }
}

pub(crate) fn too_large(limit: usize) -> Failure {
    Failure::new(ErrorCode::FrameTooLarge, format!("ERR the reply is larger than {limit} bytes (--max-frame)"))
}

/// What the writer is doing.
struct Doing<'a, 't> {
    timed: &'a mut Timed<'t>,
    watched: &'a WatchedKeys,
    room: &'a ReplyRoom,
    gaps: &'a mut Vec<Gap>,
    changed: bool,
    made: Option<Lease>,
}

impl Doing<'_, '_> {
    fn one(&mut self, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
        match call.kind() {
            Kind::Read => read::answer(&self.timed.view(), call, self.room.scans(), out),
            Kind::Walk => walk::answer(&self.timed.view(), call, out),
            Kind::Write => {
                let mut keyspace = KeyspaceMut::of(self.timed, self.watched, call.db).with_room(self.room);
                let done = write::apply(&mut keyspace, call, out);
                self.changed |= keyspace.has_changed();
                match (&mut self.made, keyspace.take_made()) {
                    (Some(made), Some(more)) => made.add(more),
                    (made, more) => *made = made.take().or(more),
                }
                done
            }
            Kind::Session => {
                if !write::in_exec(call, self.timed.now(), out)? {
                    self.gaps.push((out.len(), call.clone()));
                }
                Ok(())
            }
        }
    }

    fn watch(&mut self, call: &Call, watching: &Arc<Watching>, out: &mut Writer<'_>) -> Result<(), Failure> {
        let Self { timed, watched, room, .. } = self;
        let watch = |key, is_there| watched.watch(watching, call.db, key, is_there);
        watching.begin(call, &timed.view(), room, watch)?;
        out.ok();
        Ok(())
    }

    /// What a command is refused with is its own reply; the others are done all the same. Only where the engine fails,
    /// nothing is.
    fn exec(&mut self, transaction: &Transaction, out: &mut Writer<'_>) -> Result<(), Failure> {
        let Transaction { calls, watching, .. } = transaction;
        if watching.as_deref().map_or(Ok(false), |watching| watching.has_changed(&self.timed.view()))? {
            out.null_array();
            return Ok(());
        }
        out.array(calls.len());
        let begun = Instant::now();
        for call in calls {
            if !out.fits() {
                return Err(too_large(self.room.max_frame()));
            }
            if begun.elapsed() > LONGEST {
                let line = "ERR the transaction takes too long, and all writes wait for it: nothing of it was done";
                return Err(Failure::new(ErrorCode::TxnTooLarge, line));
            }
            let (written, changed) = (out.len(), self.changed);
            let Self { timed, watched, room, made, gaps, .. } = self;
            let mut has_changed = changed;
            let done = timed.attempt(|timed| {
                let mut doing = Doing { timed, watched, room, gaps, changed, made: made.take() };
                let done = doing.one(call, out);
                (has_changed, *made) = (doing.changed, doing.made);
                done
            });
            match done {
                Ok(()) => self.changed = has_changed,
                Err(failure) if ends_all(failure.code) => return Err(failure),
                Err(failure) => {
                    out.rewind(written);
                    out.error(&failure.line);
                }
            }
        }
        Ok(())
    }
}

/// Whether what this says holds for the transaction as a whole.
const fn ends_all(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::StorageFailed | ErrorCode::NoSpace | ErrorCode::Overloaded)
}
