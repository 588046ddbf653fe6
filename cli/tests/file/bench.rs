//! `boltkv file bench` measures in the way and the figures of bbolt's bench, and touches no file that was there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;

use crate::common::run;
use boltkv_storage::{Db, Error};

/// The figures of a line such as `# Write 1000(ops) 2.1ms (2.1µs/op) (476190 op/sec)`, in which tabs part the fields: its
/// operations.
#[track_caller]
fn ops(line: &str, name: &str) -> u64 {
    let fields: Vec<&str> = line.split('\t').collect();
    let [head, ops, took, each, rate] = fields[..] else { panic!("{line}") };
    assert_eq!(head, format!("# {name}"));
    assert!(took.ends_with('s') && each.ends_with("/op)") && rate.ends_with(" op/sec)"), "{line}");
    ops.strip_suffix("(ops)").unwrap().parse().unwrap()
}

#[test]
fn what_was_written_is_read_in_every_mode_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (write, read, batch) in
        [("seq", "seq", "0"), ("rnd", "rnd", "100"), ("seq-nest", "rnd", "250"), ("rnd-nest", "seq", "500")]
    {
        let file = folder.path().join(write);
        let modes = ["--write-mode", write, "--read-mode", read, "--batch-size", batch];
        let line = args!["file", "bench", "--count", "1000", "--work", "--path", &file];
        let ran = run(line.into_iter().chain(modes.map(Into::into)));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), format!("work: {}\n", file.display()).as_str()));
        let text = ran.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[2]), (3, ""));
        assert_eq!(ops(lines[0], "Write"), 1000);
        assert!(ops(lines[1], "Read") >= 1000 && ops(lines[1], "Read").is_multiple_of(1000), "{text}");
        let db = Db::open(&file).unwrap();
        let tx = db.begin().unwrap();
        let bench = tx.bucket("bench").unwrap();
        let buckets = bench.buckets().collect::<Result<Vec<_>, Error>>().unwrap();
        let nested: u64 = buckets.iter().map(|(_, bucket)| bucket.count().unwrap()).sum();
        let transactions = 1000 / batch.parse().unwrap_or(1000).clamp(1, 1000);
        let expected = if write.ends_with("nest") { (transactions, 1000) } else { (0, 0) };
        assert_eq!((buckets.len(), nested), expected, "{write}");
        assert_eq!(bench.count().unwrap() + nested, 1000 + buckets.len() as u64, "{write}");
    }
}

#[test]
fn flags_say_how_the_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    let flags =
        ["--key-size", "20", "--value-size", "100", "--page-size", "1024", "--fill-percent", "1.0", "--no-sync"];
    let line = args!["file", "bench", "--json", "--initial-mmap-size", "1000000", "--work", "--path", &file];
    let ran = run(line.into_iter().chain(flags.map(Into::into)));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["write"]["ops"], 1000);
    assert!(report["read"]["seconds"].as_f64() >= Some(1.0), "{report}");
    assert!(report["write"]["ops_per_second"].as_f64() > Some(0.0), "{report}");
    let db = Db::open(&file).unwrap();
    assert_eq!(db.page_size(), 1024);
    let tx = db.begin().unwrap();
    let (key, value) = tx.bucket("bench").unwrap().cursor().first().unwrap().unwrap();
    assert_eq!((key.len(), &key[..5], value.unwrap()), (20, &[0, 0, 0, 1, 0][..], &[0; 100][..]));
}

#[test]
fn gos_tools_can_read_the_figures_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    let text = run(args!["file", "bench", "--gobench-output", "--path", &file]).done_text();
    for (line, name) in text.lines().zip(["BenchmarkWrite", "BenchmarkRead"]) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((fields[0], fields[3]), (name, "ns/op"), "{line}");
        assert!(fields[1].parse::<u64>().unwrap() >= 1000 && fields[2].parse::<f64>().unwrap() > 0.0, "{line}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_there_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("precious.db");
    fs::write(&file, "precious").unwrap();
    let said = run(args!["file", "bench", "--path", &file]).failed(2);
    assert!(said.contains("is there already"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), b"precious");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused = [
        &["--count", "0"][..],
        &["--count", "1000", "--batch-size", "300"],
        &["--key-size", "3"],
        &["--write-mode", "seq-del"],
        &["--read-mode", "all"],
        &["--fill-percent", "2"],
        &["--page-size", "1000"],
    ];
    for flags in refused {
        let ran = run(["file", "bench"].iter().chain(flags));
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{flags:?}: {}", ran.stderr);
    }
}
