//! The protocols that the generator speaks, a file each. A wire writes requests and reads answers; it knows nothing of
//! sockets or time. Of an answer it looks at what tells how the request fared, and lets the rest pass.

mod boltkv;
mod memcached;
mod redis;

use bytes::BytesMut;

pub(crate) use boltkv::Boltkv;
pub(crate) use memcached::Memcached;
pub(crate) use redis::{Redis, command};

use crate::Op;
use crate::input::Input;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Its place among those in flight on its connection: the answer names it.
    pub(crate) slot: u32,
    pub(crate) op: Op,
    /// A SCAN's first key.
    pub(crate) key: &'a [u8],
    /// A SET's value; empty for others.
    pub(crate) value: &'a [u8],
    /// How many entries a SCAN asks for; 0: all.
    pub(crate) scan_length: u64,
}

/// How a request fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fared {
    /// It was done.
    Done,
    /// There was no such key.
    Missing,
    /// A SCAN brought so many.
    Entries(u64),
    /// The server said no.
    Refused(String),
}

/// An answer to the request of that slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) slot: u32,
    pub(crate) fared: Fared,
}

/// What a server sent that its protocol does not have, or why it ends the connection.
pub(crate) type Broken = String;

/// One connection's protocol.
pub(crate) trait Wire: Send {
    /// Appends a request.
    fn ask(&mut self, asked: &Asked<'_>, out: &mut BytesMut) -> Result<(), Broken>;

    /// Takes the next answer off the input; `None` where more has to arrive first. What a request takes in further steps
    /// goes to `out`.
    fn answer(&mut self, input: &mut Input, out: &mut BytesMut) -> Result<Option<Answer>, Broken>;
}

/// What a server said, fit for one line.
pub(crate) fn shown(said: &[u8]) -> String {
    const MOST: usize = 100;
    said.get(..MOST).unwrap_or(said).escape_ascii().to_string()
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(digits: &[u8]) -> Result<T, Broken> {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("\"{}\" where a number is due", shown(digits)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What comes of these bytes, arriving one by one, in the order in which answers are whole.
    pub(crate) fn answers(wire: &mut impl Wire, bytes: &[u8], out: &mut BytesMut) -> Result<Vec<Answer>, Broken> {
        let (mut input, mut answers) = (Input::new(), Vec::new());
        for byte in bytes {
            input.read(&mut &[*byte][..]).unwrap();
            while let Some(answer) = wire.answer(&mut input, out)? {
                answers.push(answer);
            }
        }
        Ok(answers)
    }

    pub(crate) fn asked(slot: u32, op: Op) -> Asked<'static> {
        Asked { slot, op, key: b"key:1", value: b"value", scan_length: 2 }
    }

    pub(crate) fn said(slot: u32, fared: Fared) -> Answer {
        Answer { slot, fared }
    }
}
