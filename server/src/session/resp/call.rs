//! What becomes of each request of the Redis dialect.

use std::sync::Arc;

use boltkv_protocol::resp::{self, Args, Kind, RespCommand, Version, Writer, write_error_line};
use boltkv_protocol::{ErrorCode, ErrorReply, ReadRequest, Reply, Token};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::connection::{self, Client};
use super::multi::{Deciding, RespMulti, was_done};
use super::own::{Own, Tag};
use super::refusals::{auth_comes_first, failed, http, no_subcommand, protocol_error, unknown};
use super::{client, server};
use crate::clients::Client as Listed;
use crate::commands::{Asker, Call, Database, Failure, Reader, RespWork, ScanRun, Transaction, Watching, What};
use crate::counters::Command;
use crate::session::codec::{Asked, Asking, Codec, Due, MOST_OF_STRANGER, Step};
use crate::session::input::Input;
use crate::session::multi::QueueRoom;
use crate::shared::Shared;

/// What a connection of the Redis dialect has to remember.
#[derive(Debug)]
pub(crate) struct RespCodec {
    requests: resp::RespCodec,
    /// What the client has said of itself, and how it wants to be answered.
    pub(super) client: Client,
    is_stranger: bool,
    multi: Option<RespMulti>,
    watching: Option<Arc<Watching>>,
    /// An EXEC that decides which database the client is in: nothing behind it is taken before.
    deciding: Option<Deciding>,
    room: QueueRoom,
    last_id: u32,
}

type RespAsked = Asked<Tag, Own>;

impl RespCodec {
    pub(crate) fn new(server: &Shared, listed: Arc<Listed>) -> Self {
        let Shared { limits, timeouts, memory, access, .. } = server;
        let room = QueueRoom { memory: Arc::clone(memory), max_frame: limits.max_frame, patience: timeouts.request };
        let mut requests = resp::RespCodec::new(limits.max_frame);
        requests.set_stranger(access.asks());
        Self {
            requests,
            client: Client::new(access.asks(), listed),
            is_stranger: access.asks(),
            multi: None,
            watching: None,
            deciding: None,
            room,
            last_id: 0,
        }
    }

    fn due(&mut self, tag: Tag) -> Due<Tag> {
        self.last_id = self.last_id.wrapping_add(1);
        Due::new(self.last_id, tag)
    }

    fn asked(&mut self, args: Args, arrived: Instant) -> RespAsked {
        let Some(name) = args.get(0) else { return Asked::Nothing };
        let spec = resp::find(name);
        if self.is_stranger && !spec.is_some_and(|spec| spec.flags.has(resp::Flags::NO_AUTH)) {
            return if is_http(name) {
                Asked::Close(Some(Own::Failed(http())))
            } else {
                self.refused(auth_comes_first())
            };
        }
        let Some(spec) = spec else {
            return if is_http(name) { Asked::Close(Some(Own::Failed(http()))) } else { self.refused(unknown(&args)) };
        };
        if !spec.takes(args.len()) {
            return self.refused(Failure::wrong_number_of_arguments(spec.name));
        }
        if let Err(why) = spec.subcommand_of(&args) {
            return self.refused(no_subcommand(why, spec, &args));
        }
        let is_scan = matches!(spec.command, RespCommand::Scan | RespCommand::HScan);
        let call = Call { spec, args, db: self.client.db, owner: is_scan.then(|| self.client.owner()) };
        if self.multi.is_some() && !is_at_once(spec.command) {
            return self.queue(call, arrived);
        }
        self.call(call)
    }

    /// What is only answered with an error; after MULTI, nothing will be done.
    fn refused(&mut self, failure: Failure) -> RespAsked {
        if let Some(multi) = &mut self.multi {
            multi.refuse();
        }
        Asked::Own(Own::Failed(failure))
    }

    fn queue(&mut self, call: Call, arrived: Instant) -> RespAsked {
        if call.spec.command == RespCommand::Select
            && let Ok(db) = Database::named(call.args.word(1))
        {
            // It is for what follows, up to EXEC.
            self.client.db = db;
        }
        let Some(multi) = &mut self.multi else { return Asked::Nothing };
        match multi.queue(call, arrived, &self.room) {
            Ok(()) => Asked::Own(Own::Queued),
            Err(error) => self.refused(error.into()),
        }
    }

