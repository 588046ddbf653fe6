//! Go programs to compare with: that of the engine's tests, and bbolt's own command. Each is built once, and run as a
//! process for each thing asked of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::Ran;

/// Where cargo lets integration tests keep what they build. The engine's tests build their program there too.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// The Go program of the engine's tests.
pub struct Peer {
    program: PathBuf,
}

/// bbolt's own command.
pub struct Bbolt {
    program: PathBuf,
}

/// What judges histories.
pub struct Judge {
    program: PathBuf,
}

/// What it takes to build a program, and what came of that.
struct Build {
    /// The folder of the module, from this package on.
    module: &'static str,
    /// The package to be built.
    package: &'static str,
    /// The name of the program.
    name: &'static str,
    built: OnceLock<Result<PathBuf, String>>,
}

static PEER: Build = Build { module: "../storage/tests/go", package: ".", name: "bboltpeer", built: OnceLock::new() };
static BBOLT: Build =
    Build { module: "tests/go", package: "go.etcd.io/bbolt/cmd/bbolt", name: "bbolt", built: OnceLock::new() };

static JUDGE: Build = Build { module: "tests/histories", package: ".", name: "histories", built: OnceLock::new() };

/// The Go program of the engine's tests, or `None` (said on standard error) where there is no Go. With
/// `BOLTKV_REQUIRE_TOOLS=1` that is a failure.
pub fn peer() -> Option<Peer> {
    PEER.program().map(|program| Peer { program })
}

/// bbolt's own command; otherwise as [`peer`].
pub fn bbolt() -> Option<Bbolt> {
    BBOLT.program().map(|program| Bbolt { program })
}

/// What judges histories; otherwise as [`peer`].
pub fn judge() -> Option<Judge> {
    JUDGE.program().map(|program| Judge { program })
}

impl Build {
    fn program(&self) -> Option<PathBuf> {
        match self.built.get_or_init(|| self.build()) {
            Ok(program) => Some(program.clone()),
            Err(why) => {
                let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
                assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but there is no {}: {why}", self.name);
                // What `eprintln!` prints of a test that passes is swallowed.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("skipped: no {}: {why}\n", self.name),
                );
                None
            }
        }
    }

    /// What is missing to build it is an `Err`; a program that does not compile is a failure of the test.
    fn build(&self) -> Result<PathBuf, String> {
        fs::create_dir_all(SCRATCH).unwrap();
        let program = Path::new(SCRATCH).join(self.name);
        // Test binaries may run at the same time: one builds, the others find it done.
        let lock = File::create(program.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        let fetched = self.go(&["mod", "download"]).map_err(|error| format!("go does not run: {error}"))?;
        if !fetched.status.success() {
            return Err(format!("its modules cannot be fetched: {}", String::from_utf8_lossy(&fetched.stderr).trim()));
        }
        let built = self.go(&["build", "-mod=readonly", "-o", program.to_str().unwrap(), self.package]).unwrap();
        assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
        Ok(program)
    }

    fn go(&self, args: &[&str]) -> std::io::Result<Output> {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.module);
        Command::new("go").current_dir(module).env_remove("GOFLAGS").env("GOWORK", "off").args(args).output()
    }
}

impl Bbolt {
    /// Runs it, whatever it comes to.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        let output = Command::new(&self.program).args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl Judge {
    /// Whether there is an order that explains a history; what it says of that.
    pub fn judge(&self, history: &[u8]) -> Ran {
        super::feed(&mut Command::new(&self.program), history)
    }
}

impl Peer {
    /// Makes a new file with some of everything in it.
    pub fn make_mixed(&self, file: &Path) {
        self.make("mixed", file);
    }

    /// Makes a new file of a kind that the program knows.
    pub fn make(&self, kind: &str, file: &Path) {
        self.run(&["make", kind], file);
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
