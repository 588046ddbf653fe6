//! What the tests of the command line share: running the binary, a server of its own for each test, the Go program.
#![allow(dead_code, unreachable_pub, reason = "every test binary compiles all of this and uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "test code: a panic is how it reports"
)]

pub mod certificates;
pub mod files;
pub mod http;
pub mod linked;
pub mod logged;
pub mod mounted;
#[path = "../../../load/tests/common/other.rs"]
mod other;
pub mod peer;
pub mod redis;
pub mod server;
pub mod shim;
pub mod surgery;
pub mod text;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where the journal of a database's file lies, unless it is told.
pub fn journal_of(db: &Path) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// The binary, free of what the environment would tell it.
pub fn boltkv<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boltkv"));
    let settings = std::env::vars_os().map(|(name, _)| name);
    let settings = settings.filter(|name| name.to_str().is_some_and(|name| name.starts_with("BOLTKV_")));
    for name in settings.chain(["RUST_LOG".into()]) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// What a command came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    /// Standard output, of a command that must have succeeded without a word on standard error.
    #[track_caller]
    pub fn done(self) -> Vec<u8> {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}", self.text());
        self.stdout
    }

    /// As [`Self::done`], as text.
    #[track_caller]
    pub fn done_text(self) -> String {
        String::from_utf8(self.done()).unwrap()
    }

    /// The one line on standard error, of a command that must have failed with this code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{} {}", self.text(), self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("boltkv: "), "{}", self.stderr);
        self.stderr
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// Runs the binary without any input.
#[track_caller]
pub fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    boltkv(args).output().unwrap().into()
}

/// Runs the binary while nobody reads what it prints.
#[track_caller]
pub fn run_unread<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    unread(&mut boltkv(args))
}

/// Runs a command while nobody reads what it prints.
#[track_caller]
pub fn unread(command: &mut Command) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).output().unwrap().into()
}

/// Looks for damage in the file as it is, without what only its journal has.
#[track_caller]
pub fn check_alone(db: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone.db");
    std::fs::copy(db, &alone).unwrap();
    for command in [&["file", "journal", "--discard"][..], &["file", "check"]] {
        run(command.iter().map(OsStr::new).chain([alone.as_os_str()])).done();
    }
}

/// Runs the binary with this on its standard input.
#[track_caller]
pub fn run_with_input<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
    feed(&mut boltkv(args), input)
}

/// Runs a command with this on its standard input.
#[track_caller]
pub fn feed(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // From a thread of its own: a command that writes before it has read all must not wait for us, nor we for it. One that
    // ends early closes the pipe, which is its right.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output.into()
}

/// A list of arguments out of anything that can be one.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        [$(std::ffi::OsString::from($arg)),*]
    };
}
