//! A client of the Redis dialect.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::connect;

pub struct Resp {
    pub socket: TcpStream,
    input: BufReader<TcpStream>,
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Array(Vec<Value>),
    /// Keys, each with its value behind it.
    Map(Vec<Value>),
    Set(Vec<Value>),
}

impl Value {
    /// What a text, a number or an error says.
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Null => "(nil)".to_owned(),
            other => panic!("no text but {other:?}"),
        }
    }

    /// All of it, in one line.
    pub fn shown(&self) -> String {
        let shown = |items: &[Self]| items.iter().map(Self::shown).collect::<Vec<_>>().join(" ");
        match self {
            Self::Null => "nil".to_owned(),
            Self::Simple(text) => text.clone(),
            Self::Error(text) => format!("-{text}"),
            Self::Integer(number) => number.to_string(),
            Self::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
            Self::Array(items) | Self::Set(items) => format!("[{}]", shown(items)),
            Self::Map(items) => format!("{{{}}}", shown(items)),
        }
    }

    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) | Self::Map(items) | Self::Set(items) => items,
            other => panic!("no items but {other:?}"),
        }
    }

    pub fn texts(&self) -> Vec<String> {
        self.items().iter().map(Self::text).collect()
    }
}

/// A request as an array of words.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.as_ref().len()).into_bytes());
        bytes.extend(word.as_ref());
        bytes.extend(b"\r\n");
    }
    bytes
}

impl Resp {
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(connect(address))
    }

    pub fn over(socket: TcpStream) -> Self {
        let input = BufReader::new(socket.try_clone().unwrap());
        Self { socket, input }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).unwrap();
    }

    pub fn send_words<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.send(encode(words));
    }

    /// Sends a request and answers its reply.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        self.send_words(words);
        self.reply()
    }

    /// Sends the words of a line as an array, and answers the reply, shown in one line: `OK`, `7`, `"bytes"`, `nil`, `[…]`,
    /// `{…}`, or what begins with `-` for an error.
    pub fn tell(&mut self, line: &str) -> String {
        self.tell_words(&line.split_ascii_whitespace().collect::<Vec<_>>())
    }

    /// Tells each line, and compares the reply.
    pub fn talk(&mut self, dialogue: &[(&str, &str)]) {
        for (line, expected) in dialogue {
            assert_eq!(self.tell(line), *expected, "{line}");
        }
    }

    pub fn tell_words<W: AsRef<[u8]>>(&mut self, words: &[W]) -> String {
        self.ask(words).shown()
    }

    /// Sends all of them at once; answers their replies.
    pub fn tell_all(&mut self, lines: &[&str]) -> Vec<String> {
        let words = |line: &&str| encode(&line.split_ascii_whitespace().collect::<Vec<_>>());
        self.send(lines.iter().flat_map(words).collect::<Vec<_>>());
        lines.iter().map(|_| self.reply().shown()).collect()
    }

    /// Sends the words of a line as an array, and answers the text of the reply.
    pub fn say(&mut self, line: &str) -> String {
        self.ask(&line.split(' ').collect::<Vec<_>>()).text()
    }

    /// The next reply.
    pub fn reply(&mut self) -> Value {
        self.try_reply().expect("a reply comes")
    }

    /// The next reply; `None` where the server ends the connection instead.
    pub fn try_reply(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line).ok().filter(|len| *len > 0)?;
        let text = String::from_utf8(line).unwrap();
        let (kind, rest) = text.strip_suffix("\r\n").expect("it is a line").split_at(1);
        let number = || rest.parse::<i64>().expect("it is a number");
        Some(match kind {
            "+" => Value::Simple(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            ":" => Value::Integer(number()),
            "_" => Value::Null,
            "$" | "*" if number() < 0 => Value::Null,
            "$" => Value::Bulk(self.bytes(number())),
            "=" => Value::Bulk(self.bytes(number()).split_off(4)),
            "*" => Value::Array(self.items(number())?),
            "%" => Value::Map(self.items(2 * number())?),
            "~" => Value::Set(self.items(number())?),
            other => panic!("no reply begins with {other}"),
        })
    }

    fn items(&mut self, len: i64) -> Option<Vec<Value>> {
        (0..len).map(|_| self.try_reply()).collect()
    }

    fn bytes(&mut self, len: i64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).unwrap() + 2];
        self.input.read_exact(&mut bytes).unwrap();
        assert!(bytes.ends_with(b"\r\n"));
        bytes.truncate(bytes.len() - 2);
        bytes
    }

    /// Ends the sending side.
    pub fn end(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }
}
