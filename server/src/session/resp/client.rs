//! CLIENT: who is connected, and the end of connections.

use std::fmt::Write as _;
use std::sync::Arc;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Version, Writer};
use bytes::Bytes;
use tracing::info;

use super::connection::Client;
use super::refusals::{failed, integer, not_here, shown};
use crate::clients::{Client as Listed, Clients};
use crate::commands::{Call, Failure};
use crate::peer::Peer;

/// The longest that a client may call itself, and its library, in bytes: each connection keeps them.
const LONGEST: usize = 256;

/// Which connections CLIENT KILL ends.
#[derive(Debug, Default)]
struct Wanted<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    /// Of a kind that there is none of.
    none: bool,
    spares_me: bool,
}

/// Answers CLIENT.
pub(super) fn say(me: &mut Client, call: &Call, all: &Clients, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.subcommand(args.word(1)).map_or("", |sub| sub.name) {
        "GETNAME" => out.maybe((!me.name.is_empty()).then_some(&me.name)),
        "SETNAME" => {
            check_name(args.word(2))?;
            me.calls_itself(args.word(2));
            out.ok();
        }
        "SETINFO" => {
            set_library(me, args.word(2), args.word(3))?;
            out.ok();
        }
        "ID" => out.integer(i64::try_from(me.listed.id).unwrap_or(i64::MAX)),
        "INFO" => {
            let mut line = String::new();
            add_line(me, &me.listed, "client|info", &mut line);
            out.verbatim(&line);
        }
        "LIST" => list(me, call, all, out)?,
        "KILL" => kill(me, call, all, out)?,
        "NO-EVICT" | "NO-TOUCH" => match args.word(2).to_ascii_lowercase().as_slice() {
            b"on" | b"off" => out.ok(),
            _ => return Err(Failure::syntax()),
        },
        "UNBLOCK" => unblock(call, out)?,
        "GETREDIR" => out.integer(-1),
        "TRACKINGINFO" => tracking_info(out),
        // Nothing is tracked, so that it is off already.
        "TRACKING" if args.len() == 3 && args.word(2).eq_ignore_ascii_case(b"off") => out.ok(),
        "CACHING" => {
            let line = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT \
                        mode enabled";
            return Err(failed(line));
        }
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

/// No command waits for others, so that no connection is to be woken.
fn unblock(call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let reason = call.args.get(3).map(<[u8]>::to_ascii_lowercase);
    match reason.as_deref() {
        _ if call.args.len() > 4 => return Err(Failure::syntax()),
        None | Some(b"timeout" | b"error") => {}
        Some(_) => return Err(failed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    }
    integer(call.args.word(2))?;
    out.integer(0);
    Ok(())
}

fn tracking_info(out: &mut Writer<'_>) {
    out.map(3);
    out.bulk(b"flags");
    out.set(1);
    out.bulk(b"off");
    out.bulk(b"redirect");
    out.integer(-1);
    out.bulk(b"prefixes");
    out.array(0);
}

/// A name is one word, as it stands among others in a line.
pub(super) fn check_name(name: &[u8]) -> Result<(), Failure> {
    if name.len() > LONGEST {
        return Err(failed("ERR Client names have at most 256 bytes"));
    }
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(failed("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn set_library(me: &mut Client, attribute: &[u8], value: &[u8]) -> Result<(), Failure> {
    let (at, name) = match attribute.to_ascii_lowercase().as_slice() {
        b"lib-name" => (0, "lib-name"),
        b"lib-ver" => (1, "lib-ver"),
        _ => {
            let line = format!("ERR Unrecognized option '{}'", shown(attribute));
            return Err(Failure::new(ErrorCode::Malformed, line));
        }
    };
    if value.len() > LONGEST || !value.iter().all(u8::is_ascii_graphic) {
        let line = format!("ERR {name} cannot contain spaces, newlines or special characters.");
        return Err(Failure::new(ErrorCode::Malformed, line));
    }
    me.library[at] = Bytes::copy_from_slice(value);
    Ok(())
}

/// Whether there can be connections of a kind: those that are no client's, and those that listen, are not there.
fn has_kind(kind: &[u8]) -> Result<bool, Failure> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(false),
        _ => Err(Failure::new(ErrorCode::Malformed, format!("ERR Unknown client type '{}'", shown(kind)))),
    }
}

fn list(me: &Client, call: &Call, all: &Clients, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    let mut some = all.all();
    match (args.word(2).to_ascii_lowercase().as_slice(), args.len()) {
        (_, 2) => {}
        (b"type", 4) => {
            if !has_kind(args.word(3))? {
                some.clear();
            }
        }
        (b"id", 4..) => {
            let ids: Result<Vec<_>, _> = args.from(3).map(id).collect();
            let ids = ids.map_err(|_| failed("ERR Invalid client ID"))?;
            some.retain(|client| ids.contains(&client.id));
        }
        _ => return Err(Failure::syntax()),
    }
    let mut lines = String::new();
    for client in &some {
        add_line(me, client, "client|list", &mut lines);
    }
    out.verbatim(&lines);
    Ok(())
}

fn id(word: &[u8]) -> Result<u64, Failure> {
    let id = integer(word).ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    id.ok_or_else(|| failed("ERR client-id should be greater than 0"))
}

/// Where a connection comes from, as Redis writes it.
fn address(client: &Listed) -> String {
    match client.peer {
        Peer::Tcp(address) => address.to_string(),
        Peer::Unix(_) => "unix:0".to_owned(),
    }
}

/// The names by which programs know what is told are Redis'. What is not known of a connection is left out.
fn add_line(me: &Client, client: &Arc<Listed>, now: &str, lines: &mut String) {
    let (said, doing) = (client.said(), client.doing());
    let word = |text: Option<Box<str>>| text.map(|text| text.replace(' ', "_")).unwrap_or_default();
    let is_me = client.id == me.listed.id;
    let command = if is_me { now.to_owned() } else { doing.command.to_lowercase().replace(' ', "|") };
    let user = said.token.map_or_else(|| "default".to_owned(), |token| token.replace(' ', "_"));
    // Writing to a string cannot fail.
    let _ = write!(
        lines,
        "id={} addr={} name={} age={} idle={} flags=N",
        client.id,
        address(client),
        word(said.name),
        doing.age.as_secs(),
        doing.idle.as_secs()
    );
    if is_me {
        let _ = write!(lines, " db={}", me.db.number());
    }
    let _ = write!(lines, " sub=0 psub=0 ssub=0 multi=-1 cmd={command} user={user} redir=-1");
    if is_me {
        let version = if me.version == Version::Three { 3 } else { 2 };
        let [name, number] = me.library.each_ref().map(|word| String::from_utf8_lossy(word));
        let _ = write!(lines, " resp={version} lib-name={name} lib-ver={number}");
    }
    lines.push('\n');
}

impl<'a> Wanted<'a> {
    fn parse(call: &'a Call) -> Result<Self, Failure> {
        let mut wanted = Self { spares_me: true, ..Self::default() };
        let mut words = call.args.from(2);
        while let Some(filter) = words.next() {
            let value = words.next().ok_or_else(Failure::syntax)?;
            match filter.to_ascii_lowercase().as_slice() {
                b"id" => wanted.id = Some(id(value)?),
                b"addr" => wanted.address = Some(value),
                b"user" => wanted.user = Some(value),
                b"type" => wanted.none |= !has_kind(value)?,
                b"skipme" => {
                    wanted.spares_me = match value.to_ascii_lowercase().as_slice() {
                        b"yes" => true,
                        b"no" => false,
                        _ => return Err(Failure::syntax()),
                    };
                }
                b"laddr" => return Err(not_here("CLIENT", "KILL LADDR")),
                _ => return Err(Failure::syntax()),
            }
        }
        Ok(wanted)
    }

    fn is_one(&self, client: &Listed, me: &Listed) -> bool {
        let is_user = |user| match client.said().token {
            Some(token) => token.as_bytes() == user,
            None => user == b"default",
        };
        let is_spared = self.none || self.spares_me && client.id == me.id;
        !is_spared
            && self.id.is_none_or(|id| client.id == id)
            && self.address.is_none_or(|from| address(client).as_bytes() == from)
            && self.user.is_none_or(is_user)
    }
}

fn kill(me: &Client, call: &Call, all: &Clients, out: &mut Writer<'_>) -> Result<(), Failure> {
    // The old form names one by its address, and spares nobody.
    let old = call.args.len() == 3;
    let wanted = if old { Wanted { address: call.args.get(2), ..Wanted::default() } } else { Wanted::parse(call)? };
    let mut ended = 0;
    for client in all.all() {
        if wanted.is_one(&client, &me.listed) && all.kill(client.id) {
            info!(client = client.id, by = %me.listed.peer, "a connection is ended");
            ended += 1;
        }
    }
    match (old, ended) {
        (true, 0) => return Err(Failure::new(ErrorCode::KeyNotFound, "ERR No such client")),
        (true, _) => out.ok(),
        (false, ended) => out.count(ended),
    }
    Ok(())
}
