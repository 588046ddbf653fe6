//! Redis' protocol, RESP 2. Answers come in the order of the requests.
//!
//! Redis has no order of keys to scan in: a scan here is what users do there, SCAN for the next keys and MGET for their
//! values, and each connection goes on where it was.

use std::collections::VecDeque;

use bytes::{BufMut as _, BytesMut};

use super::{Answer, Asked, Broken, Fared, Wire, number, shown};
use crate::Op;
use crate::input::Input;

/// How many keys a step of SCAN asks for where all are wanted.
const STEP: u64 = 1000;
const NO_ARRAY: &str = "an array that is none";

/// One connection's state.
#[derive(Debug, Default)]
pub(crate) struct Redis {
    /// What is in flight, in the order of the answers.
    asked: VecDeque<(u32, Due)>,
    /// Where SCAN goes on.
    cursor: u64,
    /// Of the MGET whose answer is arriving: how many values are still to come.
    values: Option<u64>,
}

/// What an answer is to.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// GET, SET: nil or anything else.
    Plain,
    /// DEL: how many there were.
    Deleted,
    /// The next keys, of a scan of so many in all.
    Keys(Scanned),
    /// Their values.
    Values(Scanned),
}

/// How far a scan is.
#[derive(Debug, Clone, Copy)]
struct Scanned {
    entries: u64,
    /// It goes on until there are no more.
    whole: bool,
}

impl Redis {
    fn scan(&mut self, slot: u32, step: u64, scanned: Scanned, out: &mut BytesMut) {
        let (cursor, step) = (self.cursor.to_string(), step.to_string());
        command(&[b"SCAN", cursor.as_bytes(), b"COUNT", step.as_bytes()], out);
        self.asked.push_back((slot, Due::Keys(scanned)));
    }

    /// A SCAN's answer, once it is there as a whole. What comes of the keys is a further step.
    fn keys(&mut self, scanned: Scanned, slot: u32, input: &mut Input, out: &mut BytesMut) -> Result<bool, Broken> {
        let Some((cursor, keys, len)) = parse_scan(input.bytes())? else { return Ok(false) };
        self.cursor = cursor;
        self.asked.pop_front();
        if !keys.is_empty() {
            let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..]).chain(keys).collect();
            command(&words, out);
            self.asked.push_back((slot, Due::Values(scanned)));
        }
        input.consume(len);
        Ok(true)
    }

    /// What follows when a step of a scan is over.
    fn next_step(&mut self, slot: u32, scanned: Scanned, out: &mut BytesMut) -> Option<Answer> {
        if scanned.whole && self.cursor != 0 {
            self.scan(slot, STEP, scanned, out);
            return None;
        }
        Some(Answer { slot, fared: Fared::Entries(scanned.entries) })
    }
}

/// What a line of an answer says.
enum Line {
    /// This, of the request itself.
    Fared(Fared),
    /// A SCAN's keys follow, or an MGET's values.
    Array,
    /// A value among several, of so many bytes; `None`: there is none.
    Value(Option<usize>),
}

impl Wire for Redis {
    fn ask(&mut self, asked: &Asked<'_>, out: &mut BytesMut) -> Result<(), Broken> {
        let due = match asked.op {
            Op::Get => {
                command(&[b"GET", asked.key], out);
                Due::Plain
            }
            Op::Set => {
                command(&[b"SET", asked.key, asked.value], out);
                Due::Plain
            }
            Op::Delete => {
                command(&[b"DEL", asked.key], out);
                Due::Deleted
            }
            Op::Scan => {
                let whole = asked.scan_length == 0;
                let step = if whole { STEP } else { asked.scan_length };
                if whole {
                    self.cursor = 0;
                }
                self.scan(asked.slot, step, Scanned { entries: 0, whole }, out);
                return Ok(());
            }
        };
        self.asked.push_back((asked.slot, due));
        Ok(())
    }

    fn answer(&mut self, input: &mut Input, out: &mut BytesMut) -> Result<Option<Answer>, Broken> {
        loop {
            let Some(line) = input.line() else { return Ok(None) };
            let len = line.len() + 2;
            let (slot, due) = *self.asked.front().ok_or("an answer that nobody asked for")?;
            match self.read(line, due)? {
                (Line::Fared(fared), body) => {
                    input.consume(len.saturating_add(body));
                    self.values = None;
                    self.asked.pop_front();
                    return Ok(Some(Answer { slot, fared }));
                }
                (Line::Array, _) => match due {
                    Due::Keys(scanned) => {
                        if !self.keys(scanned, slot, input, out)? {
                            return Ok(None);
                        }
                        // Keys without values to ask for: the step is over.
                        let is_asked = matches!(self.asked.back(), Some((of, Due::Values(_))) if *of == slot);
                        if !is_asked && let Some(answer) = self.next_step(slot, scanned, out) {
                            return Ok(Some(answer));
                        }
                    }
                    _ => input.consume(len),
                },
                (Line::Value(value), body) => {
                    input.consume(len.saturating_add(body));
                    if let Some(answer) = self.value(slot, value.is_some(), out) {
                        return Ok(Some(answer));
                    }
                }
            }
        }
    }
}

