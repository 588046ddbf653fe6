//! A request to a server's admin address, and its answer.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::server::PATIENCE;

/// A page's status, and what it says.
#[track_caller]
pub fn get(addr: &str, page: &str) -> (u16, String) {
    send(addr, &format!("GET {page} HTTP/1.1\r\nHost: boltkv\r\n\r\n"))
}

/// What is answered to these bytes, to the end of the connection.
#[track_caller]
pub fn send(addr: &str, request: &str) -> (u16, String) {
    let mut stream = connect(addr);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer of HTTP: {answer}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[track_caller]
pub fn connect(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}
