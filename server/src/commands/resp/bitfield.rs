//! BITFIELD: numbers of up to 64 bits, anywhere within a value, the highest bit first.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, Writer};

use super::bits::{grown, offset};
use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::number::integer;
use crate::commands::number;

/// How wide a number is, and whether it has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Type {
    is_signed: bool,
    width: u8,
}

/// What becomes of a number that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// What is done to one number.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: Type,
    /// The first bit.
    offset: usize,
    action: Action,
    overflow: Overflow,
}

impl Type {
    fn parse(word: &[u8]) -> Result<Self, Failure> {
        let parsed = match word {
            [b'i', width @ ..] => Self::of(true, width, 64),
            [b'u', width @ ..] => Self::of(false, width, 63),
            _ => None,
        };
        let line = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
        parsed.ok_or(Failure::say(ErrorCode::Malformed, line))
    }

    fn of(is_signed: bool, width: &[u8], widest: u8) -> Option<Self> {
        let width = number::parse(width).and_then(|width| u8::try_from(width).ok())?;
        (1..=widest).contains(&width).then_some(Self { is_signed, width })
    }

    /// The lowest and the highest number.
    const fn limits(self) -> (i128, i128) {
        if self.is_signed {
            let half = 1_i128 << (self.width - 1);
            (-half, half - 1)
        } else {
            (0, (1_i128 << self.width) - 1)
        }
    }

    /// The number that the lowest bits of another one are.
    const fn wrapped(self, number: i128) -> i128 {
        let modulus = 1_i128 << self.width;
        let rest = number.rem_euclid(modulus);
        if rest > self.limits().1 { rest - modulus } else { rest }
    }

    fn read(self, value: &[u8], offset: usize) -> i64 {
        // 64 bits lie in 9 bytes at most.
        let bytes = (offset / 8..offset / 8 + 9).map(|at| value.get(at).copied().unwrap_or(0));
        let bits = bytes.fold(0_i128, |bits, byte| (bits << 8) | i128::from(byte));
        let number = self.wrapped(bits >> (72 - offset % 8 - usize::from(self.width)));
        i64::try_from(number).unwrap_or_default()
    }

    fn write(self, value: &mut [u8], offset: usize, number: i64) {
        for at in 0..usize::from(self.width) {
            let bit = number >> (usize::from(self.width) - 1 - at) & 1 == 1;
            let mask = 0x80 >> ((offset + at) % 8);
            if let Some(byte) = value.get_mut((offset + at) / 8) {
                *byte = if bit { *byte | mask } else { *byte & !mask };
            }
        }
    }
}

impl Step {
    /// The number that is to be there instead of this one; `None` where it does not fit.
    fn next(self, old: i64) -> Option<i64> {
        let Self { kind, action, overflow, .. } = self;
        let (lowest, highest) = kind.limits();
        let (meant, is_above) = match action {
            Action::Get => return None,
            Action::Set(number) if kind.is_signed => (i128::from(number), is_above(number, kind)),
            // A number below 0 is a large one without a sign.
            Action::Set(number) => (i128::from(number.cast_unsigned()), i128::from(number.cast_unsigned()) > highest),
            Action::Add(delta) => {
                let sum = i128::from(old) + i128::from(delta);
                (sum, sum > highest)
            }
        };
        let next = if (lowest..=highest).contains(&meant) {
            meant
        } else {
            match overflow {
                Overflow::Wrap => kind.wrapped(meant),
                Overflow::Saturate => {
                    if is_above {
                        highest
                    } else {
                        lowest
                    }
                }
                Overflow::Fail => return None,
            }
        };
        i64::try_from(next).ok()
    }

    /// The first byte behind it.
    fn end(self) -> usize {
        (self.offset + usize::from(self.kind.width) - 1) / 8 + 1
    }

    const fn is_get(self) -> bool {
        matches!(self.action, Action::Get)
    }
}

/// Whether Redis takes a number for one above the highest: also where its distance from that does not fit 64 bits, for the
/// lowest numbers of all.
fn is_above(number: i64, kind: Type) -> bool {
    let (_, highest) = kind.limits();
    let distance = highest - i128::from(number);
    distance < 0 || (kind.width < 64 && distance > i128::from(i64::MAX))
}

fn steps(args: &Args) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let left = args.len() - at - 1;
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if is(b"OVERFLOW") && left >= 1 {
            overflow = overflow_named(args.word(at + 1))?;
            at += 2;
            continue;
        }
        let (takes, kind_of): (usize, fn(i64) -> Action) = if is(b"GET") {
            (2, |_| Action::Get)
        } else if is(b"SET") {
            (3, Action::Set)
        } else if is(b"INCRBY") {
            (3, Action::Add)
        } else {
            return Err(Failure::syntax());
        };
        if left < takes {
            return Err(Failure::syntax());
        }
        let kind = Type::parse(args.word(at + 1))?;
        let offset = offset(args.word(at + 2), Some(kind.width))?;
        let number = if takes == 3 { integer(args.word(at + 3))? } else { 0 };
        steps.push(Step { kind, offset, action: kind_of(number), overflow });
        at += 1 + takes;
    }
    Ok(steps)
}

fn overflow_named(word: &[u8]) -> Result<Overflow, Failure> {
    let all = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let named = all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    let line = "ERR Invalid OVERFLOW type specified";
    named.map(|(_, overflow)| overflow).ok_or(Failure::say(ErrorCode::Malformed, line))
}

fn read_all(value: &[u8], steps: &[Step], out: &mut Writer<'_>) {
    out.array(steps.len());
    for step in steps {
        out.integer(step.kind.read(value, step.offset));
    }
}

/// `BITFIELD_RO`.
pub(super) fn answer(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let steps = steps(args)?;
    if !steps.iter().all(|step| step.is_get()) {
        let line = "ERR BITFIELD_RO only supports the GET subcommand";
        return Err(Failure::say(ErrorCode::Malformed, line));
    }
    read_all(keyspace.string(args.word(1))?.unwrap_or_default(), &steps, out);
    Ok(())
}

pub(super) fn apply(keyspace: &mut KeyspaceMut<'_, '_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let key = args.word(1);
    let steps = steps(args)?;
    let old = keyspace.look()?.string(key)?;
    let Some(end) = steps.iter().filter(|step| !step.is_get()).map(|step| step.end()).max() else {
        read_all(old.unwrap_or_default(), &steps, out);
        return Ok(());
    };
    let old_len = old.map_or(0, <[u8]>::len);
    let mut value = grown(keyspace, key, end)?;
    let mut changed = value.len() > old_len;
    out.array(steps.len());
    for step in steps {
        let old = step.kind.read(&value, step.offset);
        let next = step.next(old);
        match (step.action, next) {
            (Action::Get | Action::Set(_), Some(_)) | (Action::Get, None) => out.integer(old),
            (Action::Add(_), Some(next)) => out.integer(next),
            (_, None) => out.null(),
        }
        if let Some(next) = next.filter(|next| *next != old) {
            step.kind.write(&mut value, step.offset, next);
            changed = true;
        }
    }
    if changed {
        keyspace.put(key, &value)?;
    }
    Ok(())
}
