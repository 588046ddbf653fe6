//! When keys are gone: EXPIRE, TTL and what is like them.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::number;
use super::work::Call;

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME: -2 where the key is not there, -1 where it stays.
pub(super) fn left(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = call.args.word(1);
    if !keyspace.exists(key)? {
        out.integer(-2);
        return Ok(());
    }
    let Some(at) = keyspace.expires_at(key)? else {
        out.integer(-1);
        return Ok(());
    };
    let left = at.saturating_sub(keyspace.now());
    let seconds = |millis: u64| millis.saturating_add(500) / 1_000;
    let said = match call.spec.command {
        RespCommand::Ttl => seconds(left),
        RespCommand::PTtl => left,
        RespCommand::ExpireTime => seconds(at),
        _ => at,
    };
    out.integer(i64::try_from(said).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) fn persist(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = args.word(1);
    let persisted = keyspace.look()?.exists(key)? && keyspace.expire(key, None)?;
    out.flag(persisted);
    Ok(())
}

/// Which times a time is compared with.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that a client says or does not")]
struct Only {
    if_none: bool,
    if_any: bool,
    if_greater: bool,
    if_less: bool,
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
pub(super) fn expire(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = call.args.word(1);
    let only = only(&call.args)?;
    let at = absolute(keyspace.now(), call)?;
    let look = keyspace.look()?;
    if !look.exists(key)? {
        out.flag(false);
        return Ok(());
    }
    let before = look.expires_at(key)?.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    let is_so = !(only.if_none && before.is_some()
        || only.if_any && before.is_none()
        // One that stays is never gone: there is no later time, and every one is earlier.
        || only.if_greater && before.is_none_or(|before| at <= before)
        || only.if_less && before.is_some_and(|before| at >= before));
    if is_so {
        match u64::try_from(at).ok().filter(|at| *at > keyspace.now()) {
            Some(at) => drop(keyspace.expire(key, Some(at))?),
            None => drop(keyspace.remove(key)?),
        }
    }
    out.flag(is_so);
    Ok(())
}

fn only(args: &Args) -> Result<Only, Failure> {
    let mut only = Only::default();
    for word in args.from(3) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => only.if_none = true,
            b"xx" => only.if_any = true,
            b"gt" => only.if_greater = true,
            b"lt" => only.if_less = true,
            _ => {
                let line = format!("ERR Unsupported option {}", word.escape_ascii());
                return Err(Failure::new(ErrorCode::Malformed, line));
            }
        }
    }
    if only.if_none && (only.if_any || only.if_greater || only.if_less) {
        let line = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(Failure::new(ErrorCode::Malformed, line));
    }
    if only.if_greater && only.if_less {
        return Err(Failure::new(ErrorCode::Malformed, "ERR GT and LT options at the same time are not compatible"));
    }
    Ok(only)
}

/// The time that a command names, in milliseconds since 1970.
fn absolute(now: u64, call: &Call) -> Result<i64, Failure> {
    let invalid = || {
        let line = format!("ERR invalid expire time in '{}' command", call.spec.name.to_lowercase());
        Failure::new(ErrorCode::NumberOutOfRange, line)
    };
    let time = number::integer(call.args.word(2))?;
    let in_ms = match call.spec.command {
        RespCommand::Expire | RespCommand::ExpireAt => time.checked_mul(1_000).ok_or_else(invalid)?,
        _ => time,
    };
    match call.spec.command {
        RespCommand::Expire | RespCommand::PExpire => {
            let now = i64::try_from(now).unwrap_or(i64::MAX);
            in_ms.checked_add(now).ok_or_else(invalid)
        }
        _ => Ok(in_ms),
    }
}
