//! Numbers, as INCREMENT reads and writes them: decimal text, so that people and every dialect mean the same by it.

/// The longest number: `-9223372036854775808`.
const MOST_DIGITS: usize = 20;

/// The number that a value is: digits, a minus before them for one below 0, and nothing else; no zero leads but that of 0
/// itself. So a number has one form only, and a value that means something else is not taken for one.
pub(crate) fn parse(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let is_plain = value.len() <= MOST_DIGITS && digits.iter().all(u8::is_ascii_digit);
    if !is_plain || (digits.first() == Some(&b'0') && value.len() > 1) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for number in [0, 1, -1, 10, -907, i64::MAX, i64::MIN] {
            assert_eq!(parse(number.to_string().as_bytes()), Some(number));
            assert!(number.to_string().len() <= MOST_DIGITS);
        }
        for value in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1\n",
            "1.0",
            "1e3",
            "0x1",
            "--1",
            "9223372036854775808",
        ] {
            assert_eq!(parse(value.as_bytes()), None, "{value:?}");
        }
        assert_eq!(parse(b"-9223372036854775809"), None);
        assert_eq!(parse("١".as_bytes()), None, "a digit of another script");
    }
}
