//! `boltkv backup`: a file of one transaction of a server that is written meanwhile, or nothing at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::peer::peer;
use crate::common::server::{PATIENCE, Server};
use crate::common::{boltkv, run};
use boltkv_storage::{Durability, Error, Options};

/// A file of about so many MiB.
fn make(file: &Path, mib: u32) {
    let db = Options::new().durability(Durability::Never).open(file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..mib * 1000).try_for_each(|n| bucket.put(format!("key {n:010}"), vec![b'v'; 1000]))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    db.close().unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Waits for what must come.
#[track_caller]
fn wait_until(mut done: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "it did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A backup so slow that it is met at work; its temporary file is there.
fn slow_backup(server: &Server, folder: &Path) -> Child {
    let mut command = server.command(args!["backup", folder.join("copy"), "--rate", "64KiB"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| names(folder).iter().any(|name| name.starts_with("copy.new-")));
    child
}

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -{name} {}", child.id())).status();
    assert!(sent.unwrap().success());
}

/// Bytes of a process that no file backs.
fn private_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

// Promises: ops-backup, ops-backup-memory.
#[test]
fn a_backup_under_full_load_has_what_was_answered_takes_little_memory_and_is_sound_for_go_too() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("app.db");
    make(&db, 64);
    let server = Server::start_with(&db, ["--journal-size", "1MiB"]);
    let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut load = server.command(args!["bench", "-t", "set", "-c", "8", "-d", "1KiB", "--keys", "5000"]);
            let load = load.args(["-b", "load", "--duration", "1h", "--warm-up", "0s"]);
            let mut child = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let n = answered.load(Ordering::Relaxed) + 1;
                server.run(["set", "number", &n.to_string()]).done();
                answered.store(n, Ordering::Release);
            }
            child.kill().unwrap();
            child.wait().unwrap();
        });
        wait_until(|| answered.load(Ordering::Acquire) > 2);
        let (before, memory) = (answered.load(Ordering::Acquire), private_memory(server.id()));
        // Two at once: as many as the server does.
        let most = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let backups = ["one", "two"].map(|name| {
                let (server, copy) = (&server, folder.path().join(name));
                scope.spawn(move || server.run(args!["backup", "--check", copy]).done_text())
            });
            while backups.iter().any(|backup| !backup.is_finished()) {
                most.fetch_max(private_memory(server.id()), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
            for backup in backups {
                assert!(backup.join().unwrap().contains(" bytes, checked\n"));
            }
        });
        let grown = most.load(Ordering::Relaxed).saturating_sub(memory);
        assert!(grown < 16 << 20, "{grown} bytes");
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap();
        for name in ["one", "two"] {
            let copy = folder.path().join(name);
            let number = {
                let db = Options::new().read_only(true).open(&copy).unwrap();
                let tx = db.begin().unwrap();
                let number = tx.bucket("default").unwrap().get("number").unwrap().unwrap();
                String::from_utf8(number.to_vec()).unwrap().parse::<u64>().unwrap()
            };
            assert!(number >= before, "{number} is older than {before}");
            if let Some(peer) = peer() {
                peer.assert_check_clean(&copy);
            }
        }
    });
    assert_eq!(names(folder.path()), ["app.db", "app.db-journal", "one", "two"]);
}

// Promises: ops-backup-replace.
#[test]
fn a_file_that_is_there_is_replaced_only_where_that_is_asked_for_and_nobody_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let (db, copy) = (folder.path().join("app.db"), folder.path().join("copy"));
    let server = Server::start(&db);
    server.run(["set", "hello", "world"]).done();
    let said = server.run(args!["backup", &copy]).done_text();
    assert!(said.starts_with(&format!("{}: transaction ", copy.display())), "{said}");
    let first = fs::read(&copy).unwrap();
    server.run(["set", "hello", "again"]).done();
    let refused = server.run(args!["backup", &copy]).failed(2);
    assert!(refused.contains("--force"), "{refused}");
    assert!(fs::read(&copy).unwrap() == first);

    // The very file that is served, above all.
    let refused = server.run(args!["backup", "--force", &db]).failed(1);
    assert!(refused.contains("app.db: it is open in another process, and is not replaced"), "{refused}");
    assert!(refused.contains(&format!(": pid {} (", server.id())) || !cfg!(target_os = "linux"), "{refused}");
    assert!(!refused.contains("move it aside"), "{refused}");
    let other = Options::new().read_only(true).open(&copy).unwrap();
    let refused = server.run(args!["backup", "--force", &copy]).failed(1);
    assert!(refused.contains("open in another process"), "{refused}");
    drop(other);

    let json = server.run(args!["backup", "--force", "--check", "--json", &copy]).done();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let second = fs::read(&copy).unwrap();
    assert_eq!(json["bytes"], second.len() as u64);
    assert_eq!(json["checked"], true);
    assert_eq!(run(args!["file", "get", &copy, "default", "hello"]).done_text(), "again\n");

    fs::create_dir(folder.path().join("new-journal")).unwrap();
    let refused = server.run(args!["backup", folder.path().join("new")]).failed(2);
    assert!(refused.contains("new-journal"), "{refused}");
    assert_eq!(names(folder.path()), ["app.db", "app.db-journal", "copy", "new-journal"]);
}

