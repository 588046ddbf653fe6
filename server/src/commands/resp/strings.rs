//! Values: put, looked up, added to.

use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Held, Keyspace, KeyspaceMut};
use super::work::Call;
use super::{lcs, numbers, ranges, set};

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Get => get(keyspace, args, out),
        RespCommand::MGet => mget(keyspace, args, out),
        RespCommand::StrLen => strlen(keyspace, args, out),
        RespCommand::GetRange | RespCommand::SubStr => ranges::get(keyspace, args, out),
        RespCommand::Lcs => lcs::answer(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Set => set::set(keyspace, call, out),
        RespCommand::SetNx => set_nx(keyspace, args, out),
        RespCommand::SetEx | RespCommand::PSetEx => set::set_for(keyspace, call, out),
        RespCommand::GetSet => get_set(keyspace, args, out),
        RespCommand::GetDel => get_del(keyspace, args, out),
        RespCommand::GetEx => set::get_ex(keyspace, call, out),
        RespCommand::MSet | RespCommand::MSetNx => mset(keyspace, call, out),
        RespCommand::Append => append(keyspace, args, out),
        RespCommand::SetRange => ranges::set(keyspace, args, out),
        RespCommand::Incr | RespCommand::Decr | RespCommand::IncrBy | RespCommand::DecrBy => {
            numbers::add(keyspace, call, out)
        }
        RespCommand::IncrByFloat => numbers::add_with_fraction(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Puts a value as SET does: it stays.
pub(super) fn put_to_stay(keyspace: &mut KeyspaceMut<'_, '_>, key: &[u8], value: &[u8]) -> Result<(), Failure> {
    keyspace.put(key, value)?;
    keyspace.expire(key, None)?;
    Ok(())
}

fn get(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.maybe(keyspace.string(args.word(1))?);
    Ok(())
}

/// What is no value is none.
fn mget(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.array(args.len() - 1);
    for key in args.from(1) {
        match keyspace.find(key)? {
            Some(Held::String(value)) => out.bulk(value),
            Some(Held::Hash(_)) | None => out.null(),
        }
    }
    Ok(())
}

fn strlen(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.count(keyspace.string(args.word(1))?.map_or(0, <[u8]>::len));
    Ok(())
}

fn set_nx(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let is_there = keyspace.look()?.exists(args.word(1))?;
    if !is_there {
        put_to_stay(keyspace, args.word(1), args.word(2))?;
    }
    out.flag(!is_there);
    Ok(())
}

fn get_set(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.maybe(keyspace.look()?.string(args.word(1))?);
    put_to_stay(keyspace, args.word(1), args.word(2))
}

fn get_del(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let value = keyspace.look()?.string(args.word(1))?;
    out.maybe(value);
    if value.is_some() {
        keyspace.remove(args.word(1))?;
    }
    Ok(())
}

fn mset(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    if args.len().is_multiple_of(2) {
        return Err(Failure::wrong_number_of_arguments(call.spec.name));
    }
    let only_new = call.spec.command == RespCommand::MSetNx;
    if only_new {
        let here = keyspace.look()?;
        for key in args.from(1).step_by(2) {
            if here.exists(key)? {
                out.flag(false);
                return Ok(());
            }
        }
    }
    for (key, value) in args.from(1).step_by(2).zip(args.from(2).step_by(2)) {
        put_to_stay(keyspace, key, value)?;
    }
    if only_new {
        out.flag(true);
    } else {
        out.ok();
    }
    Ok(())
}

fn append(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (key, more) = (args.word(1), args.word(2));
    let old_len = keyspace.look()?.string(key)?.map_or(0, <[u8]>::len);
    let len = old_len.saturating_add(more.len());
    keyspace.make_room(len)?;
    let mut value = Vec::with_capacity(len);
    value.extend_from_slice(keyspace.look()?.string(key)?.unwrap_or_default());
    value.extend_from_slice(more);
    keyspace.put(key, &value)?;
    out.count(len);
    Ok(())
}
