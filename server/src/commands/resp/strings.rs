//! Values.

use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Held, Keyspace, KeyspaceMut};
use super::work::Call;

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Get => get(keyspace, args, out),
        RespCommand::MGet => mget(keyspace, args, out),
        RespCommand::StrLen => strlen(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Set => set(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
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

fn set(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    if args.len() > 3 {
        return Err(Failure::syntax());
    }
    keyspace.put(args.word(1), args.word(2))?;
    keyspace.expire(args.word(1), None)?;
    out.ok();
    Ok(())
}
