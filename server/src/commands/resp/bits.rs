//! The bits of values: the first one is the highest of the first byte.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::number::integer;
use super::ranges::{is_backward, within};
use super::strings::put_to_stay;
use super::work::Call;
use super::{bitfield, bitop};
use crate::commands::number;

/// Bits are looked for below this byte, as far as Redis' values can reach: those of this server are shorter, and what lies
/// behind a value is 0.
const BYTES: i64 = 512 << 20;

/// Answers a command that only reads.
pub(super) fn answer(keyspace: &Keyspace<'_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::GetBit => get(keyspace, args, out),
        RespCommand::BitCount => count(keyspace, args, out),
        RespCommand::BitPos => position(keyspace, args, out),
        RespCommand::BitFieldRo => bitfield::answer(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// Does a command that changes something.
pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let args = &call.args;
    match call.spec.command {
        RespCommand::SetBit => set(keyspace, args, out),
        RespCommand::BitOp => operate(keyspace, args, out),
        RespCommand::BitField => bitfield::apply(keyspace, args, out),
        _ => Err(Failure::unsupported(call.spec.name)),
    }
}

/// The number of a bit, of which there are as many as a value can have; `width` times as much behind a `#`, if there is one.
pub(super) fn offset(word: &[u8], width: Option<u8>) -> Result<usize, Failure> {
    let offset = match (word, width) {
        ([b'#', rest @ ..], Some(width)) => number::parse(rest).and_then(|number| number.checked_mul(width.into())),
        _ => number::parse(word),
    };
    let offset = offset.filter(|offset| offset >> 3 < BYTES).and_then(|offset| usize::try_from(offset).ok());
    let line = "ERR bit offset is not an integer or out of range";
    offset.ok_or(Failure::say(ErrorCode::NumberOutOfRange, line))
}

fn is_set(value: &[u8], offset: usize) -> bool {
    value.get(offset / 8).is_some_and(|byte| byte & mask(offset) != 0)
}

const fn mask(offset: usize) -> u8 {
    0x80 >> (offset % 8)
}

fn get(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let offset = offset(args.word(2), None)?;
    let value = keyspace.string(args.word(1))?.unwrap_or_default();
    out.flag(is_set(value, offset));
    Ok(())
}

fn set(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = args.word(1);
    let offset = offset(args.word(2), None)?;
    let bit = match args.word(3) {
        b"0" => false,
        b"1" => true,
        _ => {
            let line = "ERR bit is not an integer or out of range";
            return Err(Failure::say(ErrorCode::Malformed, line));
        }
    };
    let old = keyspace.look()?.string(key)?.unwrap_or_default();
    let (old_len, old_bit) = (old.len(), is_set(old, offset));
    out.flag(old_bit);
    if offset / 8 < old_len && old_bit == bit {
        return Ok(());
    }
    let mut value = grown(keyspace, key, offset / 8 + 1)?;
    if let Some(byte) = value.get_mut(offset / 8) {
        *byte = if bit { *byte | mask(offset) } else { *byte & !mask(offset) };
    }
    keyspace.put(key, &value)
}

/// A copy of a key's value, with zeros behind it up to this length.
pub(super) fn grown(keyspace: &mut KeyspaceMut<'_, '_>, key: &[u8], len: usize) -> Result<Vec<u8>, Failure> {
    let len = keyspace.look()?.string(key)?.map_or(0, <[u8]>::len).max(len);
    keyspace.make_room(len)?;
    let mut value = Vec::with_capacity(len);
    value.extend_from_slice(keyspace.look()?.string(key)?.unwrap_or_default());
    value.resize(len, 0);
    Ok(value)
}

/// Whether positions are those of bits; `false`: of bytes.
fn counts_bits(unit: Option<&[u8]>) -> Result<bool, Failure> {
    match unit {
        None => Ok(false),
        Some(unit) if unit.eq_ignore_ascii_case(b"BYTE") => Ok(false),
        Some(unit) if unit.eq_ignore_ascii_case(b"BIT") => Ok(true),
        Some(_) => Err(Failure::syntax()),
    }
}

/// The bits from a position to another, both included, of a value.
fn bits_within(start: i64, end: i64, by_bits: bool, value: &[u8]) -> Option<(usize, usize)> {
    if by_bits {
        return within(start, end, 8 * value.len());
    }
    within(start, end, value.len()).map(|(start, end)| (8 * start, 8 * end + 7))
}

/// The bytes in which these bits are: each with the bits that are meant.
fn masked(value: &[u8], (start, end): (usize, usize)) -> (&[u8], u8, u8) {
    let bytes = value.get(start / 8..=end / 8).unwrap_or_default();
    (bytes, 0xff >> (start % 8), 0xff << (7 - end % 8))
}

fn count(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let Some(value) = keyspace.string(args.word(1))? else {
        out.count(0);
        return Ok(());
    };
    let bits = match args.len() {
        2 => within(0, -1, 8 * value.len()),
        4 | 5 => {
            let (start, end) = (integer(args.word(2))?, integer(args.word(3))?);
            if is_backward(start, end) {
                // What stands behind it is not looked at either.
                None
            } else {
                bits_within(start, end, counts_bits(args.get(4))?, value)
            }
        }
        _ => return Err(Failure::syntax()),
    };
    out.count(bits.map_or(0, |bits| ones(value, bits)));
    Ok(())
}

/// How many of these bits are set.
fn ones(value: &[u8], bits: (usize, usize)) -> usize {
    let (bytes, first_mask, last_mask) = masked(value, bits);
    let (words, rest) = bytes.as_chunks::<8>();
    let ones = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum::<usize>()
        + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    let outside = |byte: Option<&u8>, mask: u8| byte.map_or(0, |byte| (byte & !mask).count_ones() as usize);
    ones - outside(bytes.first(), first_mask) - outside(bytes.last(), last_mask)
}

fn position(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let bit = match integer(args.word(2))? {
        0 => false,
        1 => true,
        _ => return Err(Failure::say(ErrorCode::Malformed, "ERR The bit argument must be 1 or 0.")),
    };
    let Some(value) = keyspace.string(args.word(1))? else {
        // Zeros without an end.
        out.integer(if bit { -1 } else { 0 });
        return Ok(());
    };
    let bits = match args.len() {
        3 => bits_within(0, -1, false, value),
        4..=6 => {
            let start = integer(args.word(3))?;
            let by_bits = counts_bits(args.get(5))?;
            let end = args.get(4).map_or(Ok(-1), integer)?;
            bits_within(start, end, by_bits, value)
        }
        _ => return Err(Failure::syntax()),
    };
    let found = bits.and_then(|bits| first(value, bits, bit).or_else(|| behind(bits, bit, args)));
    out.integer(found.and_then(|found| i64::try_from(found).ok()).unwrap_or(-1));
    Ok(())
}

/// Where zeros go on behind a value to whose end is looked: whoever says an end means no more than what lies before it.
fn behind((_, end): (usize, usize), bit: bool, args: &Args) -> Option<usize> {
    (!bit && args.len() < 5).then_some(end + 1)
}

/// The first one of these bits that is set, or is not.
fn first(value: &[u8], bits: (usize, usize), bit: bool) -> Option<usize> {
    let (bytes, first_mask, last_mask) = masked(value, bits);
    // Those looked for as ones.
    let wanted = |at: usize| {
        let byte = bytes.get(at)?;
        let mut byte = if bit { *byte } else { !byte };
        if at == 0 {
            byte &= first_mask;
        }
        if at + 1 == bytes.len() {
            byte &= last_mask;
        }
        (byte != 0).then(|| 8 * (bits.0 / 8 + at) + byte.leading_zeros() as usize)
    };
    if let Some(found) = wanted(0) {
        return Some(found);
    }
    let passed = if bit { 0 } else { 0xff };
    let words = bytes.get(1..)?.as_chunks::<8>().0.iter().take_while(|word| **word == [passed; 8]).count();
    (1 + 8 * words..bytes.len()).find_map(wanted)
}

/// BITOP.
fn operate(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let operation = bitop::Operation::named(args.word(1)).ok_or_else(Failure::syntax)?;
    if operation == bitop::Operation::Not && args.len() != 4 {
        let line = "ERR BITOP NOT must be called with a single source key.";
        return Err(Failure::say(ErrorCode::Malformed, line));
    }
    let here = keyspace.look()?;
    let lens = args.from(3).map(|key| Ok(here.string(key)?.map_or(0, <[u8]>::len)));
    let lens = lens.collect::<Result<Vec<_>, Failure>>()?;
    let len = lens.iter().copied().max().unwrap_or(0);
    bitop::check_work(&lens)?;
    if len == 0 {
        keyspace.make_way(args.word(2))?;
    } else {
        keyspace.make_room(len)?;
        let here = keyspace.look()?;
        let mut result = Vec::new();
        for (at, key) in args.from(3).enumerate() {
            let value = here.string(key)?.unwrap_or_default();
            if at == 0 {
                result = operation.begin(value, len);
            } else {
                operation.add(&mut result, value);
            }
        }
        put_to_stay(keyspace, args.word(2), &result)?;
    }
    out.count(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_and_found_as_one_by_one() {
        let values: [&[u8]; 4] = [&[0; 19], &[0xff; 19], &[0, 0x10, 0xff, 0, 0, 1], &[0x7f, 0xff, 0xff, 0xfe]];
        for value in values {
            let len = 8 * value.len();
            for start in 0..len {
                for end in start..len {
                    let range = start..=end;
                    assert_eq!(ones(value, (start, end)), range.clone().filter(|at| is_set(value, *at)).count());
                    for bit in [false, true] {
                        let found = range.clone().find(|at| is_set(value, *at) == bit);
                        assert_eq!(first(value, (start, end), bit), found, "{value:?} {start} {end} {bit}");
                    }
                }
            }
        }
    }
}
