//! `boltkv clients` and `boltkv slowlog`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::common::run;
use crate::common::server::{PATIENCE, Server};

/// A text connection that has been answered once.
fn connected(server: &Server) -> TcpStream {
    let mut client = TcpStream::connect(server.addr()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"PING\r\n").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    client
}

#[test]
fn who_is_connected_is_listed_and_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("a.db"));
    let mut client = connected(&server);
    let table = server.run(["clients"]).done_text();
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..5], ["id", "peer", "dialect", "tls", "token"], "{table}");
    assert!(lines.len() == 3 && lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    assert_eq!(lines[1][1..5], [&client.local_addr().unwrap().to_string(), "text", "0", "-"], "{table}");
    assert_eq!((lines[1][8], lines[2][2]), ("PING", "binary"), "{table}");
    let json = server.run(["clients", "--json"]).done_text();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["command"], &first["requests"]), (&"PING".into(), &1.into()), "{json}");
    let id = first["id"].to_string();
    server.run(["clients", "kill", &id]).done();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    let gone = server.run(["clients", "kill", "999"]).failed(1);
    assert_eq!(gone, "boltkv: no connection 999\n");
    server.stop().done();
}

#[test]
fn what_took_long_is_listed_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("a.db"), ["--slow", "0", "--slow-log", "2"]);
    server.run(["set", "secret", "v"]).done();
    server.run(["get", "secret"]).done();
    server.run(["get", "missing"]).failed(1);
    let all = server.run(["slowlog", "--json"]).done_text();
    assert!(all.lines().count() == 2 && !all.contains("secret"), "{all}");
    let newest = server.run(["slowlog", "-n", "1"]).done_text();
    assert!(newest.starts_with("id ") && newest.lines().count() == 2, "{newest}");
    server.run(["slowlog", "--reset"]).done();
    let left = server.run(["slowlog", "--json"]).done_text();
    assert!(!left.contains("GET\""), "{left}");
    server.stop().done();
}

#[test]
fn where_there_are_tokens_both_need_admin() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let make = |name: &str, right: &str| {
        run(args!["token", "create", name, "--right", right, "--tokens", &tokens]).done_text().trim().to_owned()
    };
    let (writer, admin) = (make("writer", "write"), make("admin", "admin"));
    let server = Server::start_with(&folder.path().join("a.db"), ["--tokens", tokens.to_str().unwrap()]);
    for command in [&["clients"][..], &["clients", "kill", "1"], &["slowlog"], &["slowlog", "--reset"]] {
        let as_writer = server.command(command).env("BOLTKV_TOKEN", &writer).output().unwrap();
        let said = String::from_utf8(as_writer.stderr).unwrap();
        assert!(as_writer.status.code() == Some(1) && said.contains("FORBIDDEN"), "{command:?}: {said}");
    }
    let listed = server.command(["clients"]).env("BOLTKV_TOKEN", &admin).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().last().unwrap().split_whitespace().nth(4) == Some("admin"), "{listed}");
    assert_eq!(server.stop().code, Some(0));
}
