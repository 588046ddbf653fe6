//! Keys, whatever they hold.

use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Held, Keyspace, KeyspaceMut, holds_buckets};
use super::work::Call;

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Exists | RespCommand::Touch => exists(keyspace, args, out),
        RespCommand::Type => type_of(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Del | RespCommand::Unlink => delete(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

fn exists(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let mut there = 0;
    for key in args.from(1) {
        there += usize::from(keyspace.exists(key)?);
    }
    out.count(there);
    Ok(())
}

fn type_of(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    out.simple(match keyspace.find(args.word(1))? {
        None => "none",
        Some(Held::String(_)) => "string",
        Some(Held::Hash(bucket)) if holds_buckets(&bucket)? => "bucket",
        Some(Held::Hash(_)) => "hash",
    });
    Ok(())
}

fn delete(keyspace: &mut KeyspaceMut<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let mut removed = 0;
    for key in args.from(1) {
        removed += usize::from(keyspace.remove(key)?);
    }
    out.count(removed);
    Ok(())
}
