//! `boltkv file peek`: a file that somebody has open and writes, read without its lock.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::server::Server;
use crate::common::{Ran, run};
use boltkv_storage::{Db, Options};

fn made(file: &Path) -> Db {
    let db = Db::open(file).unwrap();
    db.update(|tx| {
        let mut users = tx.create_bucket("users")?;
        users.put("k", "v")?;
        let mut eu = users.create_bucket("eu")?;
        eu.put("ada", "1815")?;
        eu.put([0, 255], b"two\nlines")?;
        (0..5000).try_for_each(|n| eu.put(format!("n{n:04}"), vec![b'x'; 200]))?;
        tx.create_bucket("empty").map(drop)
    })
    .unwrap();
    db
}

#[test]
fn a_file_that_is_open_and_locked_is_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let _open = made(&file);
    let peek = |rest: &[&str]| run(args!["file", "peek", &file].into_iter().chain(rest.iter().map(Into::into)));

    assert_eq!(peek(&["get", "users", "eu", "ada"]).done_text(), "1815\n");
    assert_eq!(
        peek(&["get", "users", "eu", "00ff", "--parse-format", "hex", "--format", "hex"]).done_text(),
        "74776f0a6c696e6573\n"
    );
    let json = peek(&["get", "users", "k", "--json"]).done_text();
    assert_eq!(json, "{\"key\":\"aw==\",\"value\":\"dg==\",\"txid\":2}\n");
    assert!(peek(&["get", "users", "none"]).failed(1).contains("no key \"none\""));
    assert!(peek(&["get", "users", "eu"]).failed(1).contains("\"eu\" in bucket \"users\" is a bucket"));
    assert!(peek(&["get", "none", "k"]).failed(1).contains("no bucket \"none\""));

    assert_eq!(peek(&["scan"]).done_text(), "empty/\nusers/\n");
    assert_eq!(peek(&["scan", "users"]).done_text(), "eu/\nk v\n");
    assert_eq!(peek(&["scan", "users", "eu", "--prefix", "a"]).done_text(), "ada 1815\n");
    assert_eq!(peek(&["scan", "users", "eu", "--from", "n4998", "--keys-only"]).done_text(), "n4998\nn4999\n");
    assert_eq!(
        peek(&["scan", "users", "eu", "--from", "b", "--to", "n0003", "-n", "2", "-k"]).done_text(),
        "n0000\nn0001\n"
    );
    assert_eq!(peek(&["scan", "users", "eu"]).done_text().lines().count(), 5002);
    let lines = peek(&["--json", "scan", "users"]).done_text();
    assert_eq!(
        lines,
        "{\"bucket\":\"ZXU=\"}\n{\"key\":\"aw==\",\"value\":\"dg==\"}\n{\"pieces\":1,\"first_txid\":2,\"last_txid\":2}\n"
    );

    let tree = peek(&["tree"]).done_text();
    assert_eq!(tree, "empty: 0 keys, 0 B\nusers: 1 key, 1 bucket, 4 B\n  eu: 5,002 keys, 1000.99 KiB\n");
    let stats = peek(&["stats", "--json"]).done_text();
    for figure in ["\"buckets\":3,", "\"keys\":5003,", "\"page_size\":4096,", "\"first_txid\":2,\"last_txid\":2}"] {
        assert!(stats.contains(figure), "{stats}");
    }
    assert_eq!(peek(&["stats"]).done_text().lines().count(), 7);
}

#[test]
fn what_is_written_meanwhile_is_read_in_pieces_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = made(&file);
    let ended = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0_u64.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                db.update(|tx| tx.bucket_mut("users")?.put("k", number.to_string())).unwrap();
            }
        });
        let peek = || run(args!["file", "peek", &file, "scan", "users", "eu"]);
        let is_told = |ran: &Ran| ran.code != Some(0) || ran.stderr.contains("meanwhile");
        // On a slow disk one may be over before a commit is.
        let ran = (0..100).map(|_| peek()).find(is_told);
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        ran.expect("something is written while one of them reads")
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = ran.text();
    assert_eq!(text.lines().count(), 5002);
    assert!(ran.stderr.contains("a.db was written meanwhile: this was read in "), "{}", ran.stderr);
}

