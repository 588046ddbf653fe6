//! Requests, cut from a stream: arrays of bulk strings, and lines.

use bytes::{Buf, BytesMut};

use super::args::{Args, position};
use super::inline::split;

/// The longest line, in bytes: an inline request, or the count or length before what is longer.
pub const MAX_INLINE: usize = 64 * 1024;

/// The most words that a request has. Each takes memory beside its bytes.
pub const MAX_ARGS: usize = 128 * 1024;

/// The most words, and the longest one, of a client who has yet to say who it is.
const MAX_ARGS_OF_STRANGER: usize = 10;
const LONGEST_OF_STRANGER: usize = 4 * 1024;

/// Bytes that are counted for a word beside its own.
const WORD: usize = size_of::<(u32, u32)>();

/// Why a connection cannot go on: what follows has no meaning any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A line does not end.
    #[error("Protocol error: too big inline request")]
    LongLine,
    /// The count of an array does not end.
    #[error("Protocol error: too big mbulk count string")]
    LongCount,
    /// The length of a word does not end.
    #[error("Protocol error: too big bulk count string")]
    LongLength,
    /// The count of an array is no number.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// It is too large.
    #[error("Protocol error: invalid multibulk length: a request has at most {} words", MAX_ARGS)]
    TooMany,
    /// The length of a word is no number.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// It is too large.
    #[error("Protocol error: invalid bulk length: a request has at most {limit} bytes (--max-frame)")]
    TooLongWord {
        /// How long a request may be.
        limit: usize,
    },
    /// Somebody who has not said who he is sends many words.
    #[error("Protocol error: unauthenticated multibulk length")]
    CountOfStranger,
    /// Somebody who has not said who he is sends a long word.
    #[error("Protocol error: unauthenticated bulk length")]
    LengthOfStranger,
    /// Something else than a word comes in an array.
    #[error("Protocol error: expected '$', got '{}'", (*found as char).escape_default())]
    NoWord {
        /// Its first byte.
        found: u8,
    },
    /// A quoted word in a line does not end.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// All words of a request together are too long.
    #[error("Protocol error: a request has at most {limit} bytes (--max-frame)")]
    TooLong {
        /// How long one may be.
        limit: usize,
    },
}

/// Cuts requests from a stream of bytes.
#[derive(Debug)]
pub struct RespCodec {
    /// The longest request, in bytes.
    max_item: usize,
    is_stranger: bool,
    /// The array at the front of the input.
    array: Option<Array>,
}

/// An array that is not whole yet.
#[derive(Debug)]
struct Array {
    /// How many words are to come.
    left: usize,
    /// Where the next one begins, or goes on.
    pos: usize,
    /// The length of the next word, once it is there.
    len: Option<usize>,
    at: Vec<(u32, u32)>,
}

impl RespCodec {
    /// Requests of at most `max_item` bytes.
    #[must_use]
    pub const fn new(max_item: usize) -> Self {
        Self { max_item, is_stranger: false, array: None }
    }

    /// From now on the client is one who has yet to say who it is, or is not.
    pub const fn set_stranger(&mut self, is_stranger: bool) {
        self.is_stranger = is_stranger;
    }

