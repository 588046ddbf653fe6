//! Finding a place among ordered keys, with as few waits for memory as their layout allows.

use std::ops::Range;

/// A key's first 8 bytes as a big-endian integer, with zeros behind a shorter one: keys whose prefixes differ are in
/// the order of these.
#[inline]
pub(crate) fn prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0; 8];
    first[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(first)
}

/// Places that are asked about at once.
const AT_ONCE: usize = 7;

/// The first place in `within` for which `is_below` is false; it is true up to there, and false from there on.
///
/// A binary search waits for memory at each step. This one asks about several places at once, whose look-ups do not
/// depend on one another, so that the processor fetches them together: a third as many waits.
#[inline]
pub(crate) fn lower_bound(within: Range<usize>, mut is_below: impl FnMut(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = within;
    while high - low > AT_ONCE {
        let step = (high - low) / (AT_ONCE + 1);
        // The answers are true up to one place, so that their number says between which two it is.
        let mut below = 0;
        for place in 1..=AT_ONCE {
            below += usize::from(is_below(low + place * step));
        }
        if below < AT_ONCE {
            high = low + (below + 1) * step;
        }
        low += below * step + usize::from(below > 0);
    }
    low + (low..high).map(|place| usize::from(is_below(place))).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_is_not_below_is_found_in_every_range() {
        for len in 0..70 {
            for answer in 0..=len {
                let found = lower_bound(7..7 + len, |place| {
                    assert!((7..7 + len).contains(&place));
                    place < 7 + answer
                });
                assert_eq!(found, 7 + answer, "{answer} of {len}");
            }
        }
    }

    #[test]
    fn prefixes_are_ordered_as_their_keys() {
        let keys: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0\0\0\0\0\0\x01", b"ab", b"abcdefgh", b"b"];
        assert!(keys.is_sorted_by_key(|key| prefix(key)));
        assert_eq!(prefix(b"abcdefgh"), prefix(b"abcdefghi"));
        assert_eq!(prefix(b"\x01\x02"), 0x0102_0000_0000_0000);
    }
}
