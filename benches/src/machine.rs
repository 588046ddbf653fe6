//! What a measurement was made on.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// Writes that are timed to know what the disk can do.
const SYNCS: u32 = 500;

/// A machine and the tools on it. What cannot be found out is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of its threads may be used.
    pub threads: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The file system of the folder that databases were made in, with its options.
    #[serde(default)]
    pub files: String,
    /// How often a second 4 KiB could be written there and brought to the disk, one after the other.
    #[serde(default)]
    pub syncs: u64,
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
    /// This one, now, with databases in `folder`.
    ///
    /// # Errors
    /// Those of writing there.
    pub fn with(folder: &Path) -> Result<Self> {
        let syncs = syncs(folder).with_context(|| format!("cannot write in {}", folder.display()))?;
        let kilobytes = field("/proc/meminfo", "MemTotal").split(' ').next().and_then(|n| n.parse().ok());
        Ok(Self {
            processor: field("/proc/cpuinfo", "model name"),
            threads: std::thread::available_parallelism().map_or(0, Into::into),
            memory: kilobytes.unwrap_or(0_u64) * 1024,
            files: said("findmnt", &["-rn", "-o", "FSTYPE,OPTIONS", "-T", &folder.to_string_lossy()]),
            syncs,
            kernel: said("uname", &["-sr"]),
            rust: said("rustc", &["--version"]),
            commit: said("git", &["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty"]),
            day: said("date", &["-u", "+%F"]),
        })
    }
}

/// How often a second 4 KiB can be written in a folder and brought to the disk: the limit of a commit is half of that.
fn syncs(folder: &Path) -> std::io::Result<u64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let page = [0xb5; 4096];
    (0..SYNCS).try_for_each(|_| file.write_all(&page))?;
    file.sync_all()?;
    let start = Instant::now();
    for at in 0..u64::from(SYNCS) {
        file.seek(SeekFrom::Start(at * page.len() as u64))?;
        file.write_all(&page)?;
        file.sync_data()?;
    }
    let each = start.elapsed() / SYNCS;
    Ok(u64::try_from(1_000_000_000 / each.as_nanos().max(1)).unwrap_or(0))
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
    fn this_machine_has_a_thread_memory_and_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::with(folder.path()).unwrap();
        assert!(machine.threads > 0 && machine.memory > 0 && machine.syncs > 0);
    }
}