    fn call(&mut self, call: Call) -> RespAsked {
        match (call.kind(), call.spec.command) {
            (_, RespCommand::Get) => {
                let request = ReadRequest::Get { path: call.db.path().clone(), key: call.key(1) };
                Asked::Read(self.due(Tag::Value), request)
            }
            (_, RespCommand::Watch) if self.multi.is_some() => {
                Asked::Own(Own::Failed(failed("ERR WATCH inside MULTI is not allowed")))
            }
            (_, RespCommand::Watch) => {
                let watching = Arc::clone(self.watching.get_or_insert_default());
                self.work(What::Watch(call, watching))
            }
            (Kind::Read | Kind::Walk | Kind::Write, _) => self.work(What::One(call)),
            (Kind::Session, RespCommand::Multi) if self.multi.is_some() => {
                Asked::Own(Own::Failed(failed("ERR MULTI calls can not be nested")))
            }
            (Kind::Session, RespCommand::Exec) => self.exec(),
            (Kind::Session, RespCommand::Quit) => Asked::Close(Some(Own::Call(call))),
            (Kind::Session, RespCommand::Auth | RespCommand::Hello) => self.introduction(call),
            (Kind::Session, _) if has_long_reply(&call) => self.work(What::One(call)),
            (Kind::Session, _) => Asked::Own(Own::Call(call)),
        }
    }

    fn work(&mut self, what: What) -> RespAsked {
        let version = self.client.version;
        Asked::Resp(self.due(Tag::Written), Box::new(RespWork { what, version }))
    }

    fn exec(&mut self) -> RespAsked {
        let Some(multi) = self.multi.take() else {
            return Asked::Own(Own::Failed(failed("ERR EXEC without MULTI")));
        };
        let watching = self.watching.take();
        let selected = std::mem::replace(&mut self.client.db, multi.db);
        if multi.refused {
            let line = "EXECABORT Transaction discarded because of previous errors.";
            return Asked::Own(Own::Failed(failed(line)));
        }
        let exec = self.work(What::Exec(Transaction::new(multi.into_calls(), watching)));
        self.deciding = Deciding::between(self.last_id, selected, self.client.db);
        exec
    }

    /// Who the client is, where it says so.
    fn introduction(&mut self, call: Call) -> RespAsked {
        match connection::token_of(&call, &self.client, self.is_stranger) {
            Ok(None) => Asked::Own(Own::Call(call)),
            Ok(Some(token)) => {
                let token = Token::from(Bytes::copy_from_slice(token));
                Asked::Introduce(Own::Call(call), token)
            }
            Err(failure) => self.refused(failure),
        }
    }

    /// Answers a command that concerns the connection or the server.
    fn say(&mut self, call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
        match call.spec.command {
            RespCommand::Multi => {
                self.multi = Some(RespMulti::new(self.client.db));
                out.ok();
            }
            RespCommand::Discard => {
                let multi = self.multi.take().ok_or_else(|| failed("ERR DISCARD without MULTI"))?;
                self.watching = None;
                self.client.db = multi.db;
                out.ok();
            }
            RespCommand::Unwatch => {
                self.watching = None;
                out.ok();
            }
            RespCommand::Reset => {
                (self.multi, self.watching) = (None, None);
                self.client.reset();
                out.simple("RESET");
            }
            _ if connection::concerns(call.spec.command) => return self.client.say(call, out),
            _ => return server::say(call, server, out),
        }
        Ok(())
    }
}

impl Codec for RespCodec {
    type Tag = Tag;
    type Own = Own;

    const NAME: &'static str = "resp";
    const IN_ORDER: bool = true;
    const MAY_TRY_AGAIN: bool = true;
    const MOST_OF_ROWS: usize = usize::MAX;
    /// Who does not read holds the replies up.
    const INITIAL_CREDIT: i64 = i64::MAX;

    fn asker(&self) -> Asker {
        Asker::default()
    }

    fn decode(&mut self, input: &mut Input, arrived: Instant, _ended: bool) -> Option<RespAsked> {
        match self.requests.decode(&mut input.bytes) {
            Ok(Some(args)) => {
                let args = args.held(|bytes| input.settle(bytes));
                Some(self.asked(args, arrived))
            }
            Ok(None) if self.is_stranger && input.bytes.len() > MOST_OF_STRANGER => {
                Some(Asked::Close(Some(Own::Failed(auth_comes_first()))))
            }
            Ok(None) => None,
            Err(error) => Some(Asked::Close(Some(Own::Failed(protocol_error(&error))))),
        }
    }

    fn item_len(&self, input: &[u8]) -> Option<usize> {
        match self.requests.item_len(input) {
            None if self.multi.as_ref().is_some_and(RespMulti::is_leased) => Some(1),
            len => len,
        }
    }

    fn least_item_len(&self, input: &[u8]) -> usize {
        self.requests.item_len(input).unwrap_or(0)
    }

    fn reply<B: AsRef<[u8]>>(&mut self, due: Due<Tag>, reply: &Reply<B>, out: &mut BytesMut) {
        self.decided(due.id, was_done(reply));
        let mut writer = Writer::new(out, self.client.version, usize::MAX);
        match (due.tag, reply) {
            (Tag::Written, Reply::Value(bytes)) => writer.put(bytes.as_ref()),
            (Tag::Value, Reply::Value(value)) => writer.bulk(value.as_ref()),
            (Tag::Value, Reply::Error(error)) if is_missing(error.code) => writer.null(),
            (_, Reply::Error(error)) => write_error_line(&Failure::from(error.clone()).line, out),
            // What is left says that something was done.
            _ => writer.ok(),
        }
    }

