//! Hashes: a field is a key in the bucket that the hash is.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::hash_mut::Change;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::scans::Scans;
use super::work::Call;
use super::{draws, number, scan};
use boltkv_protocol::resp::names::stored;

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, scans: &Scans, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::HGet => get(keyspace, args, out),
        RespCommand::HMGet => get_several(keyspace, args, out),
        RespCommand::HExists => exists(keyspace, args, out),
        RespCommand::HStrLen => strlen(keyspace, args, out),
        RespCommand::HScan => scan::answer(keyspace, call, scans, out),
        RespCommand::HRandField => draws::random_fields(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::HSet | RespCommand::HMSet => set(keyspace, call, out),
        RespCommand::HSetNx => set_if_absent(keyspace, args, out),
        RespCommand::HDel => delete(keyspace, args, out),
        RespCommand::HIncrBy => increment(keyspace, args, out),
        RespCommand::HIncrByFloat => increment_float(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// A field of the hash that the first argument names.
fn field<'s>(keyspace: &Keyspace<'s>, args: &Args, at: usize) -> Result<Option<&'s [u8]>, Failure> {
    let Some(hash) = keyspace.hash(args.word(1))? else { return Ok(None) };
    Ok(hash.get(stored(args.word(at)), &keyspace.moment)?)
}

fn get(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.maybe(field(keyspace, args, 2)?);
    Ok(())
}

fn exists(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.flag(field(keyspace, args, 2)?.is_some());
    Ok(())
}

fn strlen(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.count(field(keyspace, args, 2)?.map_or(0, <[u8]>::len));
    Ok(())
}

fn get_several(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let hash = keyspace.hash(args.word(1))?;
    out.array(args.len() - 2);
    for field in args.from(2) {
        match &hash {
            Some(hash) => out.maybe(hash.get(stored(field), &keyspace.moment)?),
            None => out.null(),
        }
    }
    Ok(())
}

fn set(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    if args.len() % 2 == 1 {
        return Err(Failure::wrong_number_of_arguments(call.spec.name));
    }
    let added = keyspace.in_hash(args.word(1), |hash| {
        let mut added = 0;
        for at in (2..args.len()).step_by(2) {
            added += usize::from(hash.get(args.word(at))?.is_none());
            hash.put(args.word(at), args.word(at + 1))?;
        }
        Ok((added, Change::Something))
    })?;
    if call.spec.command == RespCommand::HMSet {
        out.ok();
    } else {
        out.count(added);
    }
    Ok(())
}

fn set_if_absent(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let added = keyspace.in_hash(args.word(1), |hash| {
        if hash.get(args.word(2))?.is_some() {
            return Ok((false, Change::Nothing));
        }
        hash.put(args.word(2), args.word(3))?;
        Ok((true, Change::Something))
    })?;
    out.flag(added);
    Ok(())
}

fn delete(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    if keyspace.look()?.hash(args.word(1))?.is_none() {
        out.count(0);
        return Ok(());
    }
    let deleted = keyspace.in_hash(args.word(1), |hash| {
        let mut deleted = 0;
        for field in args.from(2) {
            deleted += usize::from(hash.delete(field)?);
        }
        Ok((deleted, if deleted > 0 { Change::Something } else { Change::Nothing }))
    })?;
    out.count(deleted);
    Ok(())
}

fn increment(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let delta = number::integer(args.word(3))?;
    let sum = keyspace.in_hash(args.word(1), |hash| {
        let number = match hash.get(args.word(2))? {
            None => 0,
            Some(value) => crate::commands::number::parse(value)
                .ok_or_else(|| Failure::say(ErrorCode::IncompatibleValue, "ERR hash value is not an integer"))?,
        };
        let sum = number.checked_add(delta).ok_or_else(Failure::overflow)?;
        hash.replace(args.word(2), sum.to_string().as_bytes())?;
        Ok((sum, Change::Something))
    })?;
    out.integer(sum);
    Ok(())
}

fn increment_float(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    if number::float(args.word(3))?.is_infinite() {
        return Err(Failure::say(ErrorCode::Malformed, "ERR value is NaN or Infinity"));
    }
    let sum = keyspace.in_hash(args.word(1), |hash| {
        let old = hash.get(args.word(2))?.unwrap_or(b"0");
        number::float(old).map_err(|_| Failure::say(ErrorCode::IncompatibleValue, "ERR hash value is not a float"))?;
        let sum = number::add_float(old, args.word(3))?;
        hash.replace(args.word(2), sum.as_bytes())?;
        Ok((sum, Change::Something))
    })?;
    out.bulk(sum.as_bytes());
    Ok(())
}
