//! `docs/file-tools.md` tells the truth: every `console` block of it is run, and prints what the page says.
//!
//! - A line that starts with `$ ` is run by a shell, the lines below it are what it prints, standard error included. A line
//!   `...` stands for any number of lines, and any time for any other; what is in the folder is shown as in `/srv`.
//! - The blocks of one section (`## `) are run in their order, in a folder of their own with these files: `etcd.db`, a small
//!   one as etcd has it; `wreck.db`, the same with a page of nonsense in it; `app.db`, with buckets within buckets;
//!   `killed.db`, as a process leaves it that is killed when its journal has more than the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Fill, JournalOptions, Options, Result};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/file-tools.md");
const ANY_LINES: &str = "...";

#[test]
fn every_example_of_the_page_prints_what_it_says() {
    let text = fs::read_to_string(PAGE).unwrap();
    let mut wrong = String::new();
    for section in text.split("\n## ").skip(1) {
        let (title, blocks) = (section.lines().next().unwrap(), blocks(section));
        if blocks.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        make_files(folder.path());
        for block in blocks {
            let printed = replay(block, folder.path());
            let printed = printed.replace(&*folder.path().to_string_lossy(), "/srv");
            if !matches(&lines(&without_times(block)), &lines(&without_times(&printed))) {
                let _ = write!(wrong, "\n## {title}: the page says\n{block}and this is printed\n{printed}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_page_has_an_example_of_every_command() {
    let text = fs::read_to_string(PAGE).unwrap();
    let help = Command::new(env!("CARGO_BIN_EXE_boltkv")).args(["file", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands =
        commands.lines().take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().next().unwrap());
    let missing: Vec<_> = commands
        .filter(|command| *command != "help")
        .filter(|command| !text.contains(&format!("boltkv file {command} ")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The insides of the section's `console` blocks.
fn blocks(section: &str) -> Vec<&str> {
    let starts = section.split("\n```console\n").skip(1);
    starts.map(|rest| &rest[..=rest.find("\n```").expect("a block has an end")]).collect()
}

/// Runs the commands of a block; what a reader would have on the screen after that.
fn replay(block: &str, folder: &Path) -> String {
    let mut screen = String::new();
    for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let _ = writeln!(screen, "$ {command}");
        screen.push_str(&run_in_shell(command, folder));
        if !screen.ends_with('\n') {
            screen.push('\n');
        }
    }
    screen
}

fn run_in_shell(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_boltkv"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec 2>&1; {command}")).current_dir(folder).env("PATH", path).stdin(Stdio::null());
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// With the same time in place of each one that is written as `2026-11-22T18:02:41.175Z`.
fn without_times(text: &str) -> String {
    const TIME: &str = "0000-00-00T00:00:00.000Z";
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_like = |(like, found): (char, char)| like == found || like == '0' && found.is_ascii_digit();
        let is_time = rest.len() >= TIME.len() && TIME.chars().zip(rest.chars()).all(is_like);
        let taken = if is_time { TIME.len() } else { first.len_utf8() };
        shown.push_str(if is_time { TIME } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    shown
}

/// Without the white space at the ends of lines, and of the block, which nobody would see.
fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

/// Whether what was printed is what was expected, where some lines stand for any others.
fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&ANY_LINES, rest)) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((line, rest)) => printed.split_first().is_some_and(|(found, more)| line == found && matches(rest, more)),
    }
}

#[test]
fn dots_stand_for_any_lines_and_nothing_else_does() {
    assert!(matches(&["a", ANY_LINES, "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a", ANY_LINES], &["a"]));
    assert!(!matches(&["a", ANY_LINES, "d"], &["a", "b", "c"]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert!(!matches(&["a", "b"], &["a"]));
}

/// The files that the examples are about: the same bytes each time.
fn make_files(folder: &Path) {
    make_etcd(&folder.join("etcd.db")).unwrap();
    make_app(&folder.join("app.db")).unwrap();
    fs::copy(folder.join("etcd.db"), folder.join("wreck.db")).unwrap();
    wreck(&folder.join("wreck.db")).unwrap();
    make_killed(folder).unwrap();
}

fn make(file: &Path) -> Result<Db> {
    // Pages lie where bbolt puts them.
    Options::new().page_size(4096).fill(Fill::Percent(1.0)).open(file)
}

/// What etcd's buckets hold, in small.
fn make_etcd(file: &Path) -> Result<()> {
    const BUCKETS: [&str; 11] = [
        "alarm",
        "auth",
        "authRevision",
        "authRoles",
        "authUsers",
        "cluster",
        "key",
        "lease",
        "members",
        "members_removed",
        "meta",
    ];
    let db = make(file)?;
    db.update(|tx| {
        for name in BUCKETS {
            tx.create_bucket(name)?;
        }
        tx.bucket_mut("cluster")?.put("clusterVersion", "3.6.0")?;
        let member = r#"{"id":10276657743932975437,"peerURLs":["http://10.0.0.1:2380"],"name":"etcd-1"}"#;
        tx.bucket_mut("members")?.put("8e9e05c52164694d", member)?;
        tx.bucket_mut("auth")?.put("authEnabled", [0])?;
        let mut meta = tx.bucket_mut("meta")?;
        meta.put("consistent_index", 400_u64.to_be_bytes())?;
        meta.put("term", 2_u64.to_be_bytes())?;
        meta.put("storageVersion", "3.6.0")
    })?;
    for commit in 0..4 {
        db.update(|tx| {
            let mut keys = tx.bucket_mut("key")?;
            (0..100).try_for_each(|change| {
                let revision = commit * 100 + change + 2;
                keys.put(revision_key(revision), format!("/registry/pods/default/web-{:03}", revision % 60))
            })
        })?;
    }
    Ok(())
}

/// etcd's key of a revision: its main and its sub number.
fn revision_key(main: u64) -> Vec<u8> {
    [&main.to_be_bytes()[..], b"_", &[0; 8]].concat()
}

/// Buckets within buckets, some of them inline, and a value of several pages.
fn make_app(file: &Path) -> Result<()> {
    make(file)?.update(|tx| {
        let mut users = tx.create_bucket("users")?;
        let mut eu = users.create_bucket("eu")?;
        eu.put("ada", "lovelace")?;
        eu.put("grace", "hopper")?;
        let mut us = users.create_bucket("us")?;
        (0..200).try_for_each(|user| us.put(format!("user {user:03}"), format!("name of user {user:03}")))?;
        us.set_sequence(200)?;
        let mut photos = tx.create_bucket("photos")?;
        photos.put("sunset.jpg", vec![0xd8; 10_000])?;
        photos.put("text", "größe")
    })
}

/// A file, and a journal with one transaction more: what is copied while a process has them open, a kill would leave.
fn make_killed(folder: &Path) -> Result<()> {
    let busy = folder.join("busy");
    fs::create_dir(&busy).unwrap();
    let db = Options::new().journal(JournalOptions::new()).open(busy.join("killed.db"))?;
    db.update(|tx| tx.create_bucket("b")?.put("old", "1"))?;
    db.checkpoint()?;
    db.update(|tx| tx.bucket_mut("b")?.put("new", "2"))?;
    let journal = folder.join("killed.db-journal");
    fs::create_dir(&journal).unwrap();
    fs::copy(busy.join("killed.db"), folder.join("killed.db")).unwrap();
    // A spare may not be ready yet.
    let first = "segment-000001";
    fs::copy(busy.join("killed.db-journal").join(first), journal.join(first)).unwrap();
    drop(db);
    fs::remove_dir_all(busy).unwrap();
    Ok(())
}

/// Writes nonsense over the second leaf of the bucket `key`.
fn wreck(file: &Path) -> Result<()> {
    let root = Db::open(file)?.begin()?.bucket("key")?.root_page().expect("it is too large to lie inline");
    let leaf = RawFile::open(file, None)?.page(root)?.branch_element(1)?.child;
    let file = File::options().write(true).open(file).unwrap();
    file.write_all_at(&[0xff; 64], leaf * 4096).unwrap();
    Ok(())
}
