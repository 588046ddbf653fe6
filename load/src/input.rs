//! What has arrived on a connection and was not looked at yet. Of long answers only the start is kept; the rest is let
//! pass, so that a value of 100 MB takes no more memory than one of 100 bytes.

use std::io::{self, Read};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// The longest thing that has to be there as a whole: an error, or the keys that one step of Redis' SCAN found.
const MOST_WHOLE: usize = 16 * 1024 * 1024;

/// What has arrived and was not looked at yet.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes that have not arrived yet are to be let pass.
    skip: usize,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; CHUNK], start: 0, end: 0, skip: 0 }
    }

    /// What there is.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The line that it starts with, without its end, CR LF.
    pub(crate) fn line(&self) -> Option<&[u8]> {
        let bytes = self.bytes();
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        bytes.get(..end)
    }

    /// Goes on behind so many bytes, which need not have arrived.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let there = self.end - self.start;
        self.skip = bytes.saturating_sub(there);
        self.start += bytes.min(there);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads once, as much as there is room for. Whether there may be more: the room was filled.
    ///
    /// # Errors
    /// Those of the source; [`io::ErrorKind::UnexpectedEof`] at its end; [`io::ErrorKind::InvalidData`] where something
    /// that has to be there as a whole is longer than anything that makes sense.
    pub(crate) fn read(&mut self, source: &mut impl Read) -> io::Result<bool> {
        if self.end == self.buffer.len() {
            self.make_room()?;
        }
        let read = source.read(&mut self.buffer[self.end..])?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.end += read;
        let is_full = self.end == self.buffer.len();
        if self.skip > 0 {
            self.consume(self.skip);
        }
        Ok(is_full)
    }

    fn make_room(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        } else if self.buffer.len() < MOST_WHOLE {
            self.buffer.resize(self.buffer.len() * 2, 0);
        } else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer without end"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_pass_need_not_have_arrived() {
        let mut input = Input::new();
        input.read(&mut &b"head"[..]).unwrap();
        input.consume(4 + 1_000_000);
        let mut rest = vec![b'x'; 1_000_000];
        rest.extend(b"next\r\n");
        let mut rest = &rest[..];
        while !rest.is_empty() {
            input.read(&mut rest).unwrap();
        }
        assert_eq!(input.line(), Some(&b"next"[..]));
        assert_eq!(input.buffer.len(), CHUNK, "a long value takes no memory");
    }

    #[test]
    fn an_answer_without_end_is_an_error_and_not_all_memory() {
        let mut input = Input::new();
        let ended = loop {
            match input.read(&mut io::repeat(b'x')) {
                Ok(_) => assert!(input.line().is_none()),
                Err(error) => break error.kind(),
            }
        };
        assert_eq!((ended, input.buffer.len()), (io::ErrorKind::InvalidData, MOST_WHOLE));
    }
}
