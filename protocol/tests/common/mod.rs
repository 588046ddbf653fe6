//! What the tests share: bytes written down as people read them.

use bytes::Bytes;

/// The bytes that hexadecimal digits name; blanks are for the reader.
pub(crate) fn hex(digits: &str) -> Bytes {
    let digits: Vec<_> = digits.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    assert_eq!(digits.len() % 2, 0, "an odd number of digits");
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}
