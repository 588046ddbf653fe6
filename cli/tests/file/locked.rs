//! A file that another process has open: no command waits for ever, and the message says who has it and what can be done.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::server::Server;
use crate::common::{boltkv, run};
use boltkv_storage::{Db, Options};

#[test]
fn who_holds_the_file_is_named_and_the_server_can_be_asked_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.db");
    let server = Server::start(&file);
    server.run(["bucket", "create", "users/eu"]).done();
    let place = format!("pid {}", server.id());
    let questions: [(&[&str], Option<&str>); 10] = [
        (&["buckets"], Some("boltkv bucket list --addr ")),
        (&["check"], Some("boltkv backup --check COPY --addr ")),
        (&["info"], Some("boltkv stats --addr ")),
        (&["keys", "users", "eu"], Some("boltkv scan --keys-only --bucket users/eu --addr ")),
        (&["get", "users", "a/b", "it's"], Some(r"boltkv get --bucket 'users/a\/b' 'it'\''s' --addr ")),
        (&["export"], Some("boltkv export --addr ")),
        (&["stats"], Some("boltkv bucket stat --addr ")),
        (&["pages"], None),
        (&["inspect"], None),
        (&["tree"], Some("boltkv bucket list --addr ")),
    ];
    for (command, question) in questions {
        let (name, rest) = command.split_first().unwrap();
        let line = args!["file", name, "--timeout", "0.1", &file].into_iter().chain(rest.iter().map(Into::into));
        let said = run(line).failed(3);
        assert!(said.contains("served.db is locked by another process"), "{said}");
        if cfg!(target_os = "linux") {
            assert!(said.contains(&place) && said.contains(" serve --listen 127.0.0.1:0"), "{said}");
        }
        assert!(said.contains("--timeout TIME"), "{said}");
        match question {
            // With the port that the system has chosen.
            Some(question) => {
                let addr = if cfg!(target_os = "linux") { server.addr() } else { "" };
                assert!(said.contains(&format!("or ask the server: {question}{addr}")), "{said}");
            }
            None => assert!(!said.contains("ask the server"), "{said}"),
        }
    }
    server.stop().done();
    run(args!["file", "keys", &file, "users", "eu"]).done();
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_is_asked_where_commands_are_answered_whoever_has_said_where_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.db");
    let mut command = boltkv(args!["serve", "--db", &file]);
    let server = Server::spawn(command.env("BOLTKV_LISTEN", "redis://localhost:0, 127.0.0.1:0"));
    // Which of the two ports that the system has chosen is for commands nobody can see from outside.
    let said = run(args!["file", "info", "--timeout", "0.1", &file]).failed(3);
    assert!(said.contains("or ask the server: boltkv stats --addr HOST:PORT"), "{said}");
    server.stop().done();

    let mut command = boltkv(args!["serve", "--db", &file]);
    let server = Server::spawn(command.env("BOLTKV_LISTEN", "localhost:0"));
    let (_, port) = server.addr().rsplit_once(':').unwrap();
    let said = run(args!["file", "info", "--timeout", "0.1", &file]).failed(3);
    assert!(said.contains(&format!("or ask the server: boltkv stats --addr localhost:{port}")), "{said}");
    server.stop().done();
}

#[test]
fn pages_of_a_file_in_use_can_be_looked_into_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let _held = Db::open(&file).unwrap();
    for command in [["dump", "0"].as_slice(), &["page", "3"]] {
        let line = args!["file", command[0], &file, command[1]];
        assert!(!run(line).done().is_empty());
    }
}

/// A journal that is in use is neither judged nor settled, with or without its folder.
#[test]
fn the_journal_of_a_served_file_is_left_to_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let [file, elsewhere] = ["served.db", "elsewhere"].map(|name| folder.path().join(name));
    let server = Server::start(&file);
    server.run(["set", "k", "v"]).done();
    for how in ["--apply", "--discard"] {
        let said = run(args!["file", "journal", how, "--timeout", "0.1", &file]).failed(3);
        assert!(said.contains("locked by another process") && !said.contains("--force"), "{said}");
    }
    let looked = run(args!["file", "page", &file, "0"]);
    let note = "whoever has it open knows them";
    assert!(
        looked.code == Some(0) && looked.stderr.contains(note) && !looked.stderr.contains("--apply"),
        "{}",
        looked.stderr
    );
    server.stop().done();

    let server = Server::start_with(&file, args!["--journal", &elsewhere]);
    server.run(["set", "k", "v"]).done();
    std::fs::remove_dir_all(folder.path().join("served.db-journal")).unwrap();
    let told = run(args!["file", "journal", &file]).done_text();
    assert!(told.contains("no journal beside it; if it was kept elsewhere, name its folder with --folder"), "{told}");
    server.stop().done();
}

#[test]
fn a_reader_keeps_no_reader_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    drop(Db::open(&file).unwrap());
    let _held = Options::new().read_only(true).open(&file).unwrap();
    for command in ["info", "buckets", "stats", "pages", "inspect", "tree"] {
        run(args!["file", command, &file]).done();
    }
    let said = run(args!["file", "import", "--timeout", "0", &file]).failed(3);
    assert!(said.contains(&format!("pid {} ", std::process::id())) || !cfg!(target_os = "linux"), "{said}");
}
