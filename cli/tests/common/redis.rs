//! A Redis of a test's own, and a client that speaks its protocol to it, or to boltkv.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use super::other::Peer;
use super::server::PATIENCE;

/// A Redis that runs; killed when it is dropped.
pub struct Redis {
    _peer: Peer,
    pub addr: String,
    _folder: tempfile::TempDir,
}

impl Redis {
    #[track_caller]
    pub fn start(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let peer = Peer::start(|port| {
            let mut command = Command::new("redis-server");
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
            command.arg(folder.path()).args(more);
            command
        });
        Self { addr: peer.address.to_string(), _peer: peer, _folder: folder }
    }

    #[track_caller]
    pub fn client(&self) -> Resp {
        Resp::connect(&self.addr)
    }
}

/// A connection that speaks Redis' protocol.
pub struct Resp(BufReader<TcpStream>);

impl Resp {
    #[track_caller]
    pub fn connect(addr: &str) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// What is said to a command, as it is sent: arrays and values with all in them.
    #[track_caller]
    pub fn ask(&mut self, words: &[&[u8]]) -> Vec<u8> {
        self.0.get_mut().write_all(&command(words)).unwrap();
        self.reply()
    }

    /// The same, of words that are text.
    #[track_caller]
    pub fn say(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.ask(&words)).unwrap()
    }

    /// Has many commands done, none of which may be refused.
    #[track_caller]
    pub fn load(&mut self, commands: impl IntoIterator<Item = Vec<Vec<u8>>>) {
        let commands: Vec<_> = commands.into_iter().collect();
        for commands in commands.chunks(1_000) {
            let words = |words: &Vec<Vec<u8>>| command(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            self.0.get_mut().write_all(&commands.iter().flat_map(words).collect::<Vec<_>>()).unwrap();
            for _ in commands {
                let reply = self.reply();
                assert!(!reply.starts_with(b"-"), "{}", reply.escape_ascii());
            }
        }
    }

    fn reply(&mut self) -> Vec<u8> {
        let (mut reply, mut left) = (Vec::new(), 1_usize);
        while left > 0 {
            left -= 1;
            let from = reply.len();
            self.0.read_until(b'\n', &mut reply).unwrap();
            let line = String::from_utf8_lossy(&reply[from..]).trim_end().to_owned();
            let number = line.get(1..).and_then(|digits| digits.parse::<usize>().ok());
            match (line.as_bytes().first(), number) {
                (Some(b'$'), Some(len)) => {
                    let body = reply.len();
                    reply.resize(body + len + 2, 0);
                    self.0.read_exact(&mut reply[body..]).unwrap();
                }
                (Some(b'*'), Some(len)) => left += len,
                _ => {}
            }
        }
        reply
    }
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(*word);
        bytes.extend(b"\r\n");
    }
    bytes
}
