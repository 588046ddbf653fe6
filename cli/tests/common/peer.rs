//! The Go program of the engine's tests, Go's bbolt: built once, run as a process for each thing asked of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Its source.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../storage/tests/go");
/// Where cargo lets integration tests keep what they build. The engine's tests build the same program there.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

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
            eprintln!("skipped: no Go peer: {why}");
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
        return Err(format!("its modules cannot be fetched: {}", String::from_utf8_lossy(&fetched.stderr).trim()));
    }
    let program = Path::new(SCRATCH).join("bboltpeer");
    let built = go(&["build", "-mod=readonly", "-o", program.to_str().unwrap(), "."]).unwrap();
    assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
    Ok(Peer { program })
}

fn go(args: &[&str]) -> std::io::Result<Output> {
    Command::new("go").current_dir(SOURCE).env_remove("GOFLAGS").env("GOWORK", "off").args(args).output()
}

impl Peer {
    /// Makes a new file with some of everything in it.
    pub fn make_mixed(&self, file: &Path) {
        self.run(&["make", "mixed"], file);
    }

    /// All that bbolt sees in a file.
    pub fn dump(&self, file: &Path) -> String {
        self.run(&["dump"], file)
    }

    /// Fails unless bbolt's check finds nothing wrong with a file.
    pub fn assert_check_clean(&self, file: &Path) {
        self.run(&["check"], file);
    }

    fn run(&self, args: &[&str], file: &Path) -> String {
        let output = Command::new(&self.program).args(args).arg(file).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "bboltpeer {args:?}: {stdout}{stderr}");
        stdout
    }
}
