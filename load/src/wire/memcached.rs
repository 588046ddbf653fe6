//! memcached's text protocol, of which get, set and delete are needed. Answers come in the order of the requests.

use std::collections::VecDeque;

use bytes::{BufMut as _, BytesMut};

use super::{Answer, Asked, Broken, Fared, Wire, number, shown};
use crate::Op;
use crate::input::Input;

/// One connection's state.
#[derive(Debug, Default)]
pub(crate) struct Memcached {
    /// The slots in flight, in the order of their answers.
    asked: VecDeque<u32>,
    /// Of the GET whose answer is arriving: whether a value has come.
    found: bool,
}

impl Wire for Memcached {
    fn ask(&mut self, asked: &Asked<'_>, out: &mut BytesMut) -> Result<(), Broken> {
        let verb: &[u8] = match asked.op {
            Op::Get => b"get ",
            Op::Set => b"set ",
            Op::Delete => b"delete ",
            Op::Scan => return Err("memcached has no scan".to_owned()),
        };
        out.put_slice(verb);
        out.put_slice(asked.key);
        if asked.op == Op::Set {
            out.put_slice(format!(" 0 0 {}\r\n", asked.value.len()).as_bytes());
            out.put_slice(asked.value);
        }
        out.put_slice(b"\r\n");
        self.asked.push_back(asked.slot);
        Ok(())
    }

    fn answer(&mut self, input: &mut Input, _: &mut BytesMut) -> Result<Option<Answer>, Broken> {
        loop {
            let Some(line) = input.line() else { return Ok(None) };
            let len = line.len() + 2;
            if line.starts_with(b"VALUE ") {
                let bytes: usize = number(line.rsplit(|byte| *byte == b' ').next().unwrap_or_default())?;
                self.found = true;
                input.consume(len.saturating_add(bytes).saturating_add(2));
                continue;
            }
            let fared = match line {
                b"STORED" | b"DELETED" => Fared::Done,
                b"END" if self.found => Fared::Done,
                b"END" | b"NOT_FOUND" => Fared::Missing,
                line if line.starts_with(b"SERVER_ERROR") || line.starts_with(b"CLIENT_ERROR") || line == b"ERROR" => {
                    Fared::Refused(shown(line))
                }
                line => return Err(format!("it says \"{}\"", shown(line))),
            };
            self.found = false;
            input.consume(len);
            let slot = self.asked.pop_front().ok_or("an answer that nobody asked for")?;
            return Ok(Some(Answer { slot, fared }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, asked, said};
    use super::*;

    #[test]
    fn requests_are_as_the_protocol_has_them() {
        let (mut wire, mut out) = (Memcached::default(), BytesMut::new());
        for op in [Op::Get, Op::Set, Op::Delete] {
            wire.ask(&asked(0, op), &mut out).unwrap();
        }
        assert_eq!(&out[..], b"get key:1\r\nset key:1 0 0 5\r\nvalue\r\ndelete key:1\r\n");
        assert!(wire.ask(&asked(0, Op::Scan), &mut out).is_err());
    }

    #[test]
    fn answers_go_to_those_who_asked_in_order() {
        let mut wire = Memcached::default();
        for slot in 0..6 {
            wire.ask(&asked(slot, Op::Get), &mut BytesMut::new()).unwrap();
        }
        let bytes = b"VALUE key:1 0 7\r\nEND\r\nx\x00\r\nEND\r\nEND\r\nSTORED\r\nNOT_FOUND\r\n\
                      SERVER_ERROR out of memory\r\nDELETED\r\n";
        let expected = [
            Fared::Done,
            Fared::Missing,
            Fared::Done,
            Fared::Missing,
            Fared::Refused("SERVER_ERROR out of memory".to_owned()),
            Fared::Done,
        ];
        let expected: Vec<_> = (0..).zip(expected).map(|(slot, fared)| said(slot, fared)).collect();
        assert_eq!(answers(&mut wire, bytes, &mut BytesMut::new()), Ok(expected));
        assert!(answers(&mut wire, b"STORED\r\n", &mut BytesMut::new()).is_err());
        assert!(answers(&mut wire, b"HTTP/1.1 400\r\n", &mut BytesMut::new()).is_err());
        assert!(answers(&mut wire, b"VALUE k 0 many\r\n", &mut BytesMut::new()).is_err());
    }
}
