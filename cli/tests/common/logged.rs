//! A server whose log is a file, so that a test can wait until something is in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::server::{PATIENCE, Server};

/// A server whose log is the file `log` in its folder.
pub struct Logged {
    pub server: Server,
    pub log: PathBuf,
}

impl Logged {
    /// Serves the file `a.db` in this folder.
    #[track_caller]
    pub fn start(folder: &Path, more: &[OsString]) -> Self {
        let args = crate::args!["--listen", "127.0.0.1:0", "--db", folder.join("a.db")];
        Self::start_with(folder, args.iter().chain(more))
    }

    /// Serves what these arguments say.
    #[track_caller]
    pub fn start_with<A: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = A>) -> Self {
        let log = folder.join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "log=$1 && shift && exec \"$@\" 2>\"$log\"", "sh"]).arg(&log);
        command.arg(env!("CARGO_BIN_EXE_boltkv")).arg("serve").args(args);
        for name in ["BOLTKV_CONFIG", "BOLTKV_LOG", "BOLTKV_LOG_FORMAT", "RUST_LOG"] {
            command.env_remove(name);
        }
        Self { server: Server::spawn(&mut command), log }
    }

    pub fn logged(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until this is logged for the nth time.
    #[track_caller]
    pub fn wait_for(&self, words: &str, times: usize) {
        wait_for(&self.log, words, times);
    }
}

/// Waits until this is in a log for the nth time.
#[track_caller]
pub fn wait_for(log: &Path, words: &str, times: usize) {
    let given_up = Instant::now() + PATIENCE;
    loop {
        let logged = fs::read_to_string(log).unwrap();
        if logged.matches(words).count() >= times {
            return;
        }
        assert!(Instant::now() < given_up, "{words} is not logged {times} times: {logged}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
