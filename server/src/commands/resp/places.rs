//! Keys that are given another place: RENAME, COPY, MOVE.

use boltkv_protocol::resp::{Args, RespCommand, Writer};
use boltkv_protocol::{ErrorCode, NEVER};
use bytes::Bytes;

use super::database::Database;
use super::failure::Failure;
use super::hash_mut::Change;
use super::keyspace::{Held, KeyspaceMut};
use super::work::Call;
use crate::commands::expiry::Moment;

/// The most entries that are copied at once, while all writes wait.
const MOST_COPIED: usize = 100_000;

pub(super) fn rename(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (from, to) = (call.args.word(1), call.args.word(2));
    let look = keyspace.look()?;
    if !look.exists(from)? {
        return Err(Failure::no_such_key());
    }
    let only_if_absent = call.spec.command == RespCommand::RenameNx;
    let is_taken = look.exists(to)?;
    let is_done = !(only_if_absent && is_taken);
    if is_done && from != to {
        keyspace.transfer(from, keyspace.database(), to)?;
    }
    if only_if_absent {
        out.flag(is_done);
    } else {
        out.ok();
    }
    Ok(())
}

pub(super) fn move_to(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (key, to) = (args.word(1), Database::named(args.word(2))?);
    if to == keyspace.database() {
        return Err(Failure::new(ErrorCode::Malformed, "ERR source and destination objects are the same"));
    }
    let is_there = keyspace.look()?.exists(key)?;
    let is_taken = keyspace.in_database(to, |there| there.look().and_then(|look| look.exists(key)))?;
    let is_done = is_there && !is_taken;
    if is_done {
        keyspace.transfer(key, to, key)?;
    }
    out.flag(is_done);
    Ok(())
}

pub(super) fn copy(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (from, to) = (args.word(1), args.word(2));
    let (mut db, mut replaces, mut at) = (keyspace.database(), false, 3);
    while at < args.len() {
        match args.word(at).to_ascii_lowercase().as_slice() {
            b"replace" => replaces = true,
            b"db" if at + 1 < args.len() => {
                at += 1;
                db = Database::named(args.word(at))?;
            }
            _ => return Err(Failure::syntax()),
        }
        at += 1;
    }
    if db == keyspace.database() && from == to {
        return Err(Failure::new(ErrorCode::Malformed, "ERR source and destination objects are the same"));
    }
    let is_taken = keyspace.in_database(db, |there| there.look().and_then(|look| look.exists(to)))?;
    let look = keyspace.look()?;
    let len = match look.find(from)? {
        Some(held) if replaces || !is_taken => len_of(&held)?,
        _ => {
            out.flag(false);
            return Ok(());
        }
    };
    keyspace.make_room_for_copy(len)?;
    let look = keyspace.look()?;
    let Some(held) = look.find(from)? else { return Err(Failure::no_such_key()) };
    let (held, expires) = (Copied::of(&held, &look.moment)?, look.expires_at(from)?);
    keyspace.in_database(db, |there| {
        there.make_way(to)?;
        held.put(there, to)?;
        there.expire(to, expires)
    })?;
    out.flag(true);
    Ok(())
}

/// How many bytes a copy takes in memory.
fn len_of(held: &Held<'_>) -> Result<usize, Failure> {
    const BESIDE: usize = 64;
    let Held::Hash(hash) = held else {
        return Ok(if let Held::String(value) = held { value.len() } else { 0 });
    };
    let mut len = 0;
    for (number, entry) in hash.bucket.iter().enumerate() {
        let (field, value) = entry?;
        // What holds buckets is no hash, and how deep they lie is not looked at here.
        len += field.len() + value.ok_or_else(Failure::wrong_type)?.len() + 2 * BESIDE;
        if number >= MOST_COPIED {
            let line = format!("ERR at most {MOST_COPIED} fields are copied at once, because all writes wait for it");
            return Err(Failure::new(ErrorCode::TxnTooLarge, line));
        }
    }
    Ok(len)
}

/// What a key holds, apart from the transaction that it was read in.
enum Copied {
    Value(Bytes),
    /// Fields, their values, and when they expire.
    Hash(Vec<(Bytes, Bytes, Option<u64>)>),
}

impl Copied {
    fn of(held: &Held<'_>, moment: &Moment<'_>) -> Result<Self, Failure> {
        let hash = match held {
            Held::String(value) => return Ok(Self::Value(Bytes::copy_from_slice(value))),
            Held::Hash(hash) => hash,
        };
        let mut fields = Vec::new();
        for entry in &hash.bucket {
            let (field, value) = entry?;
            // One that has expired is not there.
            if let Some(time) = hash.time_of(field, moment)? {
                let (field, value) = (Bytes::copy_from_slice(field), value.unwrap_or_default());
                fields.push((field, Bytes::copy_from_slice(value), Some(time).filter(|time| *time != NEVER)));
            }
        }
        Ok(Self::Hash(fields))
    }

    fn put(&self, keyspace: &mut KeyspaceMut<'_, '_>, key: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Value(value) => keyspace.put(key, value),
            Self::Hash(fields) => keyspace.in_hash(key, |hash| {
                for (field, value, time) in fields {
                    hash.put(field, value)?;
                    if time.is_some() {
                        hash.expire(field, *time)?;
                    }
                }
                Ok(((), Change::Something))
            }),
        }
    }
}