#[test]
fn of_a_served_file_it_is_said_that_the_journal_may_know_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.db");
    let server = Server::start(&file);
    server.run(["set", "k", "v"]).done();
    let ran = run(args!["file", "peek", &file, "tree"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("served.db has a journal in ") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    server.stop().done();
    assert_eq!(run(args!["file", "peek", &file, "get", "default", "k"]).done_text(), "v\n");
}

/// Who reads the error alone, or has standard error cut to its last line, is not to take "not found" for an answer.
#[test]
fn what_only_a_journal_may_hold_is_not_said_to_be_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let [file, elsewhere] = ["served.db", "elsewhere"].map(|name| folder.path().join(name));
    let server = Server::start(&file);
    server.run(["set", "old", "v"]).done();
    server.stop().done();
    let missing = |names: [&str; 3]| {
        let ran = run(args!["file", "peek", &file].into_iter().chain(names.iter().map(Into::into)));
        assert_eq!(ran.code, Some(1), "{names:?}: {}", ran.stderr);
        ran.stderr.lines().last().unwrap().to_owned()
    };
    let everywhere = || [["get", "default", "new"], ["get", "later", "k"], ["scan", "later", "-k"]].map(missing);
    // The file is all there is.
    for said in everywhere() {
        assert!(!said.contains("journal") && said.contains(": no "), "{said}");
    }
    for journal in ["on".into(), elsewhere.clone().into_os_string()] {
        let server = Server::start_with(&file, args!["--journal", journal]);
        server.run(["set", "new", "v"]).done();
        server.run(["bucket", "create", "later"]).done();
        for said in everywhere() {
            assert!(
                said.contains(": no ") && said.contains("; its journal may hold it: whoever has the file"),
                "{said}"
            );
            assert!(said.contains("`boltkv get`"), "{said}");
        }
        server.run(["delete", "new"]).done();
        server.run(["bucket", "delete", "later"]).done();
        server.stop().done();
    }

    let server = Server::start(&file);
    server.run(["set", "new", "v"]).done();
    server.kill();
    for said in everywhere() {
        assert!(
            said.contains("; its journal may hold it: ") && said.contains("boltkv file journal --apply "),
            "{said}"
        );
    }
    std::fs::remove_dir_all(crate::common::journal_of(&file)).unwrap();
    for said in everywhere() {
        assert!(said.contains("; its journal may hold it: ") && said.contains("`boltkv file journal "), "{said}");
    }
}

#[test]
fn what_is_no_file_or_no_database_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.db");
    assert!(run(args!["file", "peek", &missing, "tree"]).failed(3).contains("No such file"));
    let text = folder.path().join("text");
    std::fs::write(&text, [b'x'; 10_000]).unwrap();
    assert!(run(args!["file", "peek", &text, "tree"]).failed(3).contains("not a bolt file"));
}

/// Has the value of each bucket of this name say that its root is the page that `root` gives, of the one that it stands on.
fn lead_elsewhere(file: &Path, name: &str, root: impl Fn(u64) -> u64) {
    let mut bytes = std::fs::read(file).unwrap();
    let places: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(name.as_bytes())).collect();
    for at in places {
        let page = root((at / 4096) as u64);
        bytes[at + name.len()..][..8].copy_from_slice(&page.to_le_bytes());
    }
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn buckets_that_go_in_circles_and_those_that_share_pages_are_told_and_not_read_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let (circle, shared) = (folder.path().join("circle.db"), folder.path().join("shared.db"));
    let db = Options::new().page_size(4096).open(&circle).unwrap();
    db.update(|tx| tx.create_bucket("outer")?.create_bucket("inner one")?.create_bucket("innermost").map(drop))
        .unwrap();
    drop(db);
    lead_elsewhere(&circle, "inner one", |own| own);

    // Each leads to the next twice, forty times over.
    let db = Options::new().page_size(4096).open(&shared).unwrap();
    let names: Vec<_> = (0..40).map(|level| [format!("twice {level:02} a"), format!("twice {level:02} b")]).collect();
    let mut tx = db.begin_mut().unwrap();
    for level in 0..names.len() {
        let above: Vec<_> = names[..level].iter().map(|[a, _]| a.as_str()).collect();
        for name in &names[level] {
            match above.as_slice() {
                [] => drop(tx.create_bucket(name).unwrap()),
                above => drop(tx.bucket_mut_path(above).unwrap().create_bucket(name).unwrap()),
            }
        }
    }
    tx.commit().unwrap();
    drop(db);
    let bytes = std::fs::read(&shared).unwrap();
    for [a, b] in &names {
        let at = bytes.windows(a.len()).position(|window| window == a.as_bytes()).unwrap();
        let root = u64::from_le_bytes(bytes[at + a.len()..][..8].try_into().unwrap());
        lead_elsewhere(&shared, b, |_| root);
    }

    for what in ["tree", "stats"] {
        let ran = run(args!["file", "peek", &circle, what]);
        assert_eq!(ran.code, Some(1), "{what}: {}", ran.stderr);
        assert!(ran.stderr.contains("they go in circles"), "{}", ran.stderr);
        let ran = run(args!["file", "peek", &shared, what]);
        assert_eq!(ran.code, Some(1), "{what}: {}", ran.stderr);
        assert!(ran.stderr.contains("more buckets than pages"), "{}", ran.stderr);
    }
}
