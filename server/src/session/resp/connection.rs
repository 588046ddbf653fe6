//! Commands that concern the connection.

use boltkv_protocol::resp::{RespCommand, Version, Writer};
use boltkv_protocol::{ErrorCode, OperatorRequest};
use bytes::Bytes;

use super::call::{Operation, Tag};
use crate::commands::{Call, Database, Failure};

/// What a client has said of itself, and how it wants to be answered.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) version: Version,
    pub(super) db: Database,
    pub(super) name: Bytes,
    /// Whether the server asks who its clients are.
    pub(super) asks: bool,
}

impl Client {
    pub(super) fn new(asks: bool) -> Self {
        Self { version: Version::Two, db: Database::default(), name: Bytes::new(), asks }
    }

    /// The version in which a command is answered: HELLO answers in the one that it asks for.
    pub(super) fn version_after(&self, call: &Call) -> Version {
        match (call.spec.command, call.args.word(1)) {
            (RespCommand::Hello, b"2") | (RespCommand::Reset, _) => Version::Two,
            (RespCommand::Hello, b"3") => Version::Three,
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
                self.db = database(call.args.word(1))?;
                out.ok();
            }
            RespCommand::Hello => self.hello(call, out),
            _ => out.ok(),
        }
        Ok(())
    }

    fn hello(&mut self, call: &Call, out: &mut Writer<'_>) {
        self.version = self.version_after(call);
        if let Some(name) = name_in(call) {
            self.name = Bytes::copy_from_slice(name);
        }
        out.map(5);
        for (name, value) in [("server", "redis"), ("version", super::server::REDIS_VERSION)] {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"proto");
        out.integer(if self.version == Version::Three { 3 } else { 2 });
        out.bulk(b"mode");
        out.bulk(b"standalone");
        out.bulk(b"role");
        out.bulk(b"master");
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
            | RespCommand::Client
    )
}

/// The database that a word names.
pub(super) fn database(word: &[u8]) -> Result<Database, Failure> {
    let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    let number = number.ok_or_else(|| Failure::new(ErrorCode::Malformed, "ERR invalid DB index"))?;
    Database::new(number).ok_or_else(|| Failure::new(ErrorCode::Malformed, "ERR DB index is out of range"))
}

/// The token in AUTH or HELLO, if there is one.
pub(super) fn token_of(_call: &Call, _client: &Client) -> Result<Option<Bytes>, Failure> {
    Ok(None)
}

/// What the client wants to be called, where HELLO says so.
pub(super) fn name_in(_call: &Call) -> Option<&[u8]> {
    None
}

/// What CLIENT asks an operator's request for, where it does.
pub(super) fn operation(call: &Call) -> Result<Option<Operation>, Failure> {
    let list = call.args.word(1).eq_ignore_ascii_case(b"list");
    Ok(list.then_some((OperatorRequest::ListClients { after: 0 }, Tag::Clients)))
}

/// Connections, a line each.
pub(super) fn write_clients<B: AsRef<[u8]>>(rows: &[Vec<(B, B)>], out: &mut Writer<'_>) {
    let mut lines = String::new();
    for row in rows {
        let fields: Vec<_> = row
            .iter()
            .map(|(name, value)| format!("{}={}", name.as_ref().escape_ascii(), value.as_ref().escape_ascii()))
            .collect();
        lines.push_str(&fields.join(" "));
        lines.push('\n');
    }
    out.verbatim(&lines);
}
