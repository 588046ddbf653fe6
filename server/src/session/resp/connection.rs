//! Commands that concern the connection: who is asking, for which database, and how the answers are to look.

use std::sync::Arc;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{RespCommand, Version, Writer};
use bytes::Bytes;

use super::client;
use super::refusals::{auth_comes_first, failed, integer, shown};
use super::server::REDIS_VERSION;
use crate::clients::Client as Listed;
use crate::commands::{Call, Database, Failure, Owner};

/// The user that everybody is who says no other name.
pub(super) const USUAL_USER: &[u8] = b"default";

/// What a client has said of itself, and how it wants to be answered.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) version: Version,
    pub(super) db: Database,
    pub(super) name: Bytes,
    /// Which library it uses, and that one's version.
    pub(super) library: [Bytes; 2],
    /// Whether the server asks who its clients are.
    pub(super) asks: bool,
    /// What others see of it.
    pub(super) listed: Arc<Listed>,
}

/// What HELLO asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hello<'a> {
    version: Option<Version>,
    user: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

impl Client {
    pub(super) fn new(asks: bool, listed: Arc<Listed>) -> Self {
        let (version, db, name) = (Version::Two, Database::default(), Bytes::new());
        Self { version, db, name, library: [Bytes::new(), Bytes::new()], asks, listed }
    }

    /// As it was when it connected, but for who it is.
    pub(super) fn reset(&mut self) {
        (self.version, self.db) = (Version::Two, Database::default());
        self.calls_itself(b"");
    }

    pub(super) fn calls_itself(&mut self, name: &[u8]) {
        self.name = Bytes::copy_from_slice(name);
        self.listed.calls_itself(name);
    }

    /// Whose its scans are.
    pub(super) fn owner(&self) -> Owner {
        match self.listed.said().token {
            Some(token) => Owner::Holder(token),
            None => Owner::From(self.listed.peer.origin()),
        }
    }

    /// The version in which a command is answered: HELLO answers in the one that it asks for.
    pub(super) fn version_after(&self, call: &Call) -> Version {
        match call.spec.command {
            RespCommand::Reset => Version::Two,
            RespCommand::Hello => Hello::parse(call).ok().and_then(|hello| hello.version).unwrap_or(self.version),
            _ => self.version,
        }
    }

    pub(super) fn say(&mut self, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
        match call.spec.command {
            RespCommand::Ping if call.args.len() > 2 => {
                return Err(Failure::wrong_number_of_arguments(call.spec.name));
            }
            RespCommand::Ping if call.args.len() == 2 => out.bulk(call.args.word(1)),
            RespCommand::Ping => out.simple("PONG"),
            RespCommand::Echo => out.bulk(call.args.word(1)),
            RespCommand::Select => {
                self.db = Database::named(call.args.word(1))?;
                out.ok();
            }
            RespCommand::Hello => self.hello(call, out)?,
            _ => out.ok(),
        }
        Ok(())
    }

    fn hello(&mut self, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
        let hello = Hello::parse(call)?;
        if let Some(version) = hello.version {
            self.version = version;
        }
        if let Some(name) = hello.name {
            self.calls_itself(name);
        }
        out.map(7);
        for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"proto");
        out.integer(if self.version == Version::Three { 3 } else { 2 });
        out.bulk(b"id");
        out.integer(i64::try_from(self.listed.id).unwrap_or(i64::MAX));
        for (name, value) in [("mode", "standalone"), ("role", "master")] {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"modules");
        out.array(0);
        Ok(())
    }
}

impl<'a> Hello<'a> {
    fn parse(call: &'a Call) -> Result<Self, Failure> {
        let mut hello = Self::default();
        let mut words = call.args.from(1);
        if let Some(version) = words.next() {
            let why = "ERR Protocol version is not an integer or out of range";
            hello.version = Some(match integer(version).map_err(|_| failed(why))? {
                2 => Version::Two,
                3 => Version::Three,
                _ => return Err(failed("NOPROTO unsupported protocol version")),
            });
        }
        while let Some(option) = words.next() {
            let left = words.len();
            if option.eq_ignore_ascii_case(b"AUTH") && left >= 2 {
                hello.user = words.next().zip(words.next());
            } else if option.eq_ignore_ascii_case(b"SETNAME") && left >= 1 {
                hello.name = words.next();
            } else {
                let line = format!("ERR Syntax error in HELLO option '{}'", shown(option));
                return Err(Failure::new(ErrorCode::Malformed, line));
            }
        }
        hello.name.map_or(Ok(()), client::check_name)?;
        Ok(hello)
    }
}

/// Whether a command concerns the connection only.
pub(super) const fn concerns(command: RespCommand) -> bool {
    matches!(
        command,
        RespCommand::Ping
            | RespCommand::Echo
            | RespCommand::Select
            | RespCommand::Hello
            | RespCommand::Auth
            | RespCommand::Quit
    )
}

/// The token in AUTH or HELLO, if there is one. Who has it is told by the token: the user's name may be any.
pub(super) fn token_of<'a>(call: &'a Call, client: &Client, is_stranger: bool) -> Result<Option<&'a [u8]>, Failure> {
    let said = if call.spec.command == RespCommand::Hello {
        match Hello::parse(call)?.user {
            None if is_stranger => return Err(hello_comes_with_a_token()),
            None => return Ok(None),
            user => user,
        }
    } else {
        match (call.args.get(1), call.args.get(2)) {
            _ if call.args.len() > 3 => return Err(Failure::syntax()),
            (Some(_), None) if !client.asks => return Err(nobody_is_asked()),
            (Some(token), None) => Some((USUAL_USER, token)),
            (user, token) => user.zip(token),
        }
    };
    match said {
        Some((_, token)) if client.asks => Ok(Some(token)),
        // Without tokens everybody is let in who is nobody else.
        Some((USUAL_USER, _)) => Ok(None),
        Some(_) => Err(Failure::new(ErrorCode::Unauthenticated, WRONG_PASS)),
        None => Err(auth_comes_first()),
    }
}

/// What is said to whom nobody knows.
pub(super) const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

fn hello_comes_with_a_token() -> Failure {
    let line = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
                same time";
    Failure::new(ErrorCode::Unauthenticated, line)
}

fn nobody_is_asked() -> Failure {
    failed(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
         configuration is correct?",
    )
}
