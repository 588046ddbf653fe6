//! What a server says in Redis' protocol, RESP 2, read with bounds: whoever answers may be anybody.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// A line, which is a number, a length or a message, is no longer than this.
const MOST_LINE: u64 = 64 * 1024;
/// The longest value that Redis has is 512 MiB; what is longer is no length.
const MOST_BULK: usize = 1 << 29;
/// A reply has no more than so many bytes in all its values,
const MOST_BYTES: usize = 1 << 30;
/// no more values than this,
const MOST_VALUES: usize = 1 << 22;
/// and arrays in arrays no deeper than SCAN's.
const MOST_DEEP: usize = 2;
/// Of what a length says, so much is believed before it has come.
const BELIEVED: usize = 64 * 1024;

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// A word: `OK`, `string`.
    Word(String),
    /// No, and why.
    Refused(String),
    Number(i64),
    Value(Bytes),
    /// There is none.
    Nil,
    Array(Vec<Self>),
}

/// An array that is not whole yet.
struct Unfinished {
    values: Vec<Reply>,
    len: usize,
}

/// Reads one reply.
///
/// # Errors
/// Those of the connection; [`io::ErrorKind::InvalidData`], with the reason, where it is no reply.
pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Reply> {
    // Arrays that are being read, the innermost last: what nests takes no stack of ours.
    let mut open: Vec<Unfinished> = Vec::new();
    let (mut bytes, mut values) = (0, 0);
    loop {
        let line = line(from).await?;
        let (kind, rest) = line.split_first().ok_or_else(|| broken("an empty line"))?;
        values += 1;
        if values > MOST_VALUES {
            return Err(broken("a reply of too many values"));
        }
        let mut value = match kind {
            b'+' => Reply::Word(text(rest)),
            b'-' => Reply::Refused(text(rest)),
            b':' => Reply::Number(number(rest)?),
            b'$' | b'*' if rest == b"-1" => Reply::Nil,
            b'$' => {
                let value = bulk(from, len(rest)?).await?;
                bytes += value.len();
                Reply::Value(value)
            }
            b'*' => match len(rest)? {
                0 => Reply::Array(Vec::new()),
                _ if open.len() >= MOST_DEEP => return Err(broken("arrays in arrays in arrays")),
                len => {
                    open.push(Unfinished { values: Vec::new(), len });
                    continue;
                }
            },
            _ => return Err(broken(&format!("\"{}\"", text(&line)))),
        };
        if bytes > MOST_BYTES {
            return Err(broken("a reply that is too long"));
        }
        // Whatever is whole now goes into the array around it, which may be whole with it.
        loop {
            let Some(mut around) = open.pop() else { return Ok(value) };
            around.values.push(value);
            if around.values.len() < around.len {
                open.push(around);
                break;
            }
            value = Reply::Array(around.values);
        }
    }
}

/// A line without its end.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(MOST_LINE).read_until(b'\n', &mut line).await?;
    if line.ends_with(b"\r\n") {
        line.truncate(line.len() - 2);
        return Ok(line);
    }
    if line.is_empty() {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Err(broken(&format!("\"{}\"", text(&line))))
    }
}

/// So many bytes, and the line end behind them.
async fn bulk(from: &mut (impl AsyncBufRead + Unpin), len: usize) -> io::Result<Bytes> {
    if len > MOST_BULK {
        return Err(broken(&format!("a value of {len} bytes")));
    }
    let mut value = BytesMut::with_capacity(len.min(BELIEVED));
    let mut limited = (&mut *from).take(len as u64);
    while value.len() < len {
        if limited.read_buf(&mut value).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let mut end = [0; 2];
    from.read_exact(&mut end).await?;
    if end == *b"\r\n" { Ok(value.freeze()) } else { Err(broken("a value that does not end where it should")) }
}

fn number(digits: &[u8]) -> io::Result<i64> {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| broken(&format!("the number \"{}\"", text(digits))))
}

fn len(digits: &[u8]) -> io::Result<usize> {
    usize::try_from(number(digits)?).map_err(|_| broken(&format!("the length \"{}\"", text(digits))))
}

/// As much of it as fits a message.
fn text(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let shown = bytes.get(..MOST).unwrap_or(bytes);
    String::from_utf8_lossy(shown).trim_end().to_owned()
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it does not speak Redis' protocol, but sends {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(mut bytes: &[u8]) -> Vec<io::Result<Reply>> {
        let mut replies = Vec::new();
        while !bytes.is_empty() {
            replies.push(read(&mut bytes).await);
            if replies.last().is_some_and(Result::is_err) {
                break;
            }
        }
        replies
    }

    #[tokio::test]
    async fn replies_of_all_kinds_are_read_one_after_the_other() {
        let bytes = b"+OK\r\n-ERR no\r\n:-12\r\n$-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*-1\r\n*0\r\n\
                      *2\r\n$1\r\n7\r\n*3\r\n$1\r\na\r\n$-1\r\n*0\r\n:1\r\n";
        let replies: Vec<_> = all(bytes).await.into_iter().map(Result::unwrap).collect();
        let value = |value: &'static [u8]| Reply::Value(Bytes::from_static(value));
        let expected = [
            Reply::Word("OK".into()),
            Reply::Refused("ERR no".into()),
            Reply::Number(-12),
            Reply::Nil,
            value(b""),
            value(b"a\r\nb"),
            Reply::Nil,
            Reply::Array(vec![]),
            Reply::Array(vec![value(b"7"), Reply::Array(vec![value(b"a"), Reply::Nil, Reply::Array(vec![])])]),
            Reply::Number(1),
        ];
        assert_eq!(replies, expected);
    }

    #[tokio::test]
    async fn what_is_no_reply_is_an_error_and_takes_no_memory() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"+OK",
            b"+OK\n",
            b"$x\r\n",
            b"$-2\r\n",
            b"$99999999999999999999\r\n",
            b"$536870913\r\n",
            b"$500000000\r\nabc",
            b"$1\r\nabc\r\n",
            b"*2147483647\r\n:1\r\n",
            b"*1\r\n*1\r\n*1\r\n:1\r\n",
            b":\r\n",
            b":1.5\r\n",
        ] {
            let replies = all(bytes).await;
            assert!(replies.last().is_some_and(Result::is_err), "{}", bytes.escape_ascii());
        }
        assert!(all(&vec![b'+'; 70_000]).await.last().is_some_and(Result::is_err));
    }
}
