//! DUMP and RESTORE: what a key holds, in Redis' own form.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, Writer};

use super::failure::Failure;
use super::hash_mut::Change;
use super::keyspace::{Held, Keyspace, KeyspaceMut};
use super::number;
use super::rdb::{self, Dumped};
use boltkv_protocol::resp::names::said;

/// The most bytes of a hash that are written at once, and what a field counts for beside its own.
const MOST: usize = 16 << 20;
const BESIDE: usize = 64;

pub(super) fn dump(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let dump = match keyspace.find(args.word(1))? {
        None => {
            out.null();
            return Ok(());
        }
        Some(Held::String(value)) => rdb::write_string(value),
        Some(Held::Hash(hash)) => {
            let (mut fields, mut bytes) = (Vec::new(), 0);
            for entry in &hash.bucket {
                let (field, value) = entry?;
                let value = value.ok_or_else(Failure::wrong_type)?;
                if !hash.is_past(field, &keyspace.moment)? {
                    fields.push((field, value));
                }
                bytes += field.len() + value.len() + 2 * BESIDE;
                if bytes > MOST {
                    let line = format!("ERR hashes of more than {MOST} bytes are not dumped; read them with HSCAN");
                    return Err(Failure::new(ErrorCode::ValueTooLarge, line));
                }
            }
            let mut dump = rdb::begin_hash(fields.len());
            for (field, value) in fields {
                rdb::put_string(said(field), &mut dump);
                rdb::put_string(value, &mut dump);
            }
            rdb::finish(dump)
        }
    };
    out.bulk(&dump);
    Ok(())
}

/// What RESTORE says beside the value.
#[derive(Debug, Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

pub(super) fn restore(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let options = options(args)?;
    let time = number::integer(args.word(2))?;
    let time = u64::try_from(time)
        .map_err(|_| Failure::say(ErrorCode::NumberOutOfRange, "ERR Invalid TTL value, must be >= 0"))?;
    let key = args.word(1);
    if !options.replaces && keyspace.look()?.exists(key)? {
        return Err(Failure::say(ErrorCode::BucketExists, "BUSYKEY Target key name already exists."));
    }
    let dumped = rdb::read(args.word(3), keyspace.most())?;
    keyspace.make_room(dumped.bytes())?;
    keyspace.make_way(key)?;
    let at = match time {
        0 => None,
        at if options.is_absolute => Some(at),
        left => Some(keyspace.now().saturating_add(left)),
    };
    // One whose time has come is not there.
    if at.is_none_or(|at| at > keyspace.now()) {
        match dumped {
            Dumped::String(value) => keyspace.put(key, &value)?,
            Dumped::Hash(fields) => keyspace.in_hash(key, |hash| {
                for (field, value) in &fields {
                    hash.put(field, value)?;
                }
                Ok(((), Change::Something))
            })?,
        }
        keyspace.expire(key, at)?;
    }
    out.ok();
    Ok(())
}

fn options(args: &Args) -> Result<Options, Failure> {
    let (mut options, mut at) = (Options::default(), 4);
    while at < args.len() {
        match args.word(at).to_ascii_lowercase().as_slice() {
            b"replace" => options.replaces = true,
            b"absttl" => options.is_absolute = true,
            // How often and when a key was used is not kept.
            what @ (b"idletime" | b"freq") if at + 1 < args.len() => {
                at += 1;
                let number = number::integer(args.word(at))?;
                let most = if what == b"freq" { 255 } else { i64::MAX };
                if !(0..=most).contains(&number) {
                    let line = if what == b"freq" {
                        "ERR Invalid FREQ value, must be >= 0 and <= 255"
                    } else {
                        "ERR Invalid IDLETIME value, must be >= 0"
                    };
                    return Err(Failure::say(ErrorCode::NumberOutOfRange, line));
                }
            }
            _ => return Err(Failure::syntax()),
        }
        at += 1;
    }
    Ok(options)
}
