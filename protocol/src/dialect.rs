//! Which dialect a connection speaks, told by the first byte it sends; and HTTP, which is recognised only to be refused.

/// The languages of the one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Binary frames.
    Binary,
    /// A TLS `ClientHello`; the first byte inside decides again.
    Tls,
    /// RESP arrays, which are not supported yet: answer [`RESP_REFUSAL`] and close.
    Resp,
    /// Text lines, for `nc` and people.
    Text,
}

/// What a peer that speaks RESP is told before the connection is closed.
pub const RESP_REFUSAL: &[u8] = b"-ERR RESP is not supported yet\r\n";

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

/// Whether a first line (without its end) is an HTTP request: its first word a method, its end `HTTP/1.0` or `HTTP/1.1`.
///
/// Such a connection is closed without executing anything, so that no web page can make a browser write here.
#[must_use]
pub fn is_http_request_line(line: &[u8]) -> bool {
    const METHODS: [&[u8]; 9] =
        [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"];
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(blank) = line.iter().position(is_blank) else {
        return false;
    };
    let (method, rest) = line.split_at(blank);
    METHODS.iter().any(|known| known.eq_ignore_ascii_case(method))
        && (rest.ends_with(b"HTTP/1.0") || rest.ends_with(b"HTTP/1.1"))
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

    #[test]
    fn http_requests_are_recognised_and_commands_are_not() {
        for line in [
            &b"GET / HTTP/1.1"[..],
            b"POST /SET%20k%20v HTTP/1.0",
            b"DELETE k HTTP/1.1",
            b"patch / HTTP/1.1",
            b"OPTIONS * HTTP/1.1",
        ] {
            assert!(is_http_request_line(line), "{}", line.escape_ascii());
        }
        for line in [&b"GET k"[..], b"GET", b"", b"GET / HTTP/2", b"SET k HTTP/1.1", b"GETHTTP/1.1", b"GET HTTP/1.1 k"]
        {
            assert!(!is_http_request_line(line), "{}", line.escape_ascii());
        }
    }
}
