//! Parts of values.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, Writer};

use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::number::integer;

/// From which position to which, both included, of `len`: those below 0 are counted from the end, and what lies outside is
/// left out. `None` where nothing is left.
pub(super) fn within(start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |position: i64| if position < 0 { (len + position).max(0) } else { position };
    let (start, end) = (from_start(start), from_start(end).min(len - 1));
    if start > end {
        return None;
    }
    usize::try_from(start).ok().zip(usize::try_from(end).ok())
}

/// Whether both are counted from the end, in the wrong order: nothing lies between them, also where all of it lies before
/// the beginning.
pub(super) const fn is_backward(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

/// GETRANGE and SUBSTR.
pub(super) fn get(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (start, end) = (integer(args.word(2))?, integer(args.word(3))?);
    let value = keyspace.string(args.word(1))?.unwrap_or_default();
    let range = if is_backward(start, end) { None } else { within(start, end, value.len()) };
    let part = range.and_then(|(start, end)| value.get(start..=end));
    out.bulk(part.unwrap_or_default());
    Ok(())
}

/// SETRANGE.
pub(super) fn set(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let (key, part) = (args.word(1), args.word(3));
    let offset = usize::try_from(integer(args.word(2))?).map_err(|_| offset_out_of_range())?;
    let old_len = keyspace.look()?.string(key)?.map_or(0, <[u8]>::len);
    if part.is_empty() {
        out.count(old_len);
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    keyspace.make_room(end.max(old_len))?;
    let mut value = Vec::with_capacity(end.max(old_len));
    value.extend_from_slice(keyspace.look()?.string(key)?.unwrap_or_default());
    value.resize(end.max(old_len), 0);
    if let Some(overwritten) = value.get_mut(offset..end) {
        overwritten.copy_from_slice(part);
    }
    keyspace.put(key, &value)?;
    out.count(value.len());
    Ok(())
}

const fn offset_out_of_range() -> Failure {
    Failure::say(ErrorCode::NumberOutOfRange, "ERR offset is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_from_both_ends_and_cut() {
        for (start, end, len, expected) in [
            (0, -1, 5, Some((0, 4))),
            (-3, -2, 5, Some((2, 3))),
            (-100, 100, 5, Some((0, 4))),
            (5, 9, 5, None),
            (3, 2, 5, None),
            (0, 0, 0, None),
            (i64::MIN, i64::MAX, 5, Some((0, 4))),
            (i64::MIN, i64::MIN, 5, Some((0, 0))),
            (i64::MAX, i64::MAX, 5, None),
        ] {
            assert_eq!(within(start, end, len), expected, "{start} {end} {len}");
        }
    }
}
