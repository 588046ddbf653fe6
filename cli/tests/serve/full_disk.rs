//! A server on a full disk: what it refuses, and what goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::mounted::Mounted;
use crate::common::server::Server;
use crate::common::{Ran, run};

// Promises: ops-journal-full.
#[test]
#[boltkv_needs::program("unshare")]
fn a_full_disk_under_the_journal_alone_refuses_what_finds_no_room_and_nothing_else() {
    let Some(mounted) = Mounted::new("1m") else { return };
    let journal = || args!["--journal", mounted.small()];
    let said = Ran::from(mounted.serve(journal()).output().unwrap()).failed(3);
    assert!(said.contains("No space left") && said.contains("a.db-journal"), "{said}");
    assert!(said.contains("--journal DIR") && said.contains("--journal off"), "{said}");

    let server = Server::spawn(mounted.serve(journal()).args(["--journal-size=256KiB", "--max-frame=8MiB"]));
    assert_eq!(server.text("SET small 1\n"), "OK\n");
    let large = server.run_with_input(["set", "large", "-"], &vec![b'x'; 4 << 20]).failed(1);
    assert!(large.contains("NO_SPACE") && large.contains("the disk of the journal has "), "{large}");
    for round in 0..200 {
        assert_eq!(server.text(&format!("SET small {round}\n")), "OK\n", "round {round}");
    }
    assert_eq!(server.text("GET small\nEXISTS large\n"), "199\n0\n");
    // It has logged that a write found no room.
    assert_eq!(server.stop().code, Some(0));
    run(args!["file", "check", mounted.db()]).done();
    fs::remove_dir(mounted.small()).unwrap();
    assert_eq!(Server::start(&mounted.db()).text("GET small\n"), "199\n");
}

// Promises: ops-journal-full.
#[test]
#[boltkv_needs::program("unshare")]
fn a_disk_with_room_for_one_segment_takes_small_writes_for_ever_and_a_clean_end() {
    let Some(mounted) = Mounted::new("12m") else { return };
    let server = Server::spawn(&mut mounted.serve(args!["--journal", mounted.small()]));
    // More than the one segment takes, and in groups that none but a whole one has room for.
    for round in 0..60 {
        let sets: Vec<_> = (0..1_000).map(|key| format!("SET {key} {round:0300}\n")).collect();
        let answers = server.text(&sets.concat());
        assert!(answers.lines().all(|line| line == "OK" || line.contains("NO_SPACE")), "{round}: {answers}");
    }
    for round in 0..300 {
        assert_eq!(server.text(&format!("SET small {round}\nDELETE {round}\n")), "OK\nOK\n", "round {round}");
    }
    assert_eq!(server.text("GET small\nEXISTS 299\nEXISTS 300\n"), "299\n0\n1\n");
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-full-file.
#[test]
#[boltkv_needs::program("unshare")]
fn a_full_disk_under_the_file_alone_takes_deletions_and_a_clean_end() {
    let Some(mounted) = Mounted::new("6m") else { return };
    for memory in ["--journal-memory=1MiB", "--journal-memory=0"] {
        let (db, journal) = (mounted.small().join("small.db"), mounted.folder.path().join("journal"));
        let serve = args!["serve", "--listen", "127.0.0.1:0", "--db", db, "--journal", &journal];
        let mut serve = mounted.command(env!("CARGO_BIN_EXE_boltkv"), serve);
        let server = Server::spawn(serve.args(["--journal-size=1MiB", memory]));
        let text =
            |line: &dyn Fn(u32) -> String, keys: std::ops::Range<u32>| server.text(&keys.map(line).collect::<String>());
        let set = |key: u32| format!("SET {:08x} {key:0200}\n", key.wrapping_mul(0x9e37_79b9));
        let delete = |key: u32| format!("DELETE {:08x}\n", key.wrapping_mul(0x9e37_79b9));
        let mut keys = 0;
        let refused = loop {
            let answers = text(&set, keys..keys + 500);
            if answers.lines().any(|line| line != "OK") {
                break answers;
            }
            keys += 500;
            assert!(keys < 100_000, "{memory}: it has no end");
        };
        assert!(refused.contains("NO_SPACE"), "{memory}: {refused}");
        // What is there already may change in place of what was, as far as there is room; what goes, may.
        text(&set, 0..keys);
        for from in (0..keys).step_by(500) {
            let answers = text(&delete, from..from + 500);
            assert!(answers.lines().all(|line| line == "OK"), "{memory}: {from} of {keys}: {answers}");
        }
        assert!(text(&set, 0..500).lines().all(|line| line == "OK"), "{memory}");
        // The file is brought up to date, and so the journal has nothing that the file has not.
        assert_eq!(server.stop().code, Some(0), "{memory}");
        fs::remove_dir_all(journal).unwrap();
    }
}

// Promises: ops-full-file.
#[test]
#[boltkv_needs::program("unshare")]
fn a_full_disk_takes_deletions_from_many_buckets_too_each_of_which_writes_several_pages() {
    let Some(mounted) = Mounted::new("6m") else { return };
    let journal = format!("--journal={}", mounted.folder.path().join("journal").display());
    for more in [
        &[journal.as_str(), "--journal-size=1MiB", "--journal-memory=1MiB"][..],
        &[journal.as_str(), "--journal-size=1MiB", "--journal-memory=0"],
        &["--journal=off"],
    ] {
        let db = mounted.small().join("small.db");
        let serve = args!["serve", "--listen", "127.0.0.1:0", "--db", db];
        let server = Server::spawn(mounted.command(env!("CARGO_BIN_EXE_boltkv"), serve).args(more));
        let place = |key: u32| format!("BUCKET USE many/b{}\n", key.wrapping_mul(0x9e37_79b9) % 200);
        let creates: Vec<_> = (0..200).map(|bucket| format!("BUCKET CREATE many/b{bucket}\n")).collect();
        server.text(&creates.concat());
        // What is written side by side lies in different buckets.
        let set = |key: u32| format!("{}SET {key} {key:0width$}\n", place(key), width = 20 + key as usize % 7 * 400);
        let mut keys = 0;
        while server.text(&(keys..keys + 50).map(set).collect::<String>()).lines().all(|line| line == "OK") {
            keys += 50;
            assert!(keys < 50_000, "{more:?}: it has no end");
        }
        for from in (0..keys).step_by(50) {
            let delete = |key: u32| format!("{}DELETE {key}\n", place(key));
            let answers = server.text(&(from..from + 50).map(delete).collect::<String>());
            assert!(answers.lines().all(|line| line == "OK"), "{more:?}: {from} of {keys}: {answers}");
        }
        assert_eq!(server.stop().code, Some(0), "{more:?}");
        drop(fs::remove_dir_all(mounted.folder.path().join("journal")));
    }
}
