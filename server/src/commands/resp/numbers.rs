//! Numbers that are added to.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::KeyspaceMut;
use super::number::{add_float, integer};
use super::work::Call;

/// INCR, DECR, INCRBY and DECRBY.
pub(super) fn add(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    let delta = match call.spec.command {
        RespCommand::Incr => 1,
        RespCommand::Decr => -1,
        RespCommand::IncrBy => integer(args.word(2))?,
        _ => integer(args.word(2))?.checked_neg().ok_or_else(no_negative)?,
    };
    let old = match keyspace.look()?.string(args.word(1))? {
        Some(value) => integer(value)?,
        None => 0,
    };
    let sum = old.checked_add(delta).ok_or_else(Failure::overflow)?;
    keyspace.put(args.word(1), sum.to_string().as_bytes())?;
    out.integer(sum);
    Ok(())
}

/// There is no positive number of the lowest one's size.
const fn no_negative() -> Failure {
    Failure::say(ErrorCode::NumberOutOfRange, "ERR decrement would overflow")
}

/// INCRBYFLOAT.
pub(super) fn add_with_fraction(
    keyspace: &mut KeyspaceMut<'_, '_>,
    args: &Args,
    out: &mut Writer<'_>,
) -> Result<(), Failure> {
    let old = keyspace.look()?.string(args.word(1))?;
    let sum = add_float(old.unwrap_or(b"0"), args.word(2))?;
    keyspace.put(args.word(1), sum.as_bytes())?;
    out.bulk(sum.as_bytes());
    Ok(())
}
