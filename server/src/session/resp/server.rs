//! Commands that concern the server.

use boltkv_protocol::resp::{RESP_COMMANDS, RespCommand, Writer};
use boltkv_protocol::{ErrorCode, OperatorRequest};

use super::call::{Operation, Tag};
use crate::commands::{Call, Failure};
use crate::shared::Shared;

/// The version of Redis whose commands these are.
pub(super) const REDIS_VERSION: &str = "7.0.15";

pub(super) fn say(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.command {
        RespCommand::Command => match call.args.word(1).to_ascii_lowercase().as_slice() {
            b"count" => out.count(RESP_COMMANDS.len()),
            _ => out.array(0),
        },
        RespCommand::Time => {
            let now = server.executor.clock().now();
            out.array(2);
            out.bulk((now / 1_000).to_string().as_bytes());
            out.bulk((now % 1_000 * 1_000).to_string().as_bytes());
        }
        RespCommand::Info => out.verbatim(&format!("# Server\r\nredis_version:{REDIS_VERSION}\r\n")),
        RespCommand::Function => match call.args.word(1).to_ascii_lowercase().as_slice() {
            // There are none, so that none are left.
            b"flush" => out.ok(),
            b"list" => out.array(0),
            _ => return Err(Failure::new(ErrorCode::Unsupported, "ERR functions are not supported")),
        },
        RespCommand::Wait => out.integer(0),
        _ => {
            let line = format!("ERR {} is not supported yet", call.spec.name);
            return Err(Failure::new(ErrorCode::Unsupported, line));
        }
    }
    Ok(())
}

/// What SLOWLOG asks for.
pub(super) fn slow_log(call: &Call) -> Result<Operation, Failure> {
    match call.args.word(1).to_ascii_lowercase().as_slice() {
        b"reset" => Ok((OperatorRequest::ResetSlowLog, Tag::Done)),
        b"get" => Ok((OperatorRequest::SlowLog { most: 10, before: 0 }, Tag::SlowLog)),
        _ => Err(Failure::syntax()),
    }
}

/// Requests that took long, each as an array.
pub(super) fn write_slow_log<B: AsRef<[u8]>>(rows: &[Vec<(B, B)>], out: &mut Writer<'_>) {
    out.array(rows.len());
    for row in rows {
        out.array(row.len());
        for (_, value) in row {
            out.bulk(value.as_ref());
        }
    }
}
