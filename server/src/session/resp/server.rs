//! Commands that concern the server, but for those that have files of their own.

use std::time::Duration;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{RespCommand, Spec, Writer};

use super::connection::USUAL_USER;
use super::refusals::{failed, integer, not_here};
use super::{commands, config, info};
use crate::access::Standing;
use crate::commands::{Call, Failure, write_time};
use crate::session::codec::Asking;
use crate::shared::Shared;
use crate::slow_log::Entry;

/// The version of Redis whose commands these are.
pub(super) const REDIS_VERSION: &str = "7.0.15";

/// Requests that took long, as many as are told unless the client asks for more.
const USUAL_SLOW: i64 = 10;

/// Answers what has a short reply.
pub(super) fn say(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.command {
        RespCommand::Time => write_time(server.executor.clock().now(), out),
        RespCommand::Function => match call.args.word(1).to_ascii_lowercase().as_slice() {
            // There are none, so that none are left.
            b"flush" => out.ok(),
            b"list" => out.array(0),
            _ => return Err(Failure::new(ErrorCode::Unsupported, "ERR functions are not supported")),
        },
        RespCommand::Cluster => return Err(failed("ERR This instance has cluster support disabled")),
        RespCommand::Role => role(out),
        RespCommand::LastSave => {
            out.integer(
                i64::try_from(server.stats.last_commit(server.executor.clock().now()) / 1_000).unwrap_or(i64::MAX),
            );
        }
        RespCommand::Wait => wait(call, out)?,
        _ => return Err(Failure::new(ErrorCode::Unsupported, format!("ERR {} is not supported", call.spec.name))),
    }
    Ok(())
}

/// As INFO tells it: there are no replicas.
fn role(out: &mut Writer<'_>) {
    out.array(3);
    out.bulk(b"master");
    out.integer(0);
    out.array(0);
}

/// There are no replicas to wait for.
fn wait(call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    integer(call.args.word(1))?;
    let timeout = integer(call.args.word(2)).map_err(|_| failed("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(failed("ERR timeout is negative"));
    }
    out.integer(0);
    Ok(())
}

/// Answers what may have a long reply.
pub(super) fn tell(call: &Call, asking: &Asking<'_>, out: &mut Writer<'_>) -> Result<(), Failure> {
    let server = asking.server;
    match call.spec.command {
        RespCommand::Acl => acl(call, asking.standing, out),
        RespCommand::Module => module(call, out),
        RespCommand::Command => commands::say(call, out),
        RespCommand::Config => config::say(call, server, out),
        RespCommand::Info => {
            out.verbatim(&info::text(call, asking));
            Ok(())
        }
        RespCommand::Memory => memory(call, server, out),
        RespCommand::SlowLog => slow_log(call, server, out),
        _ => say(call, server, out),
    }
}

/// The commands that a command has, a line or two each.
pub(super) fn help(spec: &Spec, out: &mut Writer<'_>) {
    let subs = spec.subcommands();
    out.array(1 + 2 * subs.clone().count());
    out.simple(&format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", spec.name));
    for sub in subs {
        out.simple(sub.name);
        out.simple(&format!("    {}.", sub.summary));
    }
}

/// Users and their rights are the server's tokens, of which only the asker's own is told.
fn acl(call: &Call, standing: &Standing, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "WHOAMI" => {
            let name = if let Standing::Holder(held) = standing { held.name().as_bytes() } else { USUAL_USER };
            out.bulk(name);
        }
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

fn module(call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "LIST" => out.array(0),
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

fn memory(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (used, limit) = (server.memory.used(), server.memory.limit());
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "DOCTOR" if used > limit / 10 * 9 => {
            out.verbatim("Requests and replies take nine tenths of the memory that they may (--memory).\n");
        }
        "DOCTOR" => out.verbatim("There is memory for requests and replies. Data is in the file, not in memory.\n"),
        "STATS" => {
            let figures = [("total.allocated", info::resident()), ("clients.normal", used as u64)];
            out.map(figures.len());
            for (name, bytes) in figures {
                out.bulk(name.as_bytes());
                out.integer(i64::try_from(bytes).unwrap_or(i64::MAX));
            }
        }
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

fn slow_log(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "RESET" => {
            server.slow_log.reset();
            out.ok();
        }
        "LEN" => out.count(server.slow_log.len()),
        "GET" if call.args.len() > 3 => return Err(Failure::wrong_number_of_arguments("slowlog|get")),
        "GET" => {
            let most = call.args.get(2).map_or(Ok(USUAL_SLOW), integer);
            let most = most.ok().filter(|most| *most >= -1);
            let most = most.ok_or_else(|| failed("ERR count should be greater than or equal to -1"))?;
            let entries = server.slow_log.newest(usize::try_from(most).unwrap_or(usize::MAX));
            out.array(entries.len());
            for entry in &entries {
                write_slow(entry, out);
            }
        }
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

/// Of what was asked only the command is told: the words are nobody's business.
fn write_slow(entry: &Entry, out: &mut Writer<'_>) {
    let number = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    out.array(6);
    out.integer(number(entry.id.into()));
    out.integer(number(entry.since_1970().as_secs().into()));
    out.integer(number(Duration::as_micros(&entry.slow.took)));
    out.array(1);
    out.bulk(entry.slow.command.as_bytes());
    out.bulk(entry.peer.as_bytes());
    out.bulk(entry.name.as_deref().unwrap_or_default().as_bytes());
}