    fn reply_len(&self, _due: Due<Tag>, reply: &Reply<&[u8]>) -> usize {
        const BESIDE: usize = 32;
        match reply {
            Reply::Value(value) => value.len() + BESIDE,
            _ => 0,
        }
    }

    fn step(&self, _due: Due<Tag>, _run: &mut ScanRun, _: usize, _: &mut BytesMut) -> Result<Step, ErrorReply> {
        // Nothing that this dialect asks for is a scan of the others.
        Ok(Step::Ended)
    }

    fn answer(
        &mut self,
        own: Own,
        server: &Shared,
        _reader: &mut Reader<'_>,
        out: &mut BytesMut,
    ) -> Result<(), ErrorCode> {
        let from = out.len();
        let done = match own {
            Own::Queued => {
                Writer::new(out, Version::Two, usize::MAX).simple("QUEUED");
                Ok(())
            }
            Own::Failed(failure) => Err(failure),
            Own::Call(call) => {
                let mut written = BytesMut::new();
                let mut writer = Writer::new(&mut written, self.client.version_after(&call), usize::MAX);
                let done = self.say(&call, server, &mut writer);
                out.extend_from_slice(&written);
                done
            }
        };
        done.map_err(|failure| {
            out.truncate(from);
            write_error_line(&failure.line, out);
            failure.code
        })
    }

    fn tell(&mut self, call: &Call, asking: &Asking<'_>, out: &mut Writer<'_>) -> Result<(), Failure> {
        match call.spec.command {
            _ if is_help(call) => server::help(call.spec, out),
            RespCommand::Client => return client::say(&mut self.client, call, &asking.server.clients, out),
            command if connection::concerns(command) => return self.client.say(call, out),
            _ => return server::tell(call, asking, out),
        }
        Ok(())
    }

    fn decided(&mut self, id: u32, is_done: bool) {
        if let Some(deciding) = self.deciding.take_if(|deciding| deciding.is_of(id)) {
            self.client.db = deciding.database(is_done);
        }
    }

    fn command(own: &Own) -> Option<Command> {
        match own {
            Own::Call(call) => Some(Command::of_resp(call.spec.command)),
            // What is queued is counted when it is done.
            Own::Queued => None,
            Own::Failed(_) => Some(Command::OTHER),
        }
    }

    fn refuse(&self, _own: &Own, error: ErrorReply, out: &mut BytesMut) {
        write_error_line(&Failure::from(error).line, out);
    }

    fn farewell(&self, error: ErrorReply) -> Own {
        Own::Failed(error.into())
    }

    fn instead(&self, _own: Own, error: ErrorReply) -> Own {
        Own::Failed(Failure::new(error.code, connection::WRONG_PASS))
    }

    fn introduced(&mut self) {
        self.is_stranger = false;
        self.requests.set_stranger(false);
    }

    fn not_introduced(&self) -> Option<ErrorReply> {
        self.is_stranger.then(|| ErrorReply::new(ErrorCode::Unauthenticated, "no AUTH came in time"))
    }

    fn waits(&self) -> bool {
        self.deciding.is_some()
    }

    fn mute(&mut self) {
        (self.multi, self.watching) = (None, None);
    }
}

/// What is done although MULTI was said.
const fn is_at_once(command: RespCommand) -> bool {
    matches!(
        command,
        RespCommand::Exec
            | RespCommand::Discard
            | RespCommand::Multi
            | RespCommand::Watch
            | RespCommand::Quit
            | RespCommand::Reset
            | RespCommand::Auth
            | RespCommand::Hello
    )
}

const fn is_missing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::KeyNotFound | ErrorCode::BucketNotFound)
}

/// What is answered as reads are, once there is room.
fn has_long_reply(call: &Call) -> bool {
    match call.spec.command {
        RespCommand::Ping => call.args.len() > 1,
        RespCommand::Acl
        | RespCommand::Client
        | RespCommand::Command
        | RespCommand::Config
        | RespCommand::Echo
        | RespCommand::Info
        | RespCommand::Memory
        | RespCommand::Module
        | RespCommand::Object
        | RespCommand::SlowLog => true,
        _ => false,
    }
}

fn is_help(call: &Call) -> bool {
    call.spec.subcommand(call.args.word(1)).is_some_and(|sub| sub.name == "HELP")
}

/// A page in a browser can be made to send these, to any port: nothing of what it sends is done.
fn is_http(name: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"].iter().any(|word| word.eq_ignore_ascii_case(name))
}
