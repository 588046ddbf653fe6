//! Lines: words between blanks, quoted or not, as people type them.

use super::args::Args;
use super::decode::ProtocolError;
use crate::escape::parse_hex;

/// The words of a line. Between double quotes `\n`, `\r`, `\t`, `\b`, `\a` and `\xNN` stand for bytes, and a backslash for
/// whatever else follows it; between single quotes, `\'` for one.
pub(super) fn split(line: &[u8]) -> Result<Args, ProtocolError> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(Args::of(&words));
        }
        let mut word = Vec::new();
        rest = take_word(rest, &mut word)?;
        words.push(word);
    }
}

/// Takes a word off the front; what is left begins with a blank or is empty.
fn take_word<'l>(mut rest: &'l [u8], word: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    while let Some((byte, behind)) = rest.split_first() {
        rest = match byte {
            b'"' => take_quoted(behind, word)?,
            b'\'' => take_literal(behind, word)?,
            byte if byte.is_ascii_whitespace() || *byte == 0 => break,
            byte => {
                word.push(*byte);
                behind
            }
        };
    }
    // A NUL ends a word as a blank does.
    Ok(rest.strip_prefix(b"\0").unwrap_or(rest))
}

fn take_quoted<'l>(mut rest: &'l [u8], word: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return closed(behind),
            [b'\\', b'x', high, low, behind @ ..] if parse_hex(Some(&[*high, *low])).is_some() => {
                word.extend(parse_hex(Some(&[*high, *low])));
                behind
            }
            [b'\\', escaped, behind @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                behind
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
            [] => return Err(ProtocolError::Quotes),
        };
    }
}

fn take_literal<'l>(mut rest: &'l [u8], word: &mut Vec<u8>) -> Result<&'l [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'\'', behind @ ..] => return closed(behind),
            [b'\\', b'\'', behind @ ..] => {
                word.push(b'\'');
                behind
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
            [] => return Err(ProtocolError::Quotes),
        };
    }
}

/// A quote that closes is followed by a blank or by nothing.
fn closed(behind: &[u8]) -> Result<&[u8], ProtocolError> {
    match behind.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(ProtocolError::Quotes),
        _ => Ok(behind),
    }
}
