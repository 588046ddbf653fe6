//! Words: taken off a line, and printed so that they can be pasted back.
//!
//! An unquoted word is literal. A quoted one knows `\"`, `\\`, `\n`, `\r`, `\t` and `\xNN`, and must end where it is closed.

use std::str::Utf8Chunk;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::http;
use crate::escape;

/// The length of `\xNN`.
const HEX_LEN: usize = 4;

/// Why a line has no such word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordError {
    #[error("a quoted word is not closed")]
    Unclosed,
    #[error("unknown escape in a quoted word: only \\\", \\\\, \\n, \\r, \\t and \\xNN are known")]
    BadEscape,
    #[error("a quoted word must end where its quote is closed")]
    TextAfterQuote,
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// A line's words, taken from the left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    rest: Bytes,
}

impl Words {
    pub(super) const fn new(line: Bytes) -> Self {
        Self { rest: line }
    }

    /// The next word; `None` at the line's end.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, WordError> {
        let blanks = self.rest.iter().take_while(|&&byte| is_blank(byte)).count();
        self.rest.advance(blanks);
        if self.rest.is_empty() {
            return Ok(None);
        }
        if self.rest.starts_with(b"\"") {
            let (word, len) = unquote(&self.rest)?;
            self.rest.advance(len);
            if self.rest.first().is_some_and(|&byte| !is_blank(byte)) {
                return Err(WordError::TextAfterQuote);
            }
            return Ok(Some(word));
        }
        let len = self.rest.iter().position(|&byte| is_blank(byte)).unwrap_or(self.rest.len());
        Ok(Some(self.rest.split_to(len)))
    }

    /// The words that are left, but no more than `most`.
    pub(super) fn take(&mut self, most: usize) -> Result<Vec<Bytes>, WordError> {
        let mut words = Vec::new();
        while words.len() < most
            && let Some(word) = self.next()?
        {
            words.push(word);
        }
        Ok(words)
    }

    /// All that follows one blank, as it is; or the one quoted word that ends the line. `None` if there is nothing: the empty
    /// value is written `""`.
    pub(super) fn rest_as_value(mut self) -> Result<Option<Bytes>, WordError> {
        if self.rest.len() <= 1 {
            return Ok(None);
        }
        self.rest.advance(1);
        if !self.rest.starts_with(b"\"") {
            return Ok(Some(self.rest));
        }
        let (word, len) = unquote(&self.rest)?;
        if len < self.rest.len() {
            return Err(WordError::TextAfterQuote);
        }
        Ok(Some(word))
    }
}

/// The word that a quote at the start of `text` holds, and its length with both quotes. One without escapes is a slice of
/// the line; one with escapes takes no more room than it had on the line.
fn unquote(text: &Bytes) -> Result<(Bytes, usize), WordError> {
    let close = closing_quote(text).ok_or(WordError::Unclosed)?;
    let word = text.slice(1..close);
    let word = if word.contains(&b'\\') { unescape(&word)? } else { word };
    Ok((word, close + 1))
}

/// Where the quote at the start of `text` is closed.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn unescape(mut text: &[u8]) -> Result<Bytes, WordError> {
    let mut word = BytesMut::with_capacity(text.len());
    while let Some((&byte, after)) = text.split_first() {
        let (byte, len) = match (byte, after) {
            (b'\\', &[byte @ (b'"' | b'\\'), ..]) => (byte, 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'x', digits @ ..]) => (escape::parse_hex(digits.first_chunk()).ok_or(WordError::BadEscape)?, 4),
            (b'\\', _) => return Err(WordError::BadEscape),
            (byte, _) => (byte, 1),
        };
        word.put_u8(byte);
        text = text.get(len..).unwrap_or_default();
    }
    Ok(word.freeze())
}

/// Prints a key: bare where it reads back as the same bytes and as nothing else, otherwise quoted.
pub fn write_key(key: &[u8], out: &mut BytesMut) {
    if is_bare(key) && !key.contains(&b' ') {
        out.put_slice(key);
    } else {
        write_quoted(key, out);
    }
}

/// Prints a value: as a key, but blanks within it are no reason to quote it.
pub fn write_value(value: &[u8], out: &mut BytesMut) {
    if is_bare(value) {
        out.put_slice(value);
    } else {
        write_quoted(value, out);
    }
}

/// How many bytes [`write_value`] takes for a value.
#[must_use]
pub fn value_len(value: &[u8]) -> usize {
    if is_bare(value) {
        return value.len();
    }
    let chunk_len = |chunk: Utf8Chunk<'_>| {
        let valid: usize = chunk.valid().chars().map(escaped_len).sum();
        valid + HEX_LEN * chunk.invalid().len()
    };
    2 + value.utf8_chunks().map(chunk_len).sum::<usize>()
}

/// A word for a message to people: quoted, escaped and cut.
pub(super) fn for_message(word: &[u8]) -> String {
    const MOST: usize = 32;
    let (shown, dots) = word.get(..MOST).map_or((word, ""), |start| (start, "…"));
    let mut out = BytesMut::new();
    write_quoted(shown, &mut out);
    // What is quoted is UTF-8: all else is escaped.
    format!("{}{dots}", String::from_utf8_lossy(&out))
}

/// Whether bytes can be printed as they are, as far as keys and values share the rule. Tabs are control characters, so a
/// space is the only blank to look for.
fn is_bare(bytes: &[u8]) -> bool {
    let ends_plainly = |end: Option<&u8>| end.is_some_and(|&byte| byte != b' ');
    ends_plainly(bytes.first())
        && ends_plainly(bytes.last())
        && !bytes.starts_with(b"\"")
        && !reads_as_reply(bytes)
        && !http::ends_in_version(bytes)
        && (is_plain(bytes) || is_plain_text(bytes))
}

/// Whether bytes are printable ASCII without a backslash, as most are. Sixteen are looked at in one go: nothing else that is
/// done to an entry looks at each of its bytes.
fn is_plain(bytes: &[u8]) -> bool {
    let are_plain = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'[' | b']'..=b'~'));
    let (chunks, rest) = bytes.as_chunks::<16>();
    chunks.iter().all(|chunk| are_plain(chunk)) && are_plain(rest)
}

fn is_plain_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(|c| c == '\\' || c.is_control()))
}

/// Whether bytes would look like one of the server's own answers.
fn reads_as_reply(bytes: &[u8]) -> bool {
    matches!(bytes, b"(nil)" | b"OK" | b"END" | b"ERR") || bytes.starts_with(b"ERR ")
}

fn write_quoted(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len() + 2);
    out.put_u8(b'"');
    for chunk in bytes.utf8_chunks() {
        write_escaped(chunk.valid(), out);
        write_hex(chunk.invalid(), out);
    }
    out.put_u8(b'"');
}

fn write_escaped(text: &str, out: &mut BytesMut) {
    for character in text.chars() {
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).as_bytes();
        match character {
            '"' => out.put_slice(b"\\\""),
            '\\' => out.put_slice(b"\\\\"),
            '\n' => out.put_slice(b"\\n"),
            '\r' => out.put_slice(b"\\r"),
            '\t' => out.put_slice(b"\\t"),
            _ if character.is_control() => write_hex(bytes, out),
            _ => out.put_slice(bytes),
        }
    }
}

/// How many bytes [`write_escaped`] takes for a character.
fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        _ if character.is_control() => HEX_LEN * character.len_utf8(),
        _ => character.len_utf8(),
    }
}

fn write_hex(bytes: &[u8], out: &mut BytesMut) {
    for &byte in bytes {
        out.put_slice(&escape::hex(byte));
    }
}
