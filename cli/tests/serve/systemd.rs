//! What a server tells systemd that has started it, and the unit that comes with it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use crate::common::boltkv;
use crate::common::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);
const UNIT: &str = include_str!("../../../docker/boltkv.service");

/// The next message.
fn told(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 4096];
    let len = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..len].to_vec()).unwrap()
}

/// The next message of which a line is this.
fn wait_for(socket: &UnixDatagram, wanted: &str) -> String {
    // Others are beats of the watchdog, and a status.
    for _ in 0..1000 {
        let message = told(socket);
        if message.lines().any(|line| line == wanted) {
            return message;
        }
    }
    panic!("{wanted} was never told");
}

fn supervisor(folder: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(folder.join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

// Promises: ops-systemd, ops-watchdog.
#[test]
fn systemd_is_told_when_it_serves_lives_and_stops() {
    let folder = tempfile::tempdir().unwrap();
    let socket = supervisor(folder.path());
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", folder.path().join("a.db")]);
    command.env("NOTIFY_SOCKET", folder.path().join("notify")).env("WATCHDOG_USEC", "200000");
    let server = Server::spawn(&mut command);
    assert!(told(&socket).starts_with("STATUS=opening "));
    let ready = wait_for(&socket, "READY=1");
    assert!(ready.contains("STATUS=boltkv: serving ") && ready.contains(server.addr()), "{ready}");
    for _ in 0..3 {
        wait_for(&socket, "WATCHDOG=1");
    }
    server.run(["ping"]).done();
    let stopped = server.stop();
    assert_eq!((stopped.code, stopped.stderr.as_str()), (Some(0), ""));
    wait_for(&socket, "STOPPING=1");
}

#[test]
fn without_a_watchdog_nothing_is_said_again_and_a_supervisor_that_is_gone_is_no_reason_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = supervisor(folder.path());
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", folder.path().join("a.db")]);
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    // Meant for another process.
    command.env("WATCHDOG_USEC", "1").env("WATCHDOG_PID", "1");
    let server = Server::spawn(&mut command);
    wait_for(&socket, "READY=1");
    drop(socket);
    server.run(["set", "k", "v"]).done();
    let stopped = server.stop();
    assert_eq!(stopped.code, Some(0));
    assert!(stopped.stderr.contains("NOTIFY_SOCKET"), "{}", stopped.stderr);
}

#[test]
fn the_unit_starts_a_server_as_it_is() {
    let setting = |name: &str| UNIT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
    assert_eq!((setting("Type"), setting("StateDirectory")), ("notify", "boltkv"));
    let (binary, args) = setting("ExecStart").split_once(' ').unwrap();
    assert_eq!(binary, "/usr/local/bin/boltkv");
    let folder = tempfile::tempdir().unwrap();
    let args = args.replace("/var/lib/boltkv", folder.path().to_str().unwrap()).replace(":7878", ":0");
    let server = Server::spawn(&mut boltkv(args.split(' ')));
    server.run(["health"]).done();
    assert!(folder.path().join("boltkv.db").is_file());
    assert_eq!(server.stop().code, Some(0));
}
