//! `boltkv restore`: what a server's transactions left, from a backup and the journal that it has kept.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::run;
use crate::common::server::Server;
use serde_json::{Value, json};

const KEPT: [&str; 2] = ["--journal-keep", "1GiB"];

/// A folder with a file that was backed up, written on, and whose server was killed.
struct Past {
    folder: tempfile::TempDir,
}

impl Past {
    fn new() -> Self {
        let past = Self { folder: tempfile::tempdir().unwrap() };
        let server = Server::start_with(&past.path("app.db"), KEPT);
        assert_eq!(server.text("SET k 0\n"), "OK\n");
        server.run(args!["backup", past.path("backup.db")]).done();
        for number in 1..=3 {
            assert_eq!(server.text(&format!("SET k {number}\n")), "OK\n");
            // So that each has a time of its own.
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(server.text("DELETE k\n"), "OK\n");
        server.kill();
        past
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn line(&self) -> Vec<std::ffi::OsString> {
        args!["restore", "--backup", self.path("backup.db"), "--journal", self.path("app.db-journal")].to_vec()
    }

    fn restore(&self, more: &[&str], new: &Path) -> crate::common::Ran {
        run(self.line().into_iter().chain(more.iter().map(Into::into)).chain([new.into()]))
    }

    /// Number and time of each transaction since the backup.
    fn moments(&self) -> Vec<(u64, u64)> {
        let listed = run(self.line().into_iter().chain(["--list".into(), "--json".into()])).done_text();
        let lines: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["backup"]["transactions"], lines.len() - 1);
        let transactions = lines[1..].iter().map(|line| &line["transaction"]);
        transactions.map(|it| (it["txid"].as_u64().unwrap(), it["time"].as_u64().unwrap())).collect()
    }
}

fn value(file: &Path) -> String {
    let ran = run(args!["file", "get", file, "default", "k"]);
    if ran.code == Some(0) { ran.text() } else { "none\n".into() }
}

// Promises: ops-restore, ops-restore-when.
#[test]
fn the_state_of_each_transaction_comes_back_by_number_and_by_time() {
    let past = Past::new();
    let moments = past.moments();
    assert_eq!(moments.len(), 4);
    for (index, &(txid, time)) in moments.iter().enumerate() {
        let expected = if index == 3 { "none\n".to_owned() } else { format!("{}\n", index + 1) };
        for (number, to) in [txid.to_string(), format!("{time}ms")].into_iter().enumerate() {
            let new = past.path(&format!("{txid}-{number}.db"));
            let said = past.restore(&["--json", "--to", &to], &new).done_text();
            let said: Value = serde_json::from_str(&said).unwrap();
            let next = moments.get(index + 1).map(|next| next.1);
            assert_eq!((&said["txid"], &said["time"]), (&json!(txid), &json!(time)));
            assert_eq!((&said["transactions"], &said["next_time"]), (&json!(index + 1), &json!(next)));
            assert_eq!(value(&new).trim_matches('"'), expected, "{to}");
            run(args!["file", "check", &new]).done();
        }
    }
    let new = past.path("newest.db");
    let said = past.restore(&[], &new).done_text();
    let (newest, _) = moments[3];
    assert!(said.contains(&format!("as transaction {newest}, of 20")) && said.contains("4 after the backup"), "{said}");
    // What was restored is served as any file.
    let server = Server::start(&new);
    assert_eq!(server.text("GET k\nSET k again\n"), "(nil)\nOK\n");
}

// Promises: ops-restore-refused.
#[test]
fn what_cannot_be_reached_is_refused_and_nothing_is_written() {
    let past = Past::new();
    let new = past.path("new.db");
    let (txid, time) = past.moments()[0];
    for (to, says) in [
        ((txid - 2).to_string(), "came before the backup"),
        ("18446744073709551615".to_owned(), "ends with transaction"),
        ("1000ms".to_owned(), "it may be newer than 1970-01-01T00:00:01.000Z"),
        (format!("{}ms", time - 3_600_000), "begin with an older one"),
    ] {
        let said = past.restore(&["--to", &to], &new).failed(1);
        assert!(said.contains(says), "{said}");
    }
    for (to, says) in [
        ("yesterday", "nor a time: a time is such as 2026-11-22T14:03:00Z\n"),
        ("2026-11-30", "2026-11-30T00:00:00Z is when it begins in UTC\n"),
        ("2026-11-22T14:03:00", "it lacks its offset: 2026-11-22T14:03:00Z is in UTC"),
        ("-1", "2026-11-22T14:03:00Z"),
        ("99999999999999999999", "2^64"),
    ] {
        let ran = past.restore(&[&format!("--to={to}")], &new);
        let said = &ran.stderr;
        assert_eq!(ran.code, Some(2), "{said}");
        assert!(said.contains(says), "{said}");
    }
    fs::write(past.path("there.db"), "precious").unwrap();
    past.restore(&[], &past.path("there.db")).failed(2);
    assert_eq!(fs::read(past.path("there.db")).unwrap(), b"precious");

    let other = past.path("other.db");
    let server = Server::start_with(&other, KEPT);
    (0..9).for_each(|_| assert_eq!(server.text("SET k other\n"), "OK\n"));
    server.stop().done();
    let journal = past.path("other.db-journal");
    let line = args!["restore", "--backup", past.path("backup.db"), "--journal", journal, &new];
    let said = run(line).failed(1);
    assert!(said.contains("does not fit the file") && said.contains("boltkv backup"), "{said}");
    run(args!["restore", "--backup", past.path("none.db"), "--journal", past.path("app.db-journal"), &new]).failed(3);
    run(args!["restore", "--backup", past.path("backup.db"), "--journal", past.path("none"), &new]).failed(3);
    assert!(!new.exists());
}

// Promises: ops-restore-live.
#[test]
fn a_journal_in_use_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start_with(&path("app.db"), KEPT);
    server.run(args!["backup", path("backup.db")]).done();
    for number in 0..5 {
        assert_eq!(server.text(&format!("SET k {number}\n")), "OK\n");
        let new = path(&format!("{number}.db"));
        let line = args!["restore", "--backup", path("backup.db"), "--journal", path("app.db-journal"), &new];
        run(line).done();
        assert_eq!(value(&new).trim_matches('"'), format!("{number}\n"));
    }
}

#[test]
fn what_lies_behind_changes_without_the_journal_is_refused_with_the_last_state_before() {
    let past = Past::new();
    let off = ["--journal", "off"];
    for (flags, line) in [(KEPT, "SET k 4\n"), (off, "SET k elsewhere\n"), (KEPT, "SET k 5\n")] {
        let server = Server::start_with(&past.path("app.db"), flags);
        assert_eq!(server.text(line), "OK\n");
        server.stop();
    }
    let new = past.path("new.db");
    let refused = past.restore(&[], &new);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let (last, _) = *past.moments().last().unwrap();
    assert!(refused.stderr.contains(&format!("; `--to {last}`, of ")), "{}", refused.stderr);
    assert!(!refused.stderr.contains("damaged") && !new.exists(), "{}", refused.stderr);
    past.restore(&["--to", &last.to_string()], &new).done();
}
