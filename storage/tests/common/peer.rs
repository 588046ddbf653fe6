//! The Go program at the other end: built once from `tests/go`, run as a process for each thing asked of it.

use super::model::hex;
use super::setup::Setup;
use super::trace::Trace;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// Where cargo lets integration tests keep what they build.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// What the Go program ends with when it could not get the file's lock in time.
const EXIT_LOCK_TIMEOUT: i32 = 3;

/// What it ends with when its check found no end.
const EXIT_GAVE_UP: i32 = 5;

/// The built Go program.
pub struct Peer {
    program: PathBuf,
}

/// The Go program, or `None` (said on standard error) where there is no Go. With `BOLTKV_REQUIRE_TOOLS=1` that is a
/// failure.
pub fn peer() -> Option<&'static Peer> {
    static PEER: OnceLock<Result<Peer, String>> = OnceLock::new();
    match PEER.get_or_init(build) {
        Ok(peer) => Some(peer),
        Err(why) => {
            let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but there is no Go peer: {why}");
            // What `eprintln!` prints of a test that passes is swallowed.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("skipped: no Go peer: {why}\n"));
            None
        }
    }
}

/// What is missing to build it is an `Err`; a program that does not compile is a failure of the test.
fn build() -> Result<Peer, String> {
    fs::create_dir_all(SCRATCH).unwrap();
    // Test binaries may run at the same time: one builds, the others find it done.
    let lock = File::create(Path::new(SCRATCH).join("bboltpeer.lock")).unwrap();
    lock.lock().unwrap();
    let fetched = go(&["mod", "download"]).map_err(|error| format!("go does not run: {error}"))?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        return Err(format!("its modules cannot be fetched: {}", why.trim()));
    }
    let program = Path::new(SCRATCH).join("bboltpeer");
    let target = program.to_str().unwrap();
    let built = go(&["build", "-mod=readonly", "-o", target, "."]).unwrap();
    assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
    Ok(Peer { program })
}

fn go(args: &[&str]) -> std::io::Result<Output> {
    Command::new("go")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go"))
        .env_remove("GOFLAGS")
        .env("GOWORK", "off")
        .args(args)
        .output()
}

impl Peer {
    /// Makes a new file of one kind.
    pub fn make(&self, kind: &str, file: &Path, flags: &[String]) {
        self.succeed(Command::new(&self.program).arg("make").args(flags).arg(kind).arg(file));
    }

    /// Replays a trace on a file, which is made when it is missing.
    pub fn replay(&self, trace: &Trace, file: &Path, setup: &Setup) {
        self.run_trace(trace, file, setup, &[]);
    }

    /// The same; the answer is the file's hash, as [`super::file_hash`] has it, after each commit.
    pub fn replay_hashing(&self, trace: &Trace, file: &Path, setup: &Setup) -> Vec<u64> {
        let output = self.run_trace(trace, file, setup, &["--digests"]);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| u64::from_str_radix(line, 16).unwrap()).collect()
    }

    fn run_trace(&self, trace: &Trace, file: &Path, setup: &Setup, flags: &[&str]) -> Output {
        let text = file.with_extension("trace");
        fs::write(&text, trace.to_string()).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("trace").args(setup.peer_flags()).args(flags).args([file, &text]);
        self.succeed(&mut command)
    }

    /// All that bbolt sees in a file, in the form of `Model::dump`.
    pub fn dump(&self, file: &Path) -> String {
        let output = self.succeed(Command::new(&self.program).arg("dump").arg(file));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What each step of a walk through one bucket answers, a line each.
    pub fn walk(&self, file: &Path, bucket: &[Vec<u8>], steps: &[String]) -> Vec<String> {
        let path: Vec<String> = bucket.iter().map(|name| hex(name)).collect();
        let output = self.succeed(Command::new(&self.program).arg("walk").arg(file).arg(path.join("/")).args(steps));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Fails unless bbolt's check finds nothing wrong with a file.
    pub fn assert_check_clean(&self, file: &Path, what: &str) {
        let output = Command::new(&self.program).arg("check").arg(file).output().unwrap();
        assert!(
            output.status.success(),
            "{what}: bbolt's check: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Whether bbolt's check finds something wrong with a file, or is brought down by it; `None` where the damage has it
    /// walk on and on.
    pub fn finds_problems(&self, file: &Path) -> Option<bool> {
        let output = Command::new(&self.program).args(["check", "--give-up=300ms"]).arg(file).output().unwrap();
        match output.status.code() {
            Some(EXIT_GAVE_UP) => None,
            code => Some(code != Some(0)),
        }
    }

    /// Whether the program got the file's lock within the time, given in Go's form ("100ms").
    pub fn can_lock(&self, file: &Path, read_only: bool, timeout: &str) -> bool {
        let output = self.lock_command(file, read_only, timeout).stdin(Stdio::null()).output().unwrap();
        match output.status.code() {
            Some(0) => true,
            Some(EXIT_LOCK_TIMEOUT) => false,
            _ => panic!("lock: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Has the program hold a file's lock until the answer is dropped.
    pub fn hold_lock(&self, file: &Path, read_only: bool) -> UntilDropped {
        UntilDropped::start(&mut self.lock_command(file, read_only, "10s"), "locked\n")
    }

    /// Has the program write a file as fast as it can until the answer is dropped.
    pub fn churn(&self, file: &Path, flags: &[&str]) -> UntilDropped {
        UntilDropped::start(Command::new(&self.program).arg("churn").args(flags).arg(file), "writing\n")
    }

    /// Runs another command of the program; what it prints.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        let output = self.succeed(Command::new(&self.program).args(args));
        String::from_utf8(output.stdout).unwrap()
    }

    fn lock_command(&self, file: &Path, read_only: bool, timeout: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lock", "--timeout", timeout]);
        if read_only {
            command.arg("--read-only");
        }
        command.arg(file);
        command
    }

    #[expect(clippy::unused_self, reason = "it is the built program that runs")]
    fn succeed(&self, command: &mut Command) -> Output {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

/// What the Go program does until this is dropped: it holds a lock, or writes.
pub struct UntilDropped {
    child: Child,
}

impl UntilDropped {
    /// Starts it, and waits until it has said that it is at it.
    fn start(command: &mut Command, says: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut said).unwrap();
        let started = Self { child };
        assert_eq!(said, says);
        started
    }
}

impl Drop for UntilDropped {
    fn drop(&mut self) {
        // The end of its input is what it waits for.
        drop(self.child.stdin.take());
        let ended = self.child.wait().expect("the child can be waited for");
        assert!(ended.success() || std::thread::panicking(), "it ended with {ended}");
    }
}
