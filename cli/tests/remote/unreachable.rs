//! What a command says, and with what it exits, when there is no server, something else, or a server that goes away: scripts
//! have to tell what never happened from what may have happened.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::common::run;
use crate::common::server::{PATIENCE, Server};

/// What a server answers to HELLO.
const HELLO: [u8; 30] = *b"\0\0\0\x1a\0\0\0\x01\0\x80\x01\0\0\0\0\0\x10\0\0\0\0\0\x04\0\0\0\x02\0\0\0";

/// Something at a port that does this with each of its connections.
fn somebody(act: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    // It ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let act = act.clone();
            thread::spawn(move || act(stream));
        }
    });
    addr
}

/// Reads one frame, or to the end of the connection.
fn frame(stream: &mut TcpStream) {
    let mut len = [0; 4];
    if stream.read_exact(&mut len).is_ok() {
        let mut rest = vec![0; usize::try_from(u32::from_be_bytes(len)).unwrap()];
        stream.read_exact(&mut rest).unwrap();
    }
}

// Promises: ops-unknown.
#[test]
fn a_write_that_was_sent_and_not_answered_exits_with_4_and_a_read_with_3() {
    let addr = somebody(|mut stream| {
        frame(&mut stream);
        stream.write_all(&HELLO).unwrap();
        frame(&mut stream);
    });
    for write in [&["set", "k", "v"][..], &["delete", "k"], &["bucket", "create", "b"], &["bucket", "delete", "b"]] {
        let said = run(write.iter().chain(&["--addr", &addr])).failed(4);
        assert!(said.contains("whether the write was done is unknown"), "{write:?}: {said}");
    }
    for read in [&["get", "k"][..], &["ping"], &["scan"], &["scan", "--count"]] {
        let said = run(read.iter().chain(&["--addr", &addr])).failed(3);
        assert!(said.contains("the connection was lost"), "{read:?}: {said}");
    }
}

#[test]
fn a_scan_that_breaks_off_prints_what_came_and_exits_with_3() {
    let addr = somebody(|mut stream| {
        frame(&mut stream);
        stream.write_all(&HELLO).unwrap();
        frame(&mut stream);
        // One entry, and word of more; then the end. The connection that asks for no scan is closed by the client first.
        let _ = stream.write_all(b"\0\0\0\x13\0\0\0\x02\0\x81\0\0\0\x01\0\0\x01k\0\0\0\x01v");
    });
    let ran = run(["scan", "--addr", &addr]);
    assert_eq!(ran.text(), "k v\n");
    let said = ran.failed(3);
    assert!(said.contains("the connection was lost"), "{said}");
}

#[test]
fn what_was_never_reached_exits_with_3_also_for_a_write() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let said = run(["set", "k", "v", "--addr", &addr]).failed(3);
    assert!(said.contains("cannot connect") && said.contains("refused"), "{said}");
}

#[test]
fn a_server_that_speaks_http_is_called_that() {
    let addr = somebody(|mut stream| {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").unwrap();
        frame(&mut stream);
    });
    let said = run(["set", "k", "v", "--addr", &addr]).failed(3);
    assert!(said.contains(&addr) && said.contains("is no boltkv server: it speaks HTTP"), "{said}");
}

#[test]
fn a_server_that_is_stopped_is_there_and_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("stopped.db"));
    server.signal("STOP");
    let said = server.run(["get", "k", "--timeout", "200ms"]).failed(3);
    assert!(said.contains(server.addr()) && said.contains("takes connections but does not answer"), "{said}");
    server.signal("CONT");
}

/// As Redis and servers of HTTP do, which wait for the end of a line.
#[test]
fn of_what_takes_connections_and_says_nothing_it_is_asked_whether_it_is_a_server() {
    let addr = somebody(|mut stream| {
        frame(&mut stream);
        frame(&mut stream);
    });
    let said = run(["get", "k", "--timeout", "200ms", "--addr", &addr]).failed(3);
    assert!(said.ends_with("nothing within 200ms; is it a boltkv server?\n"), "{said}");
}

#[test]
fn a_url_is_no_address_and_that_is_said_before_anybody_is_asked() {
    for command in [&["get", "k"][..], &["bench"], &["serve"]] {
        let option = if command[0] == "serve" { "--listen" } else { "--addr" };
        let ran = run(command.iter().chain(&[option, "http://127.0.0.1:17878"]));
        assert_eq!(ran.code, Some(2), "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("HOST:PORT, without http://"), "{command:?}: {}", ran.stderr);
    }
}
