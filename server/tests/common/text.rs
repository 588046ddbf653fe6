//! A client of the text dialect.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::{PATIENCE, connect};

pub struct Text {
    socket: BufReader<TcpStream>,
}

impl Text {
    pub fn connect(address: SocketAddr) -> Self {
        Self { socket: BufReader::new(connect(address)) }
    }

    /// The same connection once more, to send from another thread.
    pub fn sender(&self) -> Self {
        Self { socket: BufReader::new(self.socket.get_ref().try_clone().unwrap()) }
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

    /// The next line, or `None` where the connection ends or is reset before.
    pub fn try_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok().filter(|len| *len > 0)?;
        Some(line.trim_end_matches('\n').to_owned())
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

    /// Everything until the server ends the connection, if it does so in time.
    pub fn rest_within(&mut self, time: Duration) -> Option<String> {
        self.socket.get_ref().set_read_timeout(Some(time)).unwrap();
        let mut rest = String::new();
        let read = self.socket.read_to_string(&mut rest);
        self.socket.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        match read {
            Ok(_) => Some(rest),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the server resets the connection, whose sending side it has ended, in time.
    pub fn is_reset_within(&mut self, time: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < time {
            // A socket keeps the error that a reset leaves until it is asked for it.
            if self.socket.get_ref().take_error().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Everything until the server ends the connection.
    pub fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.socket.read_to_string(&mut rest).expect("the server ends the connection");
        rest
    }
}
