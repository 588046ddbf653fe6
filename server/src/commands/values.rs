//! What happens to single keys: SET, DELETE, INCREMENT, and the conditions under which it does.

use boltkv_protocol::{Cond, Path};
use boltkv_storage::Result;

use super::expiry::Timed;
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
