//! Hexadecimal escapes, which text lines and bucket paths share.

/// The byte that two hexadecimal digits name; `None` where they are missing or are none.
pub(crate) fn parse_hex(digits: Option<&[u8; 2]>) -> Option<u8> {
    let [high, low] = digits?;
    let high = char::from(*high).to_digit(16)?;
    let low = char::from(*low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

/// The `\xNN` that stands for a byte.
pub(crate) const fn hex(byte: u8) -> [u8; 4] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Both indexes are below 16.
    [b'\\', b'x', DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}
