//! Words: taken off a line, and printed so that they can be pasted back.
//!
//! An unquoted word is literal. A quoted one knows `\"`, `\\`, `\n`, `\r`, `\t` and `\xNN`, and must end where it is closed.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::http;
use crate::escape;

/// The length of `\xNN`.
const HEX_LEN: usize = 4;

/// Of a character in UTF-8, in bytes.
const LONGEST_CHARACTER: usize = 4;

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
    2 + shown(value).map(Shown::len).sum::<usize>()
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
    let mut buffer = [0; 256];
    let mut filled = 0;
    out.reserve(bytes.len() + 2);
    out.put_u8(b'"');
    for piece in shown(bytes) {
        if filled > buffer.len() - HEX_LEN {
            out.put_slice(&buffer[..filled]);
            filled = 0;
        }
        buffer[filled..filled + HEX_LEN].copy_from_slice(&piece.text);
        filled += piece.len();
    }
    out.put_slice(&buffer[..filled]);
    out.put_u8(b'"');
}

/// What stands in quotes for a byte.
#[derive(Clone, Copy)]
struct Shown {
    /// Its first bytes; the others are nothing: what has one length is copied in one go.
    text: [u8; HEX_LEN],
    len: u8,
}

impl Shown {
    /// That of a byte by itself.
    const fn of(byte: u8) -> Self {
        match byte {
            b'"' | b'\\' => Self::escape(byte),
            b' '..=b'~' => Self::itself(byte),
            b'\n' => Self::escape(b'n'),
            b'\r' => Self::escape(b'r'),
            b'\t' => Self::escape(b't'),
            _ => Self { text: escape::hex(byte), len: 4 },
        }
    }

    const fn itself(byte: u8) -> Self {
        Self { text: [byte, 0, 0, 0], len: 1 }
    }

    const fn escape(byte: u8) -> Self {
        Self { text: [b'\\', byte, 0, 0], len: 2 }
    }

    fn len(self) -> usize {
        usize::from(self.len)
    }
}

/// That of each byte by itself: bytes of what is no text are like dice, which a processor does not guess.
static SHOWN: [Shown; 256] = {
    let mut shown = [Shown::itself(0); 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        shown[byte as usize] = Shown::of(byte);
        byte += 1;
    }
    shown[byte as usize] = Shown::of(byte);
    shown
};

/// What stands for each of these bytes.
fn shown(bytes: &[u8]) -> impl Iterator<Item = Shown> {
    // How many of the next ones belong to a longer character, and stand as they are.
    let mut as_they_are = 0;
    bytes.iter().enumerate().map(move |(at, &byte)| {
        if begins_character(&bytes[at..]) {
            as_they_are = longer_character(&bytes[at..]);
        }
        if as_they_are == 0 {
            return SHOWN[usize::from(byte)];
        }
        as_they_are -= 1;
        Shown::itself(byte)
    })
}

/// Whether bytes look like the first two of a character beyond ASCII.
fn begins_character(bytes: &[u8]) -> bool {
    let next = bytes.get(1).copied().unwrap_or_default();
    matches!(bytes[0], 0xC2..=0xF4) & matches!(next, 0x80..=0xBF)
}

/// The length of the character that these bytes begin with, where it can be seen; 0 where not, or where they are none.
fn longer_character(bytes: &[u8]) -> usize {
    let start = &bytes[..bytes.len().min(LONGEST_CHARACTER)];
    let text = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    text.chars().next().filter(|character| !character.is_control()).map_or(0, char::len_utf8)
}
