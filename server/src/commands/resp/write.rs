//! Commands that change something, each kind in its file.

use boltkv_protocol::resp::{Group, RespCommand, Writer};

use super::database::Database;
use super::failure::Failure;
use super::keyspace::KeyspaceMut;
use super::work::Call;
use super::{bits, databases, hashes, keys, strings};

/// Does a command. What it has changed when it fails is taken back by who calls this.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.group {
        Group::String => strings::apply(keyspace, call, out),
        Group::Bitmap => bits::apply(keyspace, call, out),
        Group::Hash => hashes::apply(keyspace, call, out),
        Group::Generic => keys::apply(keyspace, call, out),
        Group::Server | Group::Transactions | Group::Connection => databases::apply(keyspace, call, out),
    }
}

/// Answers a command of the connection that stands within a transaction, where it needs no connection for that; `false`
/// where it does.
pub(super) fn in_exec(call: &Call, now: u64, out: &mut Writer<'_>) -> Result<bool, Failure> {
    match call.spec.command {
        RespCommand::Ping if call.args.len() > 2 => return Err(Failure::wrong_number_of_arguments(call.spec.name)),
        RespCommand::Ping if call.args.len() > 1 => out.bulk(call.args.word(1)),
        RespCommand::Ping => out.simple("PONG"),
        RespCommand::Echo => out.bulk(call.args.word(1)),
        // Who queues it has gone there already.
        RespCommand::Select => {
            Database::named(call.args.word(1))?;
            out.ok();
        }
        RespCommand::Unwatch => out.ok(),
        RespCommand::Time => write_time(now, out),
        _ => return Ok(false),
    }
    Ok(true)
}

/// What TIME answers: the seconds since 1970, and the microseconds in the next.
pub(crate) fn write_time(now: u64, out: &mut Writer<'_>) {
    out.array(2);
    out.bulk((now / 1_000).to_string().as_bytes());
    out.bulk((now % 1_000 * 1_000).to_string().as_bytes());
}