#[test]
fn standard_output_gets_the_same_bytes_and_a_reader_that_leaves_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (db, copy) = (folder.path().join("app.db"), folder.path().join("copy"));
    make(&db, 4);
    let server = Server::start(&db);
    server.run(args!["backup", &copy]).done();
    assert!(server.run(["backup", "-"]).done() == fs::read(&copy).unwrap());
    assert!(server.run(["backup", "--json", "-"]).failed(2).contains("standard output"));
    let mut child = server.command(["backup", "-"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "it is not a backup that nobody has got");
}

// Promises: ops-backup-whole.
#[test]
fn whatever_goes_wrong_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (db, copies) = (folder.path().join("app.db"), folder.path().join("copies"));
    fs::create_dir(&copies).unwrap();
    make(&db, 8);
    let server = Server::start(&db);

    // A disk that takes no more: a limit to the size of files.
    let limited = format!("ulimit -f 2000; exec \"$0\" backup --addr {} \"$1\"", server.addr());
    let program = boltkv([""; 0]).get_program().to_owned();
    let full = std::process::Command::new("sh").arg("-c").arg(limited).arg(program).arg(copies.join("copy")).output();
    let full: crate::common::Ran = full.unwrap().into();
    let said = full.failed(1);
    assert!(said.contains("could not write"), "{said}");
    assert_eq!(names(&copies), [""; 0]);

    // A folder that is not there.
    server.run(args!["backup", copies.join("none/copy")]).failed(1);

    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let child = slow_backup(&server, &copies);
        signal(&child, name);
        let ran: crate::common::Ran = child.wait_with_output().unwrap().into();
        let said = ran.failed(code);
        assert!(said.contains("was not written"), "{said}");
        assert_eq!(names(&copies), [""; 0]);
    }

    // A server that stops does not wait for it, and one that is killed takes it along.
    let child = slow_backup(&server, &copies);
    assert_eq!(server.stop().code, Some(0));
    let ran: crate::common::Ran = child.wait_with_output().unwrap().into();
    // What it is told stands behind what it has not taken; a server waits for that a few seconds only.
    assert!([Some(1), Some(3)].contains(&ran.code), "{}", ran.stderr);
    assert_eq!(names(&copies), [""; 0]);

    let server = Server::start(&db);
    let child = slow_backup(&server, &copies);
    server.kill();
    let ran: crate::common::Ran = child.wait_with_output().unwrap().into();
    ran.failed(3);
    assert_eq!(names(&copies), [""; 0]);
    // Nobody is there.
    run(args!["backup", "--addr", "127.0.0.1:1", copies.join("copy")]).failed(3);
}

#[test]
fn a_server_that_only_reads_is_backed_up_too_and_one_that_does_none_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (db, copy) = (folder.path().join("app.db"), folder.path().join("copy"));
    make(&db, 1);
    let server = Server::start_with(&db, ["--read-only"]);
    server.run(args!["backup", "--check", &copy]).done();
    run(args!["file", "diff", &db, &copy]).done();
    server.stop();
    let server = Server::start_with(&db, ["--max-backups", "0"]);
    let refused = server.run(args!["backup", "--force", &copy]).failed(1);
    assert!(refused.contains("OVERLOADED") && refused.contains("--max-backups"), "{refused}");
}

#[test]
fn a_rate_below_what_a_server_waits_for_is_a_mistake() {
    let refused = run(["backup", "--rate", "1KiB", "copy"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("64KiB"), "{}", refused.stderr);
}
