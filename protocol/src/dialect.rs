//! Which dialect a connection speaks, told by the first byte it sends.

/// The languages of the one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Binary frames.
    Binary,
    /// A TLS `ClientHello`; the first byte inside decides again.
    Tls,
    /// RESP arrays: the Redis dialect.
    Resp,
    /// Text lines, for `nc` and people.
    Text,
}

impl Dialect {
    /// The dialect of a connection that starts with this byte.
    #[must_use]
    pub const fn of(first_byte: u8) -> Self {
        match first_byte {
            0x00..=0x07 => Self::Binary,
            0x16 => Self::Tls,
            b'*' => Self::Resp,
            _ => Self::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_dialect() {
        for byte in 0..=u8::MAX {
            let expected = match byte {
                0..=7 => Dialect::Binary,
                0x16 => Dialect::Tls,
                b'*' => Dialect::Resp,
                _ => Dialect::Text,
            };
            assert_eq!(Dialect::of(byte), expected, "0x{byte:02x}");
        }
    }
}
