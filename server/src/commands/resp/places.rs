//! Keys that are given another place: RENAME, COPY, MOVE.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};
use boltkv_storage::Bucket;
use bytes::Bytes;

use super::database::Database;
use super::failure::Failure;
use super::keyspace::{Change, HashMut, Held, KeyspaceMut};
use super::number;
use super::work::Call;

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
    let (key, to) = (args.word(1), database(args.word(2))?);
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
                db = database(args.word(at))?;
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
    let held = match look.find(from)? {
        Some(held) if replaces || !is_taken => Copied::of(&held)?,
        _ => {
            out.flag(false);
            return Ok(());
        }
    };
    let expires = look.expires_at(from)?;
    keyspace.in_database(db, |there| {
        there.remove(to)?;
        held.put(there, to)?;
        there.expire(to, expires)
    })?;
    out.flag(true);
    Ok(())
}

fn database(word: &[u8]) -> Result<Database, Failure> {
    let number = number::integer(word)?;
    Database::new(number).ok_or_else(|| Failure::new(ErrorCode::Malformed, "ERR DB index is out of range"))
}

/// What a key holds, apart from the transaction that it was read in.
enum Copied {
    Value(Bytes),
    Bucket(Vec<(Bytes, Copied)>),
}

impl Copied {
    fn of(held: &Held<'_>) -> Result<Self, Failure> {
        let mut left = MOST_COPIED;
        match held {
            Held::String(value) => Ok(Self::Value(Bytes::copy_from_slice(value))),
            Held::Hash(hash) => Self::of_bucket(&hash.bucket, &mut left),
        }
    }

    fn of_bucket(bucket: &Bucket<'_>, left: &mut usize) -> Result<Self, Failure> {
        let mut entries = Vec::new();
        for entry in bucket {
            let (key, value) = entry?;
            *left = left.checked_sub(1).ok_or_else(|| {
                let line =
                    format!("ERR at most {MOST_COPIED} fields are copied at once, because all writes wait for it");
                Failure::new(ErrorCode::TxnTooLarge, line)
            })?;
            // What holds buckets is no hash, and how deep they lie is not looked at here.
            let value = value.ok_or_else(Failure::wrong_type)?;
            entries.push((Bytes::copy_from_slice(key), Self::Value(Bytes::copy_from_slice(value))));
        }
        Ok(Self::Bucket(entries))
    }

    fn put(&self, keyspace: &mut KeyspaceMut<'_, '_>, key: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Value(value) => keyspace.put(key, value),
            Self::Bucket(entries) => keyspace.in_hash(key, |hash| {
                Self::fill(hash, entries)?;
                Ok(((), Change::Something))
            }),
        }
    }

    fn fill(hash: &mut HashMut<'_, '_>, entries: &[(Bytes, Self)]) -> Result<(), Failure> {
        for (field, value) in entries {
            if let Self::Value(value) = value {
                hash.put(field, value)?;
            }
        }
        Ok(())
    }
}
