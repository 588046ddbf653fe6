//! LCS: the longest sequence of bytes that two values have in common, not necessarily side by side.

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, Writer};

use super::failure::Failure;
use super::keyspace::{Held, Keyspace};
use super::number::integer;

/// The product of both lengths is no larger. It takes time by the product, on a thread that serves other connections, too:
/// this is some milliseconds, for two values of 2 KiB.
const MOST_CELLS: usize = 1 << 22;

#[derive(Debug, Default)]
struct Options {
    only_len: bool,
    /// Where the parts lie is answered, not what they are.
    places: bool,
    with_len: bool,
    /// Shorter parts are not told.
    least: usize,
}

/// A part that lies in one piece in both values: where it begins and ends in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    first: (usize, usize),
    second: (usize, usize),
}

pub(super) fn answer(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let first = value(keyspace, args.word(1));
    let second = value(keyspace, args.word(2));
    let (first, second) = (first?, second?);
    let options = Options::of(args)?;
    if options.only_len && options.places {
        let line = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(Failure::say(ErrorCode::Malformed, line));
    }
    if (first.len() + 1).saturating_mul(second.len() + 1) > MOST_CELLS {
        let line = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
        return Err(Failure::say(ErrorCode::ValueTooLarge, line));
    }
    let table = Table::of(first, second);
    if options.only_len {
        out.count(table.len);
        return Ok(());
    }
    if !options.places {
        out.bulk(&table.sequence(first, second));
        return Ok(());
    }
    let mut matches = table.matches(first, second);
    matches.retain(|found| found.len() >= options.least);
    out.map(2);
    out.bulk(b"matches");
    out.array(matches.len());
    for found in matches {
        out.array(if options.with_len { 3 } else { 2 });
        for (from, to) in [found.first, found.second] {
            out.array(2);
            out.count(from);
            out.count(to);
        }
        if options.with_len {
            out.count(found.len());
        }
    }
    out.bulk(b"len");
    out.count(table.len);
    Ok(())
}

fn value<'s>(keyspace: &Keyspace<'s>, key: &[u8]) -> Result<&'s [u8], Failure> {
    match keyspace.find(key)? {
        None => Ok(&[]),
        Some(Held::String(value)) => Ok(value),
        Some(Held::Hash(_)) => {
            let line = "ERR The specified keys must contain string values";
            Err(Failure::say(ErrorCode::IncompatibleValue, line))
        }
    }
}

impl Options {
    fn of(args: &Args) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = args.from(3);
        while let Some(word) = words.next() {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if is(b"IDX") {
                options.places = true;
            } else if is(b"LEN") {
                options.only_len = true;
            } else if is(b"WITHMATCHLEN") {
                options.with_len = true;
            } else if is(b"MINMATCHLEN") {
                let least = integer(words.next().ok_or_else(Failure::syntax)?)?;
                options.least = usize::try_from(least.max(0)).unwrap_or(usize::MAX);
            } else {
                return Err(Failure::syntax());
            }
        }
        Ok(options)
    }
}

/// From where on the end of the longest sequence goes back, for the beginnings of both values of every length.
struct Table {
    /// How long the sequence is.
    len: usize,
    /// Of both values' lengths, whether leaving out the first one's last byte leaves a longer sequence than leaving out the
    /// second one's: a bit for each pair.
    shorter_first: Vec<u64>,
    width: usize,
}

impl Table {
    fn of(first: &[u8], second: &[u8]) -> Self {
        let width = second.len();
        let mut shorter_first = vec![0; (first.len() * width).div_ceil(64)];
        // How long the sequence is with so many bytes of the second value: of the row before, and of this one up to here.
        let mut row = vec![0_usize; width + 1];
        let mut cell = 0;
        for byte in first {
            let (mut diagonal, mut left) = (0, 0);
            for (other, above) in second.iter().zip(row.iter_mut().skip(1)) {
                let len = if byte == other { diagonal + 1 } else { left.max(*above) };
                if *above > left
                    && let Some(bits) = shorter_first.get_mut(cell / 64)
                {
                    *bits |= 1 << (cell % 64);
                }
                (diagonal, left, *above) = (*above, len, len);
                cell += 1;
            }
        }
        Self { len: row.last().copied().unwrap_or(0), shorter_first, width }
    }

    fn is_shorter_first(&self, first: usize, second: usize) -> bool {
        let cell = (first - 1) * self.width + second - 1;
        self.shorter_first.get(cell / 64).is_some_and(|bits| bits >> (cell % 64) & 1 == 1)
    }

    /// The positions of the sequence's bytes in both values, from the end.
    fn pairs(&self, first: &[u8], second: &[u8]) -> impl Iterator<Item = (usize, usize)> {
        let (mut at, mut other) = (first.len(), second.len());
        std::iter::from_fn(move || {
            while at > 0 && other > 0 {
                if first.get(at - 1) == second.get(other - 1) {
                    (at, other) = (at - 1, other - 1);
                    return Some((at, other));
                }
                if self.is_shorter_first(at, other) {
                    at -= 1;
                } else {
                    other -= 1;
                }
            }
            None
        })
    }

    fn sequence(&self, first: &[u8], second: &[u8]) -> Vec<u8> {
        let mut sequence: Vec<_> = self.pairs(first, second).filter_map(|(at, _)| first.get(at).copied()).collect();
        sequence.reverse();
        sequence
    }

    /// The parts that the sequence consists of, from the end.
    fn matches(&self, first: &[u8], second: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        for (at, other) in self.pairs(first, second) {
            match matches.last_mut() {
                Some(last) if (last.first.0, last.second.0) == (at + 1, other + 1) => {
                    (last.first.0, last.second.0) = (at, other);
                }
                _ => matches.push(Match { first: (at, at), second: (other, other) }),
            }
        }
        matches
    }
}

impl Match {
    const fn len(self) -> usize {
        self.first.1 - self.first.0 + 1
    }
}
