//! Several addresses, and sockets in the file system.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use crate::common::server::Server;
use crate::common::{boltkv, run};

// Promises: ops-unix.
#[test]
fn a_server_listens_on_a_port_and_on_a_socket_that_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (db, socket) = (folder.path().join("app.db"), folder.path().join("boltkv.sock"));
    let address = format!("unix:{}", socket.display());
    let serve = || {
        Server::spawn(
            boltkv(args!["serve", "--db", &db, "--listen", "127.0.0.1:0", "--listen"])
                .arg(format!("{address}?mode=0660")),
        )
    };
    let server = serve();
    assert!(server.ready.contains(&format!(" and {address}, ")), "{}", server.ready);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    let by_socket = |command: &[&str]| run(command.iter().copied().chain(["--addr", &address]));
    by_socket(&["set", "k", "v"]).done();
    assert_eq!(by_socket(&["get", "k"]).done_text(), "v");
    assert_eq!(by_socket(&["scan"]).done_text(), "k v\n");
    assert_eq!(server.run(["get", "k"]).done_text(), "v");
    let mut text = UnixStream::connect(&socket).unwrap();
    text.write_all(b"GET k\n").unwrap();
    text.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    text.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "v\n");

    let second = run(args!["serve", "--db", folder.path().join("other.db"), "--listen", &address]);
    assert_eq!(second.code, Some(3));
    assert!(second.stderr.contains("somebody listens there"), "{}", second.stderr);
    server.kill();
    assert!(socket.exists(), "a server that is killed leaves it");
    let again = serve();
    assert_eq!(by_socket(&["get", "k"]).done_text(), "v");
    assert_eq!(again.stop().code, Some(0));
    assert!(!socket.exists());
    let gone = by_socket(&["get", "k"]);
    assert_eq!(gone.code, Some(3));
    assert!(gone.stderr.contains(&address), "{}", gone.stderr);
}

#[test]
#[boltkv_needs::program("nc.openbsd")]
fn netcat_speaks_to_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let (db, socket) = (folder.path().join("app.db"), folder.path().join("boltkv.sock"));
    let _server =
        Server::spawn(boltkv(args!["serve", "--db", &db, "--listen"]).arg(format!("unix:{}", socket.display())));
    let answer =
        crate::common::feed(std::process::Command::new("nc.openbsd").arg("-U").arg(&socket), b"SET k v\nGET k\n");
    assert_eq!(answer.done_text(), "OK\nv\n");
}
