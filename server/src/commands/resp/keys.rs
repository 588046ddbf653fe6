//! Keys, whatever they hold.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Held, Keyspace, KeyspaceMut, kind_of};
use super::scans::Scans;
use super::work::Call;
use super::{draws, dump, places, scan, times};

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, scans: &Scans, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Exists | RespCommand::Touch => exists(keyspace, args, out),
        RespCommand::Type => type_of(keyspace, args, out),
        RespCommand::Scan => scan::answer(keyspace, call, scans, out),
        RespCommand::RandomKey => draws::random_key(keyspace, out),
        RespCommand::Ttl | RespCommand::PTtl | RespCommand::ExpireTime | RespCommand::PExpireTime => {
            times::left(keyspace, call, out)
        }
        RespCommand::Dump => dump::dump(keyspace, args, out),
        RespCommand::Object => object(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::Del | RespCommand::Unlink => delete(keyspace, args, out),
        RespCommand::Rename | RespCommand::RenameNx => places::rename(keyspace, call, out),
        RespCommand::Move => places::move_to(keyspace, args, out),
        RespCommand::Copy => places::copy(keyspace, args, out),
        RespCommand::Restore => dump::restore(keyspace, args, out),
        RespCommand::Persist => times::persist(keyspace, args, out),
        RespCommand::Expire | RespCommand::PExpire | RespCommand::ExpireAt | RespCommand::PExpireAt => {
            times::expire(keyspace, call, out)
        }
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
        Some(held) => kind_of(&held)?,
    });
    Ok(())
}

fn delete(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let mut removed = 0;
    for key in args.from(1) {
        removed += usize::from(keyspace.remove(key)?);
    }
    out.count(removed);
    Ok(())
}

/// The longest value that Redis keeps in one piece with what it says of it.
const EMBEDDED: usize = 44;
/// A hash of no more fields, none longer, is a list in Redis.
const LISTED: usize = 128;
const LISTED_LEN: usize = 64;

/// What Redis would say of how a key is kept: clients that ask mean its shape.
fn object(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let Some(held) = keyspace.find(args.word(2))? else {
        out.null();
        return Ok(());
    };
    match args.word(1).to_ascii_lowercase().as_slice() {
        b"encoding" => out.bulk(encoding(&held)?.as_bytes()),
        b"refcount" => out.integer(1),
        b"idletime" => out.integer(0),
        _ => {
            let line = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                        switching between policies at runtime LRU and LFU data will take some time to adjust.";
            return Err(Failure::say(ErrorCode::Unsupported, line));
        }
    }
    Ok(())
}

fn encoding(held: &Held<'_>) -> Result<&'static str, Failure> {
    Ok(match held {
        Held::String(value) if crate::commands::number::parse(value).is_some() => "int",
        Held::String(value) if value.len() <= EMBEDDED => "embstr",
        Held::String(_) => "raw",
        Held::Hash(hash) => {
            let mut fields = 0;
            for entry in hash.bucket.iter().take(LISTED + 1) {
                let (field, value) = entry?;
                let is_long = field.len() > LISTED_LEN || value.is_some_and(|value| value.len() > LISTED_LEN);
                fields += if is_long { LISTED + 1 } else { 1 };
            }
            if fields > LISTED { "hashtable" } else { "listpack" }
        }
    })
}
