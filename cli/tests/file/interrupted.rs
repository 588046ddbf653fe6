//! Signals at commands that write a file: nothing half done stays, and they say how far they came.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::common::boltkv;
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Durability, Error, Options};

/// Enough for a command to be met at work.
fn make(file: &Path, entries: u32) {
    let db = Options::new().durability(Durability::Never).open(file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..entries).try_for_each(|i| bucket.put(i.to_be_bytes(), [7; 1000]))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
    db.close().unwrap();
}

fn start(args: impl IntoIterator<Item = std::ffi::OsString>) -> Child {
    boltkv(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(child: &Child, signals: &[&str]) {
    let line: Vec<String> = signals.iter().map(|signal| format!("kill -{signal} {}", child.id())).collect();
    assert!(Command::new("sh").arg("-c").arg(line.join("; ")).status().unwrap().success());
}

/// Waits for the end; what it said on standard error.
fn end(mut child: Child) -> (ExitStatus, String) {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap(), said)
}

/// Waits for what must come, for a minute at most.
#[track_caller]
fn wait_until(mut done: impl FnMut() -> bool) {
    let came = (0..6000).any(|_| {
        let done = done();
        if !done {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        done
    });
    assert!(came, "it did not come");
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Starts a command that writes `output`, stops it at work, sends the signal, and expects nothing to be left.
fn interrupted_while_writing(command: &[&str], signal: &str, code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let (source, output) = (folder.path().join("source.db"), folder.path().join("output"));
    make(&source, 30_000);
    // It may have finished before it is stopped: then it is tried again.
    for _ in 0..50 {
        let words = ["file"].iter().chain(command).map(Into::into);
        let mut child = start(words.chain(args![&source, "--output", &output]));
        while names(folder.path()).len() == 1 && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        send(&child, &["STOP", signal, "CONT"]);
        let (status, said) = end(child);
        if output.exists() {
            fs::remove_file(&output).unwrap();
            continue;
        }
        assert_eq!(status.code(), Some(code), "{said}");
        assert_eq!(names(folder.path()), ["source.db"], "{said}");
        let name = if code == 130 { "SIGINT" } else { "SIGTERM" };
        assert!(said.starts_with(&format!("boltkv: interrupted by {name}")), "{said}");
        assert!(said.ends_with(&format!(": {} was not written\n", output.display())), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        return;
    }
    panic!("{command:?} was never met at work");
}

#[test]
fn a_compact_that_is_interrupted_leaves_nothing() {
    interrupted_while_writing(&["compact"], "INT", 130);
}

#[test]
fn a_repair_that_is_terminated_leaves_nothing() {
    interrupted_while_writing(&["repair"], "TERM", 143);
}

#[test]
fn an_export_to_a_file_that_is_interrupted_leaves_nothing() {
    interrupted_while_writing(&["export"], "INT", 130);
}

#[test]
fn surgery_that_is_terminated_leaves_nothing() {
    interrupted_while_writing(&["surgery", "freelist", "abandon"], "TERM", 143);
}

#[test]
fn a_bench_that_is_interrupted_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.db");
    // More than it gets done: each value is synced.
    for place in [vec![], vec!["--path".into(), file.into_os_string()]] {
        let mut command = boltkv(args!["file", "bench", "--count", "100000000", "--batch-size", "1"]);
        command.args(place).env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_until(|| !names(folder.path()).is_empty());
        send(&child, &["INT"]);
        let (status, said) = end(child);
        assert_eq!(status.code(), Some(130), "{said}");
        assert!(said.starts_with("boltkv: interrupted by SIGINT"), "{said}");
        assert!(said.ends_with(": nothing was measured\n"), "{said}");
        assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    }
}

#[test]
fn an_import_says_how_many_lines_are_in_the_file_and_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    let mut child = start(args!["file", "import", &file]);
    let mut input = child.stdin.take().unwrap();
    writeln!(input, r#"{{"path":["Yg=="],"sequence":0}}"#).unwrap();
    for _ in 0..10_000 {
        writeln!(input, r#"{{"path":["Yg=="],"key":"a2V5","value":"dmFsdWU="}}"#).unwrap();
    }
    input.flush().unwrap();
    // The first 10,000 lines are committed, one more is read, and it waits for the next.
    let newest = || RawFile::open(&file, None).ok().and_then(|file| file.newest_meta());
    wait_until(|| newest().is_some_and(|meta| meta.txid >= 2));
    send(&child, &["TERM"]);
    let (status, said) = end(child);
    assert_eq!(status.code(), Some(143), "{said}");
    assert!(said.starts_with("boltkv: interrupted by SIGTERM after "), "{said}");
    // It may not know yet that the commit is through.
    let known = [
        format!("the first 10000 lines are in {}\n", file.display()),
        format!("is known to be in {}\n", file.display()),
    ];
    assert!(known.iter().any(|end| said.ends_with(end)), "{said}");
    assert_eq!(names(folder.path()), ["new.db"]);
    let db = Db::open(&file).unwrap();
    assert!(db.check().unwrap().is_empty());
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().get("key").unwrap(), Some(&b"value"[..]));
}

#[test]
fn an_export_that_nobody_reads_further_ends_at_a_signal_and_at_a_closed_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.db");
    make(&source, 3000);
    for signal in [Some("INT"), None] {
        let mut child = start(args!["file", "export", &source]);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        // What is left of it is more than a pipe holds, so it waits for its reader.
        let Some(signal) = signal else {
            drop(out);
            let (status, said) = end(child);
            assert_eq!((status.code(), said.as_str()), (Some(0), ""));
            continue;
        };
        send(&child, &[signal]);
        let (status, said) = end(child);
        assert_eq!(status.code(), Some(130), "{said}");
        assert!(said.starts_with("boltkv: interrupted by SIGINT after "), "{said}");
        assert!(said.ends_with(" entries: what is written of the export is not whole\n"), "{said}");
    }
}

#[test]
fn a_second_signal_ends_it_though_standard_error_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.db");
    make(&source, 3000);
    let full = fill_a_pipe(folder.path());
    let mut command = boltkv(args!["file", "export", &source]);
    let mut child = command.stdout(Stdio::piped()).stderr(full.1).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    send(&child, &["INT"]);
    // The first one cannot be answered; the second one need not be. One that comes too early is taken for the first.
    let mut status = None;
    wait_until(|| {
        send(&child, &["TERM"]);
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
    drop(full.0);
}

/// A pipe that takes no byte more: its reading end, and its writing end.
fn fill_a_pipe(folder: &Path) -> (fs::File, fs::File) {
    let path: PathBuf = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let reading = fs::File::options().read(true).write(true).open(&path).unwrap();
    let writing = fs::File::options().write(true).open(&path).unwrap();
    // `dd` fills it without waiting, and fails when it is full.
    let fill = format!("dd if=/dev/zero of='{}' oflag=nonblock bs=1 count=2000000 status=none", path.display());
    Command::new("sh").arg("-c").arg(fill).stderr(Stdio::null()).status().unwrap();
    (reading, writing)
}