    /// The next request; `None` where it is not whole yet. One without words asks for nothing.
    ///
    /// # Errors
    /// What the connection cannot go on after.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Args>, ProtocolError> {
        let Some(first) = input.first() else { return Ok(None) };
        if self.array.is_none() && *first != b'*' {
            return decode_line(input);
        }
        self.decode_array(input)
    }

    /// How many bytes the request at the front of the input, which is not whole yet, takes at least, with what is kept beside
    /// it; `None` where none has begun.
    #[must_use]
    pub fn item_len(&self, input: &[u8]) -> Option<usize> {
        if input.is_empty() {
            return None;
        }
        let Some(array) = &self.array else { return Some(input.len()) };
        let known = array.pos + array.len.map_or(0, |len| len + 2);
        Some(known.max(input.len()) + WORD * array.at.capacity())
    }

    fn decode_array(&mut self, input: &mut BytesMut) -> Result<Option<Args>, ProtocolError> {
        let mut array = match self.array.take() {
            Some(array) => array,
            None => match self.begin_array(input)? {
                Some(array) => array,
                None => return Ok(None),
            },
        };
        while array.left > 0 {
            if !self.take_word(&mut array, input)? {
                self.array = Some(array);
                return Ok(None);
            }
        }
        let bytes = input.split_to(array.pos.min(input.len())).freeze();
        Ok(Some(Args::new(bytes, array.at)))
    }

    fn begin_array(&self, input: &[u8]) -> Result<Option<Array>, ProtocolError> {
        let Some((count, pos)) = number_at(input, 1, ProtocolError::LongCount)? else { return Ok(None) };
        let count = count.ok_or(ProtocolError::Count)?;
        // An array of no words, or of fewer, asks for nothing.
        let left = usize::try_from(count.max(0)).map_err(|_| ProtocolError::Count)?;
        if left > MAX_ARGS {
            return Err(ProtocolError::TooMany);
        }
        if self.is_stranger && left > MAX_ARGS_OF_STRANGER {
            return Err(ProtocolError::CountOfStranger);
        }
        // Room for as many words as have arrived, not for as many as were announced.
        Ok(Some(Array { left, pos, len: None, at: Vec::with_capacity(left.min(8)) }))
    }

    /// Takes a word. `false` where it is not whole yet.
    fn take_word(&self, array: &mut Array, input: &[u8]) -> Result<bool, ProtocolError> {
        let len = match array.len {
            Some(len) => len,
            None => match input.get(array.pos) {
                None => return Ok(false),
                Some(b'$') => {
                    let number = number_at(input, array.pos + 1, ProtocolError::LongLength)?;
                    let Some((len, pos)) = number else { return Ok(false) };
                    array.pos = pos;
                    self.check_len(len, pos)?
                }
                Some(found) => return Err(ProtocolError::NoWord { found: *found }),
            },
        };
        array.len = Some(len);
        if input.len() < array.pos + len + 2 {
            return Ok(false);
        }
        array.at.push((position(array.pos), position(array.pos + len)));
        array.pos += len + 2;
        array.len = None;
        array.left -= 1;
        Ok(true)
    }

    fn check_len(&self, len: Option<i64>, pos: usize) -> Result<usize, ProtocolError> {
        let len = len.and_then(|len| usize::try_from(len).ok()).ok_or(ProtocolError::Length)?;
        if len > self.max_item {
            return Err(ProtocolError::TooLongWord { limit: self.max_item });
        }
        if self.is_stranger && len > LONGEST_OF_STRANGER {
            return Err(ProtocolError::LengthOfStranger);
        }
        if pos + len > self.max_item {
            return Err(ProtocolError::TooLong { limit: self.max_item });
        }
        Ok(len)
    }
}

/// The number in the line that goes on at `pos`, and where the next line begins. The outer `None`: the line is not whole yet;
/// the inner one: there is no number.
fn number_at(input: &[u8], pos: usize, long: ProtocolError) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
    let rest = input.get(pos..).unwrap_or_default();
    // Nearly all have one digit or two.
    match *rest {
        [one @ b'0'..=b'9', b'\r', _, ..] => return Ok(Some((Some(i64::from(one - b'0')), pos + 3))),
        [ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', _, ..] => {
            return Ok(Some((Some(i64::from(ten - b'0') * 10 + i64::from(one - b'0')), pos + 4)));
        }
        _ => {}
    }
    let Some(len) = rest.iter().take(MAX_INLINE).position(|byte| *byte == b'\r') else {
        return if rest.len() >= MAX_INLINE { Err(long) } else { Ok(None) };
    };
    // What follows is the LF of that CR.
    if rest.len() < len + 2 {
        return Ok(None);
    }
    let number = plain_number(&rest[..len]);
    Ok(Some((number, pos + len + 2)))
}

/// A number in its one plain form, as Redis has it: no `+`, and no zeros before.
fn plain_number(digits: &[u8]) -> Option<i64> {
    match digits {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

fn decode_line(input: &mut BytesMut) -> Result<Option<Args>, ProtocolError> {
    let Some(len) = input.iter().take(MAX_INLINE).position(|byte| *byte == b'\n') else {
        return if input.len() >= MAX_INLINE { Err(ProtocolError::LongLine) } else { Ok(None) };
    };
    let line = input.split_to(len);
    input.advance(1);
    split(line.strip_suffix(b"\r").unwrap_or(&line)).map(Some)
}
