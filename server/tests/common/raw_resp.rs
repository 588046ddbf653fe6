//! A client of the Redis dialect, which takes replies as they come, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;

use super::connect;

/// What a client speaks over.
pub trait Socket: Read + Write {}

impl<S: Read + Write> Socket for S {}

pub struct RawResp {
    socket: BufReader<Box<dyn Socket>>,
}

impl RawResp {
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(connect(address))
    }

    /// Speaks over a socket of any kind, and perhaps to another server.
    pub fn over(socket: impl Socket + 'static) -> Self {
        Self { socket: BufReader::new(Box::new(socket)) }
    }

    /// Sends a request and answers its reply, as it came.
    pub fn raw<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        self.send(words);
        self.reply()
    }

    /// Sends a request.
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.send_bytes(&request(words));
    }

    /// Sends bytes as they are, of one request or of many.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    /// Sends the words of a line, which have no spaces in them, and answers the reply in a form that is easily read: one value
    /// after the other, `nil` for none.
    pub fn ask(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        readable(&self.raw(&words))
    }

    /// Says each line, and compares its reply.
    pub fn all(&mut self, dialogue: &[(&str, &str)]) {
        for (line, expected) in dialogue {
            assert_eq!(self.ask(line), *expected, "{line}");
        }
    }

    /// The next reply, as it came.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        // How many values are to come yet.
        let mut left = 1;
        while left > 0 {
            left -= 1;
            let from = reply.len();
            self.socket.read_until(b'\n', &mut reply).expect("a reply comes");
            let line = String::from_utf8(reply[from..].to_vec()).unwrap();
            let count = || line[1..].trim_end().parse::<i64>().unwrap().max(-1);
            match line.as_bytes().first() {
                Some(b'$' | b'=') if count() >= 0 => {
                    let from = reply.len();
                    reply.resize(from + usize::try_from(count()).unwrap() + 2, 0);
                    self.socket.read_exact(&mut reply[from..]).expect("a value comes");
                }
                Some(b'*' | b'~') => left += count().max(0),
                Some(b'%') => left += 2 * count(),
                Some(_) => {}
                None => panic!("the server ended the connection"),
            }
        }
        reply
    }
}

/// A request as it is sent.
pub fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n", word.as_ref().len()).bytes());
        out.extend(word.as_ref());
        out.extend(b"\r\n");
    }
    out
}

/// A reply in one line: what strings and numbers say, `nil`, and how many there are of what follows, in brackets.
fn readable(reply: &[u8]) -> String {
    let mut shown = Vec::new();
    let mut rest = reply;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let (line, behind) = (&rest[..end], &rest[end + 2..]);
        rest = behind;
        let text = String::from_utf8(line[1..].to_vec()).unwrap();
        shown.push(match line[0] {
            b'$' | b'*' if text == "-1" => "nil".to_owned(),
            b'_' => "nil".to_owned(),
            b'$' | b'=' => {
                let (value, behind) = rest.split_at(text.parse().unwrap());
                rest = &behind[2..];
                value.escape_ascii().to_string()
            }
            b'*' | b'%' | b'~' => format!("[{text}]"),
            _ => text,
        });
    }
    shown.join(" ")
}
