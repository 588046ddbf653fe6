//! A connection in lines that stays: one line, one answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use super::server::PATIENCE;

/// A text connection.
pub struct Text(BufReader<TcpStream>);

impl Text {
    pub fn connect(addr: &str) -> Self {
        let socket = TcpStream::connect(addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(socket))
    }

    /// The line that answers this one, or the first of those that do; nothing where the connection is closed.
    pub fn ask(&mut self, line: &str) -> String {
        // A connection that was refused is reset, sooner or later.
        let sent = self.0.get_mut().write_all(format!("{line}\r\n").as_bytes());
        if sent.is_ok() { self.line() } else { String::new() }
    }

    /// The next line; nothing where the connection is closed.
    pub fn line(&mut self) -> String {
        let mut answer = String::new();
        let _ = self.0.read_line(&mut answer);
        answer.trim_end().to_owned()
    }
}
