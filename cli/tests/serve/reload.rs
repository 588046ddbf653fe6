//! SIGHUP: the configuration file of a running server is read again. And how its log looks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use crate::common::logged::{Logged, wait_for};
use crate::common::server::{PATIENCE, Server};

// Promises: ops-reload.
#[test]
fn a_hangup_changes_the_levels_of_the_log_and_names_what_takes_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("boltkv.toml");
    let write = |text: &str| fs::write(&config, text).unwrap();
    write("log = \"info\"\n[limits]\nmax-streams = 2\n[timeouts]\nhello-timeout = 3\n");
    let server = Logged::start(folder.path(), &args!["--config", &config]);
    assert_eq!(server.server.text("PING\n"), "PONG\n");
    assert!(!server.logged().contains("connection opened"), "{}", server.logged());

    write("log = \"debug\"\n[limits]\nmax-streams = 3\nmax-frame = \"1MiB\"\n");
    server.server.signal("HUP");
    server.wait_for("was read again; changed: log", 1);
    let logged = server.logged();
    for restart in [
        "max-streams has changed (in line 3), which takes a restart",
        "max-frame has changed (in line 4), which takes a restart",
        "hello-timeout has changed (no more in the file), which takes a restart",
    ] {
        assert!(logged.contains(restart), "{restart}: {logged}");
    }
    assert_eq!(logged.matches("takes a restart").count(), 3, "{logged}");
    assert_eq!(server.server.text("PING\n"), "PONG\n");
    server.wait_for("connection opened", 1);

    // What takes a restart is said as long as it has not been done, and what has been changed is the same again.
    server.server.signal("HUP");
    server.wait_for("was read again; changed: nothing", 1);
    server.wait_for("max-streams has changed", 2);
    write("log = \"warn\"\n[limits]\nmax-streams = 2\n[timeouts]\nhello-timeout = 3\n");
    server.server.signal("HUP");
    // Nothing tells that it is quiet but that it stays so: a broken file is what is heard next.
    write("log = \"debug\"\nmax-streams = 2\n");
    server.server.signal("HUP");
    server.wait_for("nothing was changed", 1);
    assert_eq!(server.server.stop().code, Some(0));
}

// Promises: ops-reload-gates.
#[test]
fn whether_anybody_is_asked_who_he_is_takes_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (config, tokens) = (folder.path().join("boltkv.toml"), folder.path().join("tokens"));
    let token =
        crate::common::run(args!["token", "create", "admin", "--right", "admin", "--tokens", &tokens]).done_text();
    let with = format!("[access]\ntokens = {tokens:?}\n");
    let ask = |server: &Logged, lines: &str| server.server.text(lines);

    fs::write(&config, &with).unwrap();
    let server = Logged::start(folder.path(), &args!["--config", &config, "--log", "info"]);
    fs::write(&config, "").unwrap();
    server.server.signal("HUP");
    server.wait_for("was read again; changed: nothing", 1);
    let logged = server.logged();
    assert!(logged.contains("tokens has changed (no more in the file), which takes a restart"), "{logged}");
    assert!(ask(&server, "GET k\n").starts_with("ERR UNAUTHENTICATED "));
    // The file that holds still is not let go of either.
    fs::write(&config, &with).unwrap();
    fs::write(&tokens, "").unwrap();
    server.server.signal("HUP");
    server.wait_for("tokens: 0; 1 token removed or changed", 1);
    assert!(ask(&server, &format!("AUTH {token}")).starts_with("ERR UNAUTHENTICATED "));
    assert_eq!(server.server.stop().code, Some(0));

    fs::write(&config, "").unwrap();
    let server = Logged::start(folder.path(), &args!["--config", &config, "--log", "info"]);
    fs::write(&config, &with).unwrap();
    server.server.signal("HUP");
    server.wait_for("tokens has changed (in line 2), which takes a restart", 1);
    assert_eq!(ask(&server, "GET k\n"), "(nil)\n");
    assert_eq!(server.server.stop().code, Some(0));
}