impl Redis {
    /// What a line says, and how many bytes follow it.
    fn read(&mut self, line: &[u8], due: Due) -> Result<(Line, usize), Broken> {
        let (kind, rest) = line.split_first().ok_or("an empty line")?;
        let plain = |fared| Ok((Line::Fared(fared), 0));
        match (kind, due) {
            (b'-', _) if self.values.is_none() => plain(Fared::Refused(shown(rest))),
            (b'+', Due::Plain) => plain(Fared::Done),
            (b':', Due::Deleted) => plain(if rest == b"0" { Fared::Missing } else { Fared::Done }),
            (b'$', Due::Plain) => {
                let (fared, body) = match bulk(rest)? {
                    None => (Fared::Missing, 0),
                    Some(len) => (Fared::Done, len + 2),
                };
                Ok((Line::Fared(fared), body))
            }
            (b'*', Due::Keys(_)) => Ok((Line::Array, 0)),
            (b'*', Due::Values(_)) if self.values.is_none() => {
                let values: u64 = number(rest)?;
                if values == 0 {
                    return Err(NO_ARRAY.to_owned());
                }
                self.values = Some(values);
                Ok((Line::Array, 0))
            }
            (b'$', Due::Values(_)) if self.values.is_some() => {
                let value = bulk(rest)?;
                Ok((Line::Value(value), value.map_or(0, |len| len + 2)))
            }
            _ => Err(format!("it says \"{}\"", shown(line))),
        }
    }

    /// One of several values has come.
    fn value(&mut self, slot: u32, is_there: bool, out: &mut BytesMut) -> Option<Answer> {
        let (_, Due::Values(scanned)) = self.asked.front_mut()? else { return None };
        scanned.entries += u64::from(is_there);
        let scanned = *scanned;
        let left = self.values?.saturating_sub(1);
        self.values = Some(left);
        if left > 0 {
            return None;
        }
        self.values = None;
        self.asked.pop_front();
        self.next_step(slot, scanned, out)
    }
}

/// The longest value that Redis has is 512 MiB; more is no length.
const MOST_BULK: usize = 1 << 30;

/// A bulk string's length; `None` for the nil one.
fn bulk(digits: &[u8]) -> Result<Option<usize>, Broken> {
    if digits == b"-1" {
        return Ok(None);
    }
    let len = number(digits)?;
    if len > MOST_BULK { Err(format!("a value of {len} bytes")) } else { Ok(Some(len)) }
}

/// Appends a command of these words.
pub(crate) fn command(words: &[&[u8]], out: &mut BytesMut) {
    put_len(b'*', words.len(), out);
    for word in words {
        put_len(b'$', word.len(), out);
        out.put_slice(word);
        out.put_slice(b"\r\n");
    }
}

fn put_len(kind: u8, mut len: usize, out: &mut BytesMut) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while at == digits.len() || len > 0 {
        at -= 1;
        digits[at] = b'0' + u8::try_from(len % 10).unwrap_or(0);
        len /= 10;
    }
    out.put_u8(kind);
    out.put_slice(&digits[at..]);
    out.put_slice(b"\r\n");
}

/// The cursor and the keys that a SCAN's answer holds, and how long it is; `None` where it is not all there.
type Keys<'a> = (u64, Vec<&'a [u8]>, usize);

fn parse_scan(bytes: &[u8]) -> Result<Option<Keys<'_>>, Broken> {
    let mut rest = bytes;
    let (Some(2), Some(cursor)) = (take_len(&mut rest, b'*')?, take_bulk(&mut rest)?) else { return Ok(None) };
    let cursor = number(cursor)?;
    let Some(count) = take_len(&mut rest, b'*')? else { return Ok(None) };
    let mut keys = Vec::new();
    for _ in 0..count {
        let Some(key) = take_bulk(&mut rest)? else { return Ok(None) };
        keys.push(key);
    }
    Ok(Some((cursor, keys, bytes.len() - rest.len())))
}

fn take_len(rest: &mut &[u8], kind: u8) -> Result<Option<usize>, Broken> {
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, after) = rest.split_at(end);
    let digits = line.strip_prefix(&[kind]).ok_or_else(|| format!("it says \"{}\"", shown(line)))?;
    let len = bulk(digits)?.ok_or(NO_ARRAY)?;
    *rest = &after[2..];
    Ok(Some(len))
}

