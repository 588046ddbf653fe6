//! `boltkv ping` and `boltkv health`: whether a server is there, for people and for machines.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::io::{Read as _, Write as _};

use crate::common::server::Server;
use crate::common::{boltkv, run};

#[test]
fn a_server_that_is_there_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("ping.db"));
    assert_eq!(server.run(["ping"]).done_text(), "PONG\n");
    assert_eq!(server.run(["health"]).done_text(), "");
    assert_eq!(server.run(["ping", "--json"]).done_text(), "{\"pong\":true}\n");
    assert_eq!(server.run(["health", "--json"]).done_text(), "{\"healthy\":true}\n");
    let addr = server.addr().to_owned();
    server.kill();
    let gone = run(["health", "--json", "--addr", &addr]);
    assert_eq!((gone.code, gone.text().as_str()), (Some(1), "{\"healthy\":false}\n"));
}

#[test]
fn a_port_for_clients_of_redis_says_that_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = args!["serve", "--listen", "redis://127.0.0.1:0", "--db", folder.path().join("ping.db")];
    let server = Server::spawn(&mut boltkv(options));
    let addr = server.addr().trim_start_matches("redis://");
    let said = run(["ping", "--addr", addr]).failed(1);
    assert!(said.contains("this port is for clients of Redis"), "{said}");
    let ran = run(["ping", "--addr", server.addr()]);
    assert!(ran.code == Some(2) && ran.stderr.contains("a port for Redis' clients"), "{}", ran.stderr);
}

#[test]
fn the_environment_may_say_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("ping.db"));
    let elsewhere = "127.0.0.1:1";
    let output = boltkv(["ping"]).env("BOLTKV_ADDR", server.addr()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"PONG\n".to_vec()));
    let output = boltkv(["ping", "--addr", server.addr()]).env("BOLTKV_ADDR", elsewhere).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "an argument says more than the environment");
}

#[test]
fn an_empty_variable_is_as_good_as_none_and_an_empty_argument_is_none_at_all() {
    // Whether somebody listens at the usual address is not this test's matter.
    for args in [&["ping", "--help"][..], &["bench", "--help"]] {
        let output = boltkv(args).env("BOLTKV_ADDR", "").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
    let output = boltkv(["ping"]).env("BOLTKV_ADDR", "").output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("ping.db"));
    let output = boltkv(["ping", "--addr", server.addr()]).env("BOLTKV_ADDR", "").output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"PONG\n".to_vec()));
    let output = boltkv(["ping", "--addr", ""]).env("BOLTKV_ADDR", server.addr()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "an empty argument is a mistake");
    for name in ["BOLTKV_TLS", "BOLTKV_TLS_CA", "BOLTKV_TLS_NAME", "BOLTKV_CLIENT_CERT", "BOLTKV_CLIENT_KEY"] {
        let output = server.command(["ping"]).env(name, "").output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), b"PONG\n".to_vec()), "{name}");
    }
    let output = boltkv(["token", "list"]).env("BOLTKV_TOKENS", "").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("required arguments were not provided"), "{said}");
}

// Promises: ops-health.
#[test]
fn a_server_with_all_its_connections_open_is_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("ping.db"), ["--max-connections", "1"]);
    let mut only = std::net::TcpStream::connect(server.addr()).unwrap();
    only.write_all(b"PING\n").unwrap();
    only.read_exact(&mut [0; 5]).unwrap();
    let ran = server.run(["health"]);
    assert_eq!((ran.code, ran.stdout.as_slice()), (Some(0), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("OVERLOADED"), "{}", ran.stderr);
    server.run(["ping"]).failed(1);
}

#[test]
fn what_is_no_address_cannot_be_used() {
    for (addr, why) in [("", "not HOST"), ("7878", "needs its host"), (":7878", "no host"), ("host:99999", "the port")]
    {
        let ran = run(["ping", "--addr", addr]);
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{addr}: {}", ran.stderr);
    }
}

#[test]
fn a_time_that_no_clock_can_wait_for_is_refused_in_words() {
    for time in ["1.8e19", "18000000000000000000", "99999d", "soon", ""] {
        for command in
            [["ping", "--timeout"], ["health", "--timeout"], ["serve", "--lock-timeout"], ["serve", "--text-linger"]]
        {
            let ran = run(command.into_iter().chain([time]));
            assert!(ran.code == Some(2) && ran.stderr.contains(command[1]), "{command:?} {time}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        }
    }
}

#[test]
fn one_that_is_not_there_makes_ping_exit_with_3_and_health_with_1() {
    // A port that was free a moment ago, and is again.
    let addr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let said = run(["ping", "--addr", &addr]).failed(3);
    assert!(said.contains(&addr), "{said}");
    let said = run(["health", "--addr", &addr]).failed(1);
    assert!(said.contains(&addr), "{said}");
}
