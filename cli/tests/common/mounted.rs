//! A small file system of a test's own, mounted where only its server sees it; that takes root, or leave to be root in a
//! namespace.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A folder on a small file system of its own, beside a database that is not on it.
pub struct Mounted {
    pub folder: TempDir,
    size: &'static str,
}

impl Mounted {
    /// `None` (said on standard error) where nothing may be mounted; with `BOLTKV_REQUIRE_TOOLS=1` that is a failure.
    pub fn new(size: &'static str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Self { folder, size };
        fs::create_dir(mounted.small()).unwrap();
        let tried = mounted.command("true", [""; 0]).output();
        if tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            return Some(mounted);
        }
        let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but nothing can be mounted: {tried:?}");
        eprintln!("skipped: nothing can be mounted");
        None
    }

    /// Where the small file system is mounted.
    pub fn small(&self) -> PathBuf {
        self.folder.path().join("a.db-journal")
    }

    pub fn db(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    /// A command that finds the small file system mounted, empty; it is gone with the command.
    pub fn command<A: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new("unshare");
        let script = "mount -t tmpfs -o size=$0 none \"$1\" && shift && exec \"$@\"";
        command.args(["--map-root-user", "--mount", "sh", "-c", script, self.size]);
        command.arg(self.small()).arg(program).args(args);
        command
    }

    pub fn serve<A: AsRef<OsStr>>(&self, more: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_boltkv"), ["serve", "--listen", "127.0.0.1:0", "--db"]);
        command.arg(self.db()).args(more);
        command
    }
}