fn take_bulk<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Broken> {
    let Some(len) = take_len(rest, b'$')? else { return Ok(None) };
    if rest.len() < len + 2 {
        return Ok(None);
    }
    let (word, after) = rest.split_at(len);
    *rest = &after[2..];
    Ok(Some(word))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answers, asked, said};
    use super::*;

    #[test]
    fn requests_are_as_the_protocol_has_them() {
        let (mut wire, mut out) = (Redis::default(), BytesMut::new());
        for op in [Op::Get, Op::Set, Op::Delete, Op::Scan] {
            wire.ask(&asked(0, op), &mut out).unwrap();
        }
        let expected = "*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$5\r\nvalue\r\n\
                        *2\r\n$3\r\nDEL\r\n$5\r\nkey:1\r\n*4\r\n$4\r\nSCAN\r\n$1\r\n0\r\n$5\r\nCOUNT\r\n$1\r\n2\r\n";
        assert_eq!(std::str::from_utf8(&out), Ok(expected));
        let mut out = BytesMut::new();
        command(&[&[b'x'; 12_345]], &mut out);
        assert!(out.starts_with(b"*1\r\n$12345\r\nxxx"));
    }

    #[test]
    fn answers_go_to_those_who_asked_in_order() {
        let mut wire = Redis::default();
        for (slot, op) in (0..).zip([Op::Get, Op::Get, Op::Set, Op::Delete, Op::Delete, Op::Set]) {
            wire.ask(&asked(slot, op), &mut BytesMut::new()).unwrap();
        }
        let bytes = b"$4\r\n+\r\n-\r\n$-1\r\n+OK\r\n:1\r\n:0\r\n-OOM no memory\r\n";
        let expected = [
            Fared::Done,
            Fared::Missing,
            Fared::Done,
            Fared::Done,
            Fared::Missing,
            Fared::Refused("OOM no memory".to_owned()),
        ];
        let expected: Vec<_> = (0..).zip(expected).map(|(slot, fared)| said(slot, fared)).collect();
        assert_eq!(answers(&mut wire, bytes, &mut BytesMut::new()), Ok(expected));
    }

    #[test]
    fn a_scan_asks_for_the_values_of_the_keys_that_it_found_and_goes_on_where_it_was() {
        let (mut wire, mut out) = (Redis::default(), BytesMut::new());
        wire.ask(&asked(0, Op::Scan), &mut out).unwrap();
        wire.ask(&asked(1, Op::Get), &mut out).unwrap();
        out.clear();
        let bytes = b"*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nv\r\n";
        assert_eq!(answers(&mut wire, bytes, &mut out), Ok(vec![said(1, Fared::Done)]));
        assert_eq!(&out[..], b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n");
        out.clear();
        assert_eq!(answers(&mut wire, b"*2\r\n$3\r\nabc\r\n$-1\r\n", &mut out), Ok(vec![said(0, Fared::Entries(1))]));
        wire.ask(&asked(0, Op::Scan), &mut out).unwrap();
        assert!(out.ends_with(b"$4\r\nSCAN\r\n$2\r\n17\r\n$5\r\nCOUNT\r\n$1\r\n2\r\n"));
    }

    #[test]
    fn a_scan_of_all_ends_when_redis_says_so_also_over_steps_without_keys() {
        let (mut wire, mut out) = (Redis::default(), BytesMut::new());
        wire.ask(&Asked { scan_length: 0, ..asked(0, Op::Scan) }, &mut out).unwrap();
        let bytes = b"*2\r\n$1\r\n5\r\n*1\r\n$1\r\na\r\n*1\r\n$1\r\nx\r\n*2\r\n$1\r\n6\r\n*0\r\n\
                      *2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n*1\r\n$1\r\ny\r\n";
        assert_eq!(answers(&mut wire, bytes, &mut out), Ok(vec![said(0, Fared::Entries(2))]));
    }

    #[test]
    fn what_is_no_answer_ends_the_connection() {
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"$many\r\n", b"$99999999999\r\n", b":1\r\n", b"*1\r\n", b"\r\n"] {
            let mut wire = Redis::default();
            wire.ask(&asked(0, Op::Get), &mut BytesMut::new()).unwrap();
            assert!(answers(&mut wire, bytes, &mut BytesMut::new()).is_err(), "{}", shown(bytes));
        }
        for bytes in [&b"*2\r\n$1\r\nx\r\n*0\r\n"[..], b"*2\r\n+1\r\n", b"*-1\r\n", b"$1\r\n"] {
            let mut wire = Redis::default();
            wire.ask(&asked(0, Op::Scan), &mut BytesMut::new()).unwrap();
            assert!(answers(&mut wire, bytes, &mut BytesMut::new()).is_err(), "{}", shown(bytes));
        }
        assert!(answers(&mut Redis::default(), b"+OK\r\n", &mut BytesMut::new()).is_err());
    }
}
