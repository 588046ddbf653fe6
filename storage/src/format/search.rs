//! Finding a place among ordered keys, with as few waits for memory as their layout allows.

use std::cmp::Ordering;
use std::ops::Range;

/// A key's first 8 bytes as a big-endian integer, with zeros behind a shorter one: keys whose prefixes differ are in
/// the order of these.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => short_prefix(key),
    }
}

#[cold]
fn short_prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    first[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(first)
}

/// The prefix of a key of `len` bytes behind its first `alike`, which end at `from`, where it can be had without
/// copying: if more bytes follow what is shorter.
#[inline]
pub(super) fn prefix_at(bytes: &[u8], from: usize, len: usize, alike: usize) -> Option<u64> {
    let first = u64::from_be_bytes(*bytes.get(from..)?.first_chunk()?);
    Some(if len >= alike + 8 { first } else { cut(first, len.checked_sub(alike)?) })
}

/// The first `len` bytes, fewer than 8, with zeros behind them. Apart, so that longer keys do not pay for it.
#[cold]
fn cut(first: u64, len: usize) -> u64 {
    first & !(u64::MAX >> (8 * len))
}

/// Places that are asked about at once.
const AT_ONCE: usize = 7;

/// The first place in `within` for which `is_below` is false; it is true up to there, and false from there on. `None` as
/// soon as a question cannot be answered. It is looked for near `guess` first.
///
/// A binary search waits for memory at each step. This one asks about several places at once, whose look-ups do not
/// depend on one another, so that the processor fetches them together: a third as many waits.
#[inline]
fn lower_bound(
    within: Range<usize>,
    mut guess: Option<usize>,
    mut is_below: impl FnMut(usize) -> Option<bool>,
) -> Option<usize> {
    let Range { start: mut low, end: mut high } = within;
    while high - low > AT_ONCE {
        let (first, step) = if let Some(guess) = guess.take() {
            around(guess, low, high)
        } else {
            let step = (high - low) / (AT_ONCE + 1);
            (low + step, step)
        };
        // The answers are true up to one place, so that their number says between which two it is.
        let mut below = 0;
        for place in 0..AT_ONCE {
            below += usize::from(is_below(first + place * step)?);
        }
        if below > 0 {
            low = first + (below - 1) * step + 1;
        }
        if below < AT_ONCE {
            high = first + below * step;
        }
    }
    let mut below = 0;
    for place in low..high {
        below += usize::from(is_below(place)?);
    }
    Some(low + below)
}

/// The first of the places around a guess, and how far they are apart. Of keys that lie evenly, but at random, a guess is
/// wrong by up to the root of their number.
#[inline]
fn around(guess: usize, low: usize, high: usize) -> (usize, usize) {
    let root = 1 << ((high - low).ilog2() / 2);
    let step = (root / 4).max(1);
    let first = guess.saturating_sub(AT_ONCE / 2 * step);
    (first.min(high - 1 - (AT_ONCE - 1) * step).max(low), step)
}

/// Where a key stands among others: `Ok(i)`, or, if it is not there, `Err(i)`, where it would stand. `wanted` is its
/// prefix, `cmp` tells how another key stands to it. `None` where a key that is asked for is not to be had.
///
/// Prefixes decide as far as they can. Where `prefix_at` does not know one, whole keys are compared.
#[inline]
pub(crate) fn search(
    within: Range<usize>,
    guess: Option<usize>,
    wanted: u64,
    prefix_at: impl Fn(usize) -> Option<u64>,
    cmp: impl Fn(usize) -> Option<Ordering>,
) -> Option<Result<usize, usize>> {
    search_or(within, guess, wanted, prefix_at, cmp, search_whole)
}

/// The same; where prefixes do not decide, `rest` does among the keys that are left.
#[inline]
pub(super) fn search_or<C: Fn(usize) -> Option<Ordering>>(
    within: Range<usize>,
    guess: Option<usize>,
    wanted: u64,
    prefix_at: impl Fn(usize) -> Option<u64>,
    cmp: C,
    rest: impl FnOnce(Range<usize>, C) -> Option<Result<usize, usize>>,
) -> Option<Result<usize, usize>> {
    let Range { start, end } = within;
    let Some(place) = lower_bound(within, guess, |place| Some(prefix_at(place)? < wanted)) else {
        return rest(start..end, cmp);
    };
    if place == end || prefix_at(place).is_some_and(|prefix| prefix != wanted) {
        return Some(Err(place));
    }
    match cmp(place)? {
        Ordering::Equal => Some(Ok(place)),
        Ordering::Greater => Some(Err(place)),
        Ordering::Less => rest(place + 1..end, cmp),
    }
}

/// The same by whole keys.
#[inline(never)]
pub(super) fn search_whole(
    within: Range<usize>,
    cmp: impl Fn(usize) -> Option<Ordering>,
) -> Option<Result<usize, usize>> {
    let end = within.end;
    let place = lower_bound(within, None, |place| Some(cmp(place)?.is_lt()))?;
    let found = place < end && cmp(place)?.is_eq();
    Some(if found { Ok(place) } else { Err(place) })
}

