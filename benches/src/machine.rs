//! What a measurement was made on.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// A machine and the tools on it. What cannot be found out is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of its threads may be used.
    pub threads: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The operating system's kernel.
    pub kernel: String,
    /// The Rust compiler.
    pub rust: String,
    /// The commit that was measured.
    pub commit: String,
    /// The day, as 2026-01-31.
    pub day: String,
}

impl Machine {
    /// This one, now.
    #[must_use]
    pub fn here() -> Self {
        let kilobytes = field("/proc/meminfo", "MemTotal").split(' ').next().and_then(|n| n.parse().ok());
        Self {
            processor: field("/proc/cpuinfo", "model name"),
            threads: std::thread::available_parallelism().map_or(0, Into::into),
            memory: kilobytes.unwrap_or(0_u64) * 1024,
            kernel: said("uname", &["-sr"]),
            rust: said("rustc", &["--version"]),
            commit: said("git", &["describe", "--always", "--dirty"]),
            day: said("date", &["-u", "+%F"]),
        }
    }
}

/// The value after `name:` in a file of such lines.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_thread_and_memory() {
        let machine = Machine::here();
        assert!(machine.threads > 0 && machine.memory > 0);
    }
}
