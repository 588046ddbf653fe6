//! A client of the Redis dialect that reads replies as they stand on the wire.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpStream};

use super::{connect, send};

/// A connection that speaks the Redis dialect.
pub struct Resp {
    socket: TcpStream,
    input: BufReader<TcpStream>,
}

/// A request, as an array of words.
pub fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl Resp {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = connect(address);
        let input = BufReader::new(socket.try_clone().unwrap());
        Self { socket, input }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        send(&mut self.socket, bytes);
    }

    /// Sends a request of words between blanks, and answers its reply, shown in one line: `OK`, `7`, `"bytes"`, `nil`,
    /// `[…]`, `{…}`, or what begins with `-` for an error.
    pub fn ask(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        self.ask_words(&words)
    }

    pub fn ask_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        self.send(&request(words));
        self.reply()
    }

    /// Sends all of them at once; answers their replies.
    pub fn ask_all(&mut self, lines: &[&str]) -> Vec<String> {
        let words = |line: &&str| request(&line.split_ascii_whitespace().collect::<Vec<_>>());
        self.send(&lines.iter().flat_map(words).collect::<Vec<_>>());
        lines.iter().map(|_| self.reply()).collect()
    }

    /// The next reply.
    pub fn reply(&mut self) -> String {
        let mut line = String::new();
        self.input.read_line(&mut line).unwrap();
        let line = line.strip_suffix("\r\n").unwrap_or_else(|| panic!("{line:?} does not end"));
        let (kind, rest) = line.split_at(1);
        let len = || rest.parse::<i64>().unwrap();
        match kind {
            "+" => rest.to_owned(),
            "-" => line.to_owned(),
            ":" => rest.to_owned(),
            "_" => "nil".to_owned(),
            "$" | "=" if len() < 0 => "nil".to_owned(),
            "$" | "=" => format!("\"{}\"", self.bytes(len()).escape_ascii()),
            "*" if len() < 0 => "nil".to_owned(),
            "*" | "~" | ">" => self.several(len(), "[", "]"),
            "%" => self.several(2 * len(), "{", "}"),
            _ => panic!("{line:?} is no reply"),
        }
    }

    fn bytes(&mut self, len: i64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap() + 2];
        self.input.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes.split_off(bytes.len() - 2), b"\r\n");
        bytes
    }

    fn several(&mut self, len: i64, opened: &str, closed: &str) -> String {
        let mut text = opened.to_owned();
        for at in 0..len {
            let reply = self.reply();
            write!(text, "{}{reply}", if at == 0 { "" } else { " " }).unwrap();
        }
        text + closed
    }

    /// Everything that comes until the server ends the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A peer that is gone has ended too.
        let _ = self.input.read_to_end(&mut rest);
        rest
    }
}