/// How many bytes two keys begin with are the same.
#[inline(never)]
fn alike(one: &[u8], other: &[u8]) -> usize {
    let mut alike = 0;
    for (one, other) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        let differ = u64::from_be_bytes(*one) ^ u64::from_be_bytes(*other);
        if differ != 0 {
            return alike + differ.leading_zeros() as usize / 8;
        }
        alike += 8;
    }
    let rest = one[alike..].iter().zip(&other[alike..]);
    alike + rest.take_while(|(one, other)| one == other).count()
}

/// How many bytes all of these begin with alike.
pub(crate) fn alike_in_all<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    keys.next().map_or(0, |first| keys.map(|key| alike(first, key)).min().unwrap_or(first.len()))
}

/// What a branch says of the keys below one of its children: the first is not before a certain one, and all are before
/// another. bbolt keeps to it, and checks it (`recursivelyCheckPageKeyOrder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Between {
    /// How many bytes of the keys need not be looked at: they are alike.
    pub(super) alike: usize,
    /// The prefixes of those two keys, behind what is alike.
    low: u64,
    high: u64,
}

impl Between {
    /// Nothing is known.
    pub(crate) const ANY: Self = Self { alike: 0, low: 0, high: 0 };

    /// From `low` on, before `high`, to look for `key`.
    #[inline]
    pub(super) fn new(low: &[u8], high: &[u8], key: &[u8]) -> Self {
        let alike = match (prefix(low) ^ prefix(high)).leading_zeros() as usize / 8 {
            8 => alike(low, high),
            bytes => bytes.min(low.len()),
        };
        // Where a whole prefix is left of the key: more than alike must not be passed over, less may.
        let alike = alike.min(key.len().saturating_sub(8));
        Self { alike, low: prefix(&low[alike..]), high: prefix(high.get(alike..).unwrap_or_default()) }
    }

    /// The same of keys' prefixes.
    #[inline]
    pub(crate) fn prefixes(low: u64, high: u64) -> Self {
        Self { alike: 0, low, high }
    }

    /// The same, from another prefix on; nothing, if nothing is known.
    #[inline]
    pub(crate) fn from(self, low: u64) -> Self {
        if self.high > low { Self { low, ..self } } else { Self::ANY }
    }

    /// Where in `within`, if the keys lie evenly, one of this prefix stands. Of a few it is not worth guessing.
    #[inline]
    pub(crate) fn guess(&self, within: &Range<usize>, wanted: u64) -> Option<usize> {
        if within.len() <= AT_ONCE {
            return None;
        }
        let [low, high, wanted] = as_numbers([self.low, self.high, wanted]);
        let whole = high.checked_sub(low).filter(|whole| *whole > 0)?;
        let part = wanted.saturating_sub(low).min(whole);
        // 32 bits of each are precise enough, and their product does not overflow.
        let shift = whole.leading_zeros();
        let (part, whole) = (part << shift >> 32, whole << shift >> 32);
        Some(within.start + (part * within.len() as u64 / whole) as usize)
    }
}

/// Prefixes as numbers that lie evenly where keys do. Decimal numbers as text do not where they are taken for bytes: `19` and
/// `20` are further apart than `10` and `19`. They are what many keys end with.
#[inline]
fn as_numbers(prefixes: [u64; 3]) -> [u64; 3] {
    let [low, high, wanted] = prefixes;
    // The ends may be shorter numbers, with zeros behind them.
    let is_text = wanted & 0xF0F0_F0F0_F0F0_F0F0 == 0x3030_3030_3030_3030 && (low | high) & 0xC0C0_C0C0_C0C0_C0C0 == 0;
    if is_text { [decimal(low), decimal(high), decimal(wanted)] } else { prefixes }
}

