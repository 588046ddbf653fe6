//! Patterns: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what stands for itself.

use boltkv_protocol::ErrorCode;

use super::failure::Failure;

/// The longest pattern, in bytes.
const LONGEST: usize = 1_024;

/// Refuses a pattern that takes too long to be compared with anything.
pub(super) fn check(pattern: &[u8]) -> Result<(), Failure> {
    check_len("the pattern has", pattern.len())
}

/// Refuses patterns that take too long together.
pub(super) fn check_all<'p>(patterns: impl Iterator<Item = &'p [u8]>) -> Result<(), Failure> {
    check_len("the patterns have", patterns.map(|pattern| pattern.len() + 1).sum())
}

fn check_len(what: &str, len: usize) -> Result<(), Failure> {
    if len <= LONGEST {
        return Ok(());
    }
    let line = format!("ERR {what} {len} bytes; at most {LONGEST} are taken");
    Err(Failure::new(ErrorCode::Malformed, line))
}

/// What it is to compare a pattern with a text, in entries that are only passed.
pub(super) const fn work(pattern: &[u8], text: &[u8]) -> u64 {
    const OF_AN_ENTRY: usize = 4_096;
    1 + (pattern.len() * text.len() / OF_AN_ENTRY) as u64
}

/// Whether `text` is what a pattern means. It takes time by the product of both lengths, never more.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        // Nothing is only what is said to be nothing, or all there is; so it is for Redis.
        return pattern.is_empty() || pattern == b"*";
    }
    let (mut pattern, mut text) = (pattern, text);
    // Where the last star stands, and what it is tried on next.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        match pattern.split_first() {
            Some((b'*', rest)) => {
                star = Some((rest, text));
                pattern = rest;
                if rest.is_empty() {
                    return true;
                }
                continue;
            }
            Some(_) => {
                if let Some((byte, behind)) = text.split_first()
                    && let Some(rest) = matches_one(pattern, *byte)
                {
                    (pattern, text) = (rest, behind);
                    continue;
                }
            }
            None if text.is_empty() => return true,
            None => {}
        }
        // The last star takes a byte more.
        let Some((rest, tried)) = star else { return false };
        let Some((_, behind)) = tried.split_first() else { return false };
        star = Some((rest, behind));
        (pattern, text) = (rest, behind);
    }
}

/// What is left of a pattern of which the first part, no star, means this byte.
fn matches_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [literal, rest @ ..] => (*literal == byte).then_some(rest),
        [] => None,
    }
}

/// What is left behind a class, if the byte is in it. A class that does not end goes to the pattern's end.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', escaped, behind @ ..] => {
                found |= *escaped == byte;
                behind
            }
            [low, b'-', high, behind @ ..] => {
                found |= (*low.min(high)..=*low.max(high)).contains(&byte);
                behind
            }
            [literal, behind @ ..] => {
                found |= *literal == byte;
                behind
            }
        };
    }
    (found != negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_redis_means_by_them() {
        let yes = [
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("a*c", "ac"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("\\*", "*"),
            ("[\\]]", "]"),
            ("*foo*", "a foo b"),
            ("**a", "bca"),
            ("a[", "a["),
            ("*a*b*c*", "xaybzc"),
        ];
        for (pattern, text) in yes {
            let expected = pattern != "a[";
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("a", ""), ("a*c", "abd"), ("h[^a]llo", "hallo"), ("?", ""), ("**", ""), ("\\*", "a")]
        {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_does_not_take_for_ever() {
        let pattern = b"a*".repeat(50);
        let mut pattern_that_fails = pattern.clone();
        pattern_that_fails.push(b'b');
        let text = b"a".repeat(5_000);
        assert!(matches(&pattern, &text) && !matches(&pattern_that_fails, &text));
    }
}
