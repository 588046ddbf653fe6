//! SET and GETEX with their options, and times from which on values are gone.

use boltkv_protocol::resp::names::stored;
use boltkv_protocol::resp::{Args, RespCommand, Writer};
use boltkv_protocol::{Cond, ErrorCode};

use super::failure::Failure;
use super::keyspace::KeyspaceMut;
use super::number::integer;
use super::watching::WatchedKeys;
use super::work::Call;
use crate::commands::expiry::Timed;
use crate::commands::values;

/// Whether a value is put where there is none, or where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum If {
    Missing,
    There,
}

/// What becomes of a key's time.
#[derive(Debug, Clone, Copy, Default)]
enum Time<'a> {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// KEEPTTL: what it is.
    Kept,
    /// PERSIST: there is none.
    None,
    /// It is this one.
    At(Unit, &'a [u8]),
}

/// How a time is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
    SecondsSince1970,
    MillisSince1970,
}

impl Unit {
    const fn is_since_1970(self) -> bool {
        matches!(self, Self::SecondsSince1970 | Self::MillisSince1970)
    }

    /// Of the option of this name.
    fn named(word: &[u8]) -> Option<Self> {
        let units = [
            ("EX", Self::Seconds),
            ("PX", Self::Millis),
            ("EXAT", Self::SecondsSince1970),
            ("PXAT", Self::MillisSince1970),
        ];
        units.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, unit)| unit)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Options<'a> {
    only_if: Option<If>,
    /// The old value is answered.
    get: bool,
    time: Time<'a>,
}

impl<'a> Options<'a> {
    /// Those of a SET. Each may be said again, and the last time counts; what contradicts another does not go.
    fn of_set(args: &'a Args) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = args.from(3);
        while let Some(word) = words.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if is(b"NX") && options.only_if != Some(If::There) {
                options.only_if = Some(If::Missing);
            } else if is(b"XX") && options.only_if != Some(If::Missing) {
                options.only_if = Some(If::There);
            } else if is(b"GET") {
                options.get = true;
            } else if is(b"KEEPTTL") && matches!(options.time, Time::Unsaid | Time::Kept) {
                options.time = Time::Kept;
            } else {
                options.time = options.time.said(word, &mut words)?;
            }
        }
        Ok(options)
    }

    /// Those of a GETEX.
    fn of_get(args: &'a Args) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = args.from(2);
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"PERSIST") && matches!(options.time, Time::Unsaid | Time::None) {
                options.time = Time::None;
            } else {
                options.time = options.time.said(word, &mut words)?;
            }
        }
        Ok(options)
    }
}

impl<'a> Time<'a> {
    /// The time that an option sets, which is the next word.
    fn said(self, word: &[u8], words: &mut impl Iterator<Item = &'a [u8]>) -> Result<Self, Failure> {
        let unit = Unit::named(word).ok_or_else(Failure::syntax)?;
        match self {
            Self::Unsaid => {}
            Self::At(same, _) if same == unit => {}
            _ => return Err(Failure::syntax()),
        }
        let time = words.next().ok_or_else(Failure::syntax)?;
        Ok(Self::At(unit, time))
    }

    /// The time, in milliseconds since 1970, if there is one.
    fn millis(self, call: &Call, now: u64) -> Result<Option<u64>, Failure> {
        let Self::At(unit, word) = self else { return Ok(None) };
        let said = integer(word)?;
        let millis = match unit {
            Unit::Seconds | Unit::SecondsSince1970 => said.checked_mul(1_000),
            Unit::Millis | Unit::MillisSince1970 => Some(said),
        };
        let from = if unit.is_since_1970() { 0 } else { i64::try_from(now).unwrap_or(i64::MAX) };
        let at = millis.filter(|millis| *millis > 0).and_then(|millis| from.checked_add(millis));
        let at = at.and_then(|at| u64::try_from(at).ok());
        at.map(Some).ok_or_else(|| invalid_time(call))
    }
}

fn invalid_time(call: &Call) -> Failure {
    let line = format!("ERR invalid expire time in '{}' command", call.spec.name.to_lowercase());
    Failure::new(ErrorCode::NumberOutOfRange, line)
}

pub(super) fn set(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (key, value) = (call.args.word(1), call.args.word(2));
    let options = Options::of_set(&call.args)?;
    let at = options.time.millis(call, keyspace.now())?;
    let here = keyspace.look()?;
    let old = if options.get { here.string(key)? } else { None };
    let goes = match options.only_if {
        None => true,
        Some(If::Missing) => !here.exists(key)?,
        Some(If::There) => here.exists(key)?,
    };
    match (options.get, goes) {
        (true, _) => out.maybe(old),
        (false, true) => out.ok(),
        (false, false) => out.null(),
    }
    if goes {
        keyspace.put(key, value)?;
        if !matches!(options.time, Time::Kept) {
            keyspace.expire(key, at)?;
        }
    }
    Ok(())
}

/// SETEX and PSETEX.
pub(super) fn set_for(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    let unit = if call.spec.command == RespCommand::SetEx { Unit::Seconds } else { Unit::Millis };
    let at = Time::At(unit, args.word(2)).millis(call, keyspace.now())?;
    keyspace.put(args.word(1), args.word(3))?;
    keyspace.expire(args.word(1), at)?;
    out.ok();
    Ok(())
}

pub(super) fn get_ex(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = call.args.word(1);
    let options = Options::of_get(&call.args)?;
    let Some(value) = keyspace.look()?.string(key)? else {
        out.null();
        return Ok(());
    };
    let at = options.time.millis(call, keyspace.now())?;
    out.bulk(value);
    match (options.time, at) {
        // A time since 1970 may have passed.
        (Time::At(unit, _), Some(at)) if unit.is_since_1970() && at <= keyspace.now() => {
            keyspace.remove(key)?;
        }
        (Time::None, None) | (_, Some(_)) => {
            keyspace.expire(key, at)?;
        }
        (_, None) => {}
    }
    Ok(())
}

/// Does a SET as the other dialects do it, which need no savepoint for most, nor a copy of what was there: that cost a sixth of
/// the processor's time. `false` where it is of another kind, or refused; then nothing is done, but that what had expired is
/// gone.
pub(super) fn set_alone(timed: &mut Timed<'_>, watched: &WatchedKeys, call: &Call) -> bool {
    let is_plain = call.spec.command == RespCommand::Set && call.args.len() == 3;
    let (path, key) = (call.db.path(), stored(call.args.word(1)));
    // What refuses it (a hash, no such database yet) is for who does it otherwise.
    let is_set = is_plain && values::set(timed, path, key, call.args.word(2), &Cond::Always).is_ok();
    if is_set {
        watched.touch(path, key);
    }
    is_set
}