/// The number that eight digits say: two are put together at a time, then four, then all. Each product has the digits that stand
/// before, times ten and so on, above those behind them.
#[inline]
const fn decimal(digits: u64) -> u64 {
    let ones = digits.swap_bytes() & 0x0F0F_0F0F_0F0F_0F0F;
    let tens = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00FF_00FF_00FF_00FF;
    let thousands = (tens.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_FFFF_0000_FFFF;
    thousands.wrapping_mul(10_000 << 32 | 1) >> 32
}

#[cfg(test)]
mod tests {
    //! Interpreted (Miri), they would take minutes: there they are as many cases as take seconds.
    use super::*;

    #[test]
    fn the_first_place_that_is_not_below_is_found_in_every_range_from_every_guess() {
        let most = if cfg!(miri) { 20 } else { 140 };
        for len in 0..most {
            for answer in 0..=len {
                for guess in [None, Some(0), Some(7), Some(7 + len / 3), Some(7 + len), Some(usize::MAX)] {
                    let found = lower_bound(7..7 + len, guess, |place| {
                        assert!((7..7 + len).contains(&place));
                        Some(place < 7 + answer)
                    });
                    assert_eq!(found, Some(7 + answer), "{answer} of {len}, guessed {guess:?}");
                }
            }
        }
        assert_eq!(lower_bound(0..20, None, |place| (place != 4).then_some(true)), None);
    }

    #[test]
    fn prefixes_are_ordered_as_their_keys() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0\0\0\0\0\0\x01", b"ab", b"abcdefgh", b"b"];
        assert!(keys.is_sorted_by_key(|key| prefix(key)));
        assert_eq!(prefix(b"abcdefgh"), prefix(b"abcdefghi"));
        assert_eq!(prefix(b"\x01\x02"), 0x0102_0000_0000_0000);
    }

    #[test]
    fn a_prefix_in_a_page_is_that_of_the_key_alone() {
        let page = b"abcdefghijkl";
        for from in 0..=page.len() {
            for len in 0..=page.len() - from {
                for alike in 0..=len {
                    let found = prefix_at(page, from + alike, len, alike);
                    assert_eq!(found.is_some(), from + alike + 8 <= page.len());
                    assert!(found.is_none_or(|found| found == prefix(&page[from + alike..from + len])));
                }
            }
        }
        assert_eq!(prefix_at(page, 2, 1, 2), None, "shorter than what all keys begin with");
        assert_eq!(prefix_at(page, usize::MAX, 8, 0), None);
    }

    /// Whatever is known of the keys, and however unevenly they lie, each is found, and what is between them too.
    #[test]
    fn every_key_and_every_gap_is_found_within_bounds_as_without() {
        let evenly = |len: usize, key: &dyn Fn(usize) -> Vec<u8>| (0..len).map(key).collect::<Vec<_>>();
        let many = if cfg!(miri) { 30 } else { 300 };
        let sets = [
            evenly(many, &|n| (n as u64 * 3).to_be_bytes().to_vec()),
            evenly(many, &|n| (1u64 << (n % 64)).wrapping_add(n as u64).to_be_bytes().to_vec()),
            evenly(many, &|n| format!("user:{:012}", n * 7).into_bytes()),
            evenly(many, &|n| vec![b'a'; n]),
            evenly(many, &|n| format!("{n:x}").into_bytes()),
            evenly(30, &|n| vec![n as u8]),
        ];
        for mut keys in sets {
            keys.sort();
            keys.dedup();
            let (low, high) = (keys[0].clone(), [keys[keys.len() - 1].as_slice(), b"\0"].concat());
            let gaps = keys.iter().map(|key| [key.as_slice(), b"\0\0"].concat());
            for key in keys.iter().cloned().chain(gaps).filter(|key| *key < high) {
                for between in [Between::ANY, Between::new(&low, &high, &key)] {
                    let wanted = prefix(&key[between.alike..]);
                    let found = search(
                        0..keys.len(),
                        between.guess(&(0..keys.len()), wanted),
                        wanted,
                        |place| Some(prefix(&keys[place][between.alike..])),
                        |place| Some(keys[place].as_slice().cmp(&key)),
                    );
                    assert_eq!(found, Some(keys.binary_search(&key)), "{key:?} with {between:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_alike_ends_where_keys_differ_or_the_shorter_one_does() {
        for (len, other_len) in (0..20).flat_map(|len| (0..20).map(move |other| (len, other))) {
            let (one, mut other) = (vec![7; len], vec![7; other_len]);
            assert_eq!(alike(&one, &other), len.min(other_len));
            for at in (0..other_len).rev() {
                other[at] = 8;
                assert_eq!(alike(&one, &other), at.min(len), "{len} bytes and {other_len}, which differ from {at} on");
            }
        }
    }

    #[test]
    fn a_guess_is_where_an_evenly_spread_key_stands() {
        let between = Between::prefixes(1_000, 2_000);
        for (wanted, guess) in [(0, 10), (1_000, 10), (1_500, 60), (2_000, 110), (u64::MAX, 110)] {
            let found = between.guess(&(10..110), wanted).unwrap();
            assert!(found.abs_diff(guess) <= 1, "{found} for {wanted}");
        }
        assert_eq!(Between::ANY.guess(&(0..100), 5), None);
        assert_eq!(Between::prefixes(0, u64::MAX).guess(&(0..100), u64::MAX / 2), Some(49));
    }

    #[test]
    fn a_guess_among_numbers_as_text_is_by_what_they_say() {
        for (digits, number) in [(b"00000000", 0), (b"99999999", 99_999_999), (b"12345678", 12_345_678)] {
            assert_eq!(decimal(prefix(digits)), number);
        }
        let between = Between::prefixes(prefix(b"00190000"), prefix(b"0021"));
        for (wanted, guess) in
            [(b"00190000", 0), (b"00195000", 25), (b"00199999", 49), (b"00200000", 50), (b"00300000", 100)]
        {
            assert_eq!(between.guess(&(0..100), prefix(wanted)), Some(guess), "{}", wanted.escape_ascii());
        }
        let not_all = Between::prefixes(prefix(b"0019"), prefix(b"a"));
        let by_bytes = (prefix(b"0020") - prefix(b"0019")) * 100 / (prefix(b"a") - prefix(b"0019"));
        assert_eq!(not_all.guess(&(0..100), prefix(b"00200000")), usize::try_from(by_bytes).ok());
    }
}
