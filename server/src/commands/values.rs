//! What happens to single keys: SET, DELETE, INCREMENT, and the conditions under which it does.

use boltkv_protocol::{Cond, ExpireCond, ExpireTo, Expiry, Path};
use boltkv_storage::Result;

use super::expiry::{Timed, after};
use super::number;
use super::write::{Effect, Refused};

/// Bytes of a key that a message shows at most.
const MOST_SHOWN: usize = 64;

/// Puts a value, which never expires.
pub(super) fn set(
    timed: &mut Timed<'_>,
    path: &Path,
    key: &[u8],
    value: &[u8],
    cond: &Cond,
) -> Result<Effect, Refused> {
    let expires = timed.enter(path, key)?;
    let mut bucket = timed.tx.bucket_mut_path(path.names())?;
    check(cond, || bucket.get(key), key)?;
    if expires.is_none() {
        bucket.put(key, value)?;
        return Ok(Effect::Written);
    }
    timed.undoably(|timed| {
        timed.tx.bucket_mut_path(path.names())?.put(key, value)?;
        timed.forget(path, key)?;
        Ok(Effect::Written)
    })
}

/// Puts a value that expires, or does if it did before.
pub(super) fn set_expiring(
    timed: &mut Timed<'_>,
    path: &Path,
    key: &[u8],
    value: &[u8],
    cond: &Cond,
    expiry: Expiry,
) -> Result<Effect, Refused> {
    let before = timed.enter(path, key)?;
    let bucket = timed.tx.bucket_mut_path(path.names())?;
    check(cond, || bucket.get(key), key)?;
    let at = match expiry {
        // The time of a key that is not there was left by somebody else.
        Expiry::Keep => before.filter(|_| bucket.get(key).is_ok_and(|value| value.is_some())),
        Expiry::At(at) => Some(at),
        Expiry::In(ms) => Some(after(timed.now(), ms)),
    };
    timed.undoably(|timed| {
        timed.tx.bucket_mut_path(path.names())?.put(key, value)?;
        timed.set_expiry(path, key, at)?;
        Ok(Effect::Written)
    })
}

/// Sets when a key that is there expires.
pub(super) fn expire(
    timed: &mut Timed<'_>,
    path: &Path,
    key: &[u8],
    to: ExpireTo,
    cond: ExpireCond,
) -> Result<Effect, Refused> {
    let from = timed.enter(path, key)?;
    let to = match to {
        ExpireTo::Never => None,
        ExpireTo::At(at) => Some(at),
        ExpireTo::In(ms) => Some(after(timed.now(), ms)),
    };
    if !timed.has(path, key)? || !cond.holds(from, to) || from.is_none() && to.is_none() {
        return Ok(Effect::ExpirySet { changed: false });
    }
    timed.undoably(|timed| {
        timed.set_expiry(path, key, to)?;
        Ok(Effect::ExpirySet { changed: true })
    })
}

pub(super) fn delete(timed: &mut Timed<'_>, path: &Path, key: &[u8], cond: &Cond) -> Result<Effect, Refused> {
    let expires = timed.enter(path, key)?;
    let mut bucket = timed.tx.bucket_mut_path(path.names())?;
    check(cond, || bucket.get(key), key)?;
    if expires.is_none() {
        return Ok(Effect::Deleted { existed: bucket.delete(key)? });
    }
    timed.undoably(|timed| {
        let existed = timed.tx.bucket_mut_path(path.names())?.delete(key)?;
        timed.forget(path, key)?;
        Ok(Effect::Deleted { existed })
    })
}

/// A key that is not there counts as 0; what adds nothing to one that is, changes nothing. It expires when it did before.
pub(super) fn increment(timed: &mut Timed<'_>, path: &Path, key: &[u8], delta: i64) -> Result<Effect, Refused> {
    let expires = timed.enter(path, key)?;
    let mut bucket = timed.tx.bucket_mut_path(path.names())?;
    let found = bucket.get(key)?;
    let number = match found {
        None => 0,
        Some(value) => number::parse(value).ok_or_else(|| {
            Refused::NoNumber(format!("the value of key {} is no whole number of 64 bits", shown(key)))
        })?,
    };
    let is_new = found.is_none();
    let changed = is_new || delta != 0;
    let value = number.checked_add(delta).ok_or_else(|| {
        Refused::OutOfRange(format!("key {}: {number} plus {delta} does not fit 64 bits", shown(key)))
    })?;
    if changed {
        bucket.put(key, value.to_string())?;
    }
    if is_new && expires.is_some() {
        // Somebody else has taken the key away, and left its time.
        timed.undoably(|timed| timed.forget(path, key))?;
    }
    Ok(Effect::Number { value, changed })
}

/// Whether a condition holds of a key, as `value` finds it.
pub(super) fn check<'v>(
    cond: &Cond,
    value: impl FnOnce() -> Result<Option<&'v [u8]>>,
    key: &[u8],
) -> Result<(), Refused> {
    // What always holds costs no look-up.
    if *cond == Cond::Always {
        return Ok(());
    }
    let found = value()?;
    if cond.holds(found) {
        return Ok(());
    }
    let is = match (cond, found) {
        (Cond::IfAbsent, _) => "is there already",
        (_, None) => "is not there",
        _ => "has another value",
    };
    Err(Refused::Condition(format!("key {} {is}", shown(key))))
}

/// A key for a message, escaped and cut.
pub(super) fn shown(key: &[u8]) -> String {
    let cut = &key[..key.len().min(MOST_SHOWN)];
    let more = if cut.len() < key.len() { "…" } else { "" };
    format!("\"{}\"{more}", cut.escape_ascii())
}
