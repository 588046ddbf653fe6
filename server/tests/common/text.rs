//! A client of the text dialect.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::connect;

pub struct Text {
    socket: BufReader<TcpStream>,
}

impl Text {
    pub fn connect(address: SocketAddr) -> Self {
        Self { socket: BufReader::new(connect(address)) }
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let len = self.socket.read_line(&mut line).expect("a line comes");
        assert!(len > 0, "the server ended the connection");
        assert_eq!(line.pop(), Some('\n'));
        line
    }

    /// Sends a line, ended by CRLF so that the connection stays open, and answers the line that comes back.
    pub fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n"));
        self.line()
    }

    /// Sends a line and answers what comes back before `END`.
    pub fn ask_all(&mut self, line: &str) -> Vec<String> {
        self.send(format!("{line}\r\n"));
        let mut lines = Vec::new();
        loop {
            match self.line() {
                end if end == "END" => return lines,
                line => lines.push(line),
            }
        }
    }

    /// Ends the sending side.
    pub fn end(&mut self) {
        self.socket.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Everything until the server ends the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.socket.read_to_string(&mut rest).expect("the server ends the connection");
        rest
    }
}
