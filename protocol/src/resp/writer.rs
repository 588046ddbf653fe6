//! Replies.

use bytes::{BufMut, BytesMut};

use crate::field::make_room;

/// What a line ends with.
const END: &[u8; 2] = b"\r\n";
/// The longest line of a number: its kind, a sign and 19 digits, the end.
const LINE: usize = 1 + 20 + END.len();

/// The version of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Version {
    /// What every client begins with: strings, numbers, arrays.
    #[default]
    Two,
    /// After `HELLO 3`: maps, sets, doubles, nulls of their own.
    Three,
}

/// Writes replies, as far as there is room: what goes beyond is counted and not kept, so that whoever finds out afterwards
/// can ask for as much and write them again.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut BytesMut,
    version: Version,
    /// Where it began.
    from: usize,
    room: usize,
    len: usize,
}

impl<'o> Writer<'o> {
    /// Adds replies to `out`, of at most `room` bytes.
    pub fn new(out: &'o mut BytesMut, version: Version, room: usize) -> Self {
        let from = out.len();
        Self { out, version, from, room, len: 0 }
    }

    /// How many bytes were written, or would have been with more room.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The version in which it writes.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether all that was written is there.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.len <= self.room
    }

    /// Takes everything back that was written since it had this length.
    pub fn rewind(&mut self, len: usize) {
        self.out.truncate(self.from + len.min(self.room));
        self.len = len;
    }

    /// `OK` and the like.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `OK`.
    pub fn ok(&mut self) {
        self.put(b"+OK\r\n");
    }

    /// An error: a word in capitals, and what is wrong.
    pub fn error(&mut self, line: &str) {
        let mut out = BytesMut::new();
        write_error_line(line, &mut out);
        self.put(&out);
    }

    /// A number.
    pub fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// How many there are of something.
    pub fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Yes or no.
    pub fn flag(&mut self, is: bool) {
        self.integer(is.into());
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        if self.len + bytes.len() <= self.room {
            make_room(self.out, LINE + bytes.len() + END.len());
        }
        self.head(b'$', bytes.len());
        self.put(bytes);
        self.put(END);
    }

    /// Bytes, or that there are none.
    pub fn maybe(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Text for people.
    pub fn verbatim(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text.as_bytes()),
            Version::Three => {
                self.head(b'=', text.len() + 4);
                self.put(b"txt:");
                self.put(text.as_bytes());
                self.put(END);
            }
        }
    }

    /// Nothing, where bytes would be.
    pub fn null(&mut self) {
        match self.version {
            Version::Two => self.put(b"$-1\r\n"),
            Version::Three => self.put(b"_\r\n"),
        }
    }

    /// Nothing, where an array would be.
    pub fn null_array(&mut self) {
        match self.version {
            Version::Two => self.put(b"*-1\r\n"),
            Version::Three => self.put(b"_\r\n"),
        }
    }

    /// An array of what follows.
    pub fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// A map of what follows: so many keys, each with its value behind it.
    pub fn map(&mut self, len: usize) {
        match self.version {
            Version::Two => self.head(b'*', 2 * len),
            Version::Three => self.head(b'%', len),
        }
    }

    /// A set of what follows.
    pub fn set(&mut self, len: usize) {
        match self.version {
            Version::Two => self.head(b'*', len),
            Version::Three => self.head(b'~', len),
        }
    }

    fn head(&mut self, kind: u8, len: usize) {
        self.number(kind, i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// A line of a number. It goes in one piece: such lines are what short replies are made of.
    fn number(&mut self, kind: u8, number: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        let mut line = [kind; LINE];
        let (text, rest) = line[1..].split_at_mut(digits.len());
        text.copy_from_slice(digits);
        rest[..END.len()].copy_from_slice(END);
        self.put(&line[..1 + digits.len() + END.len()]);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.put(&[kind]);
        self.put(text);
        self.put(END);
    }

    /// Replies that were written elsewhere.
    pub fn put(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        // Once something did not fit, nothing more is kept: what is there is the beginning, without a gap.
        if self.len <= self.room {
            self.out.put_slice(bytes);
        }
    }
}

/// Writes an error, as one line whatever is in it.
pub fn write_error_line(line: &str, out: &mut BytesMut) {
    out.put_u8(b'-');
    for byte in line.bytes() {
        out.put_u8(if matches!(byte, b'\r' | b'\n') { b' ' } else { byte });
    }
    out.put_slice(END);
}