// Promises: ops-reload-mistake.
#[test]
fn a_file_with_a_mistake_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("boltkv.toml");
    fs::write(&config, "log = \"info\"\n").unwrap();
    let server = Logged::start(folder.path(), &args!["--config", &config]);
    fs::write(&config, "log = \"debug\"\n[limits]\nmax-frame = \"much\"\nmax-streams = 0\n").unwrap();
    server.server.signal("HUP");
    server.wait_for("nothing was changed; the server goes on as it was", 1);
    let logged = server.logged();
    assert!(logged.contains("boltkv.toml:3: invalid value \"much\" for max-frame"), "{logged}");
    assert!(logged.contains("boltkv.toml:4: max-streams is 0, but must lie between"), "{logged}");
    fs::remove_file(&config).unwrap();
    server.server.signal("HUP");
    server.wait_for("nothing was changed", 2);
    assert!(server.logged().contains("could not read the configuration file"), "{}", server.logged());
    assert_eq!(server.server.text("PING\n"), "PONG\n");
    assert!(!server.logged().contains("connection opened"), "{}", server.logged());
    assert_eq!(server.server.stop().code, Some(0));
}

#[test]
fn what_a_flag_says_holds_whatever_the_file_says_later() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("boltkv.toml");
    fs::write(&config, "").unwrap();
    let server = Logged::start(folder.path(), &args!["--config", &config, "--log", "info", "--max-frame", "1MiB"]);
    fs::write(&config, "log = \"debug\"\n[limits]\nmax-frame = \"2MiB\"\n").unwrap();
    server.server.signal("HUP");
    server.wait_for("was read again; changed: nothing", 1);
    assert_eq!(server.server.text("PING\n"), "PONG\n");
    assert!(
        !server.logged().contains("connection opened") && !server.logged().contains("restart"),
        "{}",
        server.logged()
    );
    assert_eq!(server.server.stop().code, Some(0));
}

#[test]
fn a_hangup_while_the_file_is_opened_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let (db, config) = (folder.path().join("a.db"), folder.path().join("boltkv.toml"));
    fs::write(&config, "").unwrap();
    let first = Server::start(&db);
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = crate::common::boltkv(args!["serve", "--listen", "127.0.0.1:0", "--log", "info", "--db", &db]);
    command.args(args!["--lock-timeout", "1m", "--config", &config]);
    let waiting = command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let log = folder.path().join("log");
    let mut waiting = waiting.stdout(Stdio::null()).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut said = [0; 8];
    socket.recv(&mut said).unwrap();
    assert_eq!(&said, b"STATUS=o", "it is opening the file, which another one has");
    let id = waiting.id();
    let kill = |signal| {
        let kill = format!("kill -{signal} {id}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    kill("HUP");
    assert_eq!(first.stop().code, Some(0));
    wait_for(&log, "was read again; changed: nothing", 1);
    kill("TERM");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

// Promises: ops-log-json.
#[test]
fn a_log_of_json_has_an_object_a_line_and_names_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        Logged::start(folder.path(), &args!["--log-format", "json", "--log", "boltkv_server=debug,boltkv=debug"]);
    assert_eq!(server.server.text("SET secret-key secret-value\nGET secret-key\n"), "OK\nsecret-value\n");
    server.server.run(["set", "secret-key", "secret-value"]).done();
    server.server.signal("HUP");
    server.wait_for("there is no configuration file to read again", 1);
    let Logged { server, log } = server;
    assert_eq!(server.stop().code, Some(0));
    let logged = fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(["timestamp", "level", "target", "message"].iter().all(|key| line[key].is_string()), "{line}");
    }
    assert!(lines.iter().any(|line| line["message"] == "connection opened" && line["peer"].is_string()), "{logged}");
    assert!(lines.iter().any(|line| line["level"] == "WARN"), "{logged}");
    let asked = |line: &&serde_json::Value| line["message"] == "request" && line["span"]["peer"].is_string();
    let kinds: Vec<_> = lines.iter().filter(asked).map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["SET", "GET", "SET"], "{logged}");
    assert!(!logged.contains("secret"), "{logged}");
}
