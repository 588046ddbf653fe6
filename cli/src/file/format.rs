//! How keys and values are printed and read: bbolt's formats, byte for byte.

use std::io::{self, Write};

use clap::ValueEnum;
use sha2::{Digest as _, Sha256};

/// How bytes are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// As they are where all of it can be printed, otherwise in hexadecimal
    Auto,
    /// Quoted, with what cannot be printed escaped
    AsciiEncoded,
    /// In hexadecimal
    Hex,
    /// As they are, whatever they do to a terminal
    Bytes,
    /// Only length and SHA-256: for reports that must not tell what is stored
    Redacted,
}

impl Format {
    /// Prints bytes, without an end of line.
    pub(super) fn write(self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Auto if is_printable(bytes) => out.write_all(bytes),
            Self::Auto | Self::Hex => write_hex(bytes, out),
            Self::AsciiEncoded => write_quoted(bytes, out),
            Self::Bytes => out.write_all(bytes),
            Self::Redacted => {
                write!(out, "<redacted len:{} sha256:", bytes.len())?;
                write_hex(&Sha256::digest(bytes), out)?;
                out.write_all(b">")
            }
        }
    }

    /// Prints each name with a slash behind it.
    pub(super) fn write_path<'n>(
        self,
        path: impl IntoIterator<Item = &'n [u8]>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        path.into_iter().try_for_each(|name| {
            self.write(name, out)?;
            out.write_all(b"/")
        })
    }

    /// Prints bytes on a line of their own.
    pub(super) fn write_line(self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.write(bytes, out)?;
        out.write_all(b"\n")
    }
}

/// How bytes are read from the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ParseFormat {
    /// The argument's bytes as they are; nothing is unescaped
    AsciiEncoded,
    /// In hexadecimal
    Hex,
}

impl ParseFormat {
    /// The bytes that an argument stands for.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn parse(self, argument: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::AsciiEncoded => Ok(argument.to_vec()),
            Self::Hex => parse_hex(argument),
        }
    }
}

fn parse_hex(text: &[u8]) -> Result<Vec<u8>, String> {
    if text.len() % 2 == 1 {
        return Err("an odd number of hexadecimal digits".into());
    }
    let digit = |byte: u8| {
        let digit = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or_else(|| format!("no hexadecimal digit: '{}'", byte.escape_ascii()))
    };
    text.chunks_exact(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

pub(super) fn write_hex(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 512];
    for chunk in bytes.chunks(text.len() / 2) {
        for (digits, byte) in text.chunks_exact_mut(2).zip(chunk) {
            digits.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        out.write_all(&text[..chunk.len() * 2])?;
    }
    Ok(())
}

/// Bytes as Go's `%q` prints them.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut shown = Vec::new();
    // Writing to memory does not fail, and what is written is UTF-8.
    let _ = write_quoted(bytes, &mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}

/// Prints bytes as Go's `%q` does: in double quotes, with what cannot be printed, quotes and backslashes escaped.
pub(super) fn write_quoted(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().try_for_each(|character| write_escaped(character, out))?;
        chunk.invalid().iter().try_for_each(|byte| write!(out, "\\x{byte:02x}"))?;
    }
    out.write_all(b"\"")
}

fn write_escaped(character: char, out: &mut impl Write) -> io::Result<()> {
    let short = match character {
        '"' | '\\' => character,
        '\x07' => 'a',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\x0b' => 'v',
        _ if is_printable_char(character) => return write!(out, "{character}"),
        _ => {
            return match u32::from(character) {
                code @ (..0x20 | 0x7f) => write!(out, "\\x{code:02x}"),
                code @ ..0x10000 => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\U{code:08x}"),
            };
        }
    };
    write!(out, "\\{short}")
}

/// Whether bytes are UTF-8 of which every character shows: bbolt prints these as they are.
pub(super) fn is_printable(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_printable_char))
}

/// Letters, marks, numbers, punctuation, symbols, and of all spaces only the common one: Go's `unicode.IsPrint`.
fn is_printable_char(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // The standard library keeps the table to itself, and uses it to escape what does not show. (Marks are escaped where
    // they come first, so something comes before.)
    let mut text = [b'a'; 5];
    let len = 1 + character.encode_utf8(&mut text[1..]).len();
    std::str::from_utf8(&text[..len]).is_ok_and(|text| text.escape_debug().nth(1) == Some(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        format.write(bytes, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn auto_prints_what_shows_and_the_rest_in_hexadecimal() {
        for shown in ["", "key 1", "größe", "e\u{301}", "\u{fffd}", "日本", "a\"b\\"] {
            assert_eq!(written(Format::Auto, shown.as_bytes()), shown);
        }
        for (bytes, hex) in [
            (&b"\x00"[..], "00"),
            (b"a\n", "610a"),
            (b"\xff\xab", "ffab"),
            ("a\u{a0}".as_bytes(), "61c2a0"),
            ("\u{200b}".as_bytes(), "e2808b"),
        ] {
            assert_eq!(written(Format::Auto, bytes), hex);
        }
    }

    #[test]
    fn quoted_text_is_escaped_as_go_does_it() {
        let all = b"a \"\\\x07\x08\x0c\n\r\t\x0b\x00\x1f\x7f\xe2\x82A\xff";
        assert_eq!(written(Format::AsciiEncoded, all), r#""a \"\\\a\b\f\n\r\t\v\x00\x1f\x7f\xe2\x82A\xff""#);
        assert_eq!(
            written(Format::AsciiEncoded, "ö\u{a0}\u{200b}\u{e0001}😀".as_bytes()),
            r#""ö\u00a0\u200b\U000e0001😀""#
        );
    }

    #[test]
    fn redacted_tells_length_and_hash_only() {
        let empty = "<redacted len:0 sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855>";
        assert_eq!(written(Format::Redacted, b""), empty);
    }

    #[test]
    fn arguments_are_read_as_they_are_or_as_hexadecimal() {
        assert_eq!(ParseFormat::AsciiEncoded.parse(b"a\\x00\xff"), Ok(b"a\\x00\xff".to_vec()));
        assert_eq!(ParseFormat::Hex.parse(b"00fFab"), Ok(vec![0, 0xff, 0xab]));
        assert_eq!(ParseFormat::Hex.parse(b"0"), Err("an odd number of hexadecimal digits".into()));
        assert_eq!(ParseFormat::Hex.parse(b"0x"), Err("no hexadecimal digit: 'x'".into()));
    }
}
