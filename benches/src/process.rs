//! Processes that were started here: what memory they take, and their end, which is never waited for without a limit.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// Time between two looks whether a process has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Bytes of memory that a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// For itself.
    pub anon: u64,
    /// As pages of files, its own program's among them. The system takes them back when it needs them.
    pub file: u64,
}

/// The memory of a process; `None` where there is no such process.
#[must_use]
pub fn resident(process: u32) -> Option<Resident> {
    let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    Some(Resident { anon: bytes("RssAnon:")?, file: bytes("RssFile:")? })
}

/// Waits until a process has ended. One that takes longer than `limit` is killed.
///
/// # Errors
/// It took longer; it cannot be waited for.
pub fn ended(process: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = process.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
    process.kill()?;
    process.wait()?;
    bail!("it did not end within {} s", limit.as_secs());
}

/// What a program says that says little: no more than a pipe holds.
///
/// # Errors
/// It does not start, or took longer than `limit`.
pub fn output(command: &mut Command, limit: Duration) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} does not start"))?;
    ended(&mut process, limit).with_context(|| format!("{name} was ended"))?;
    Ok(process.wait_with_output()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_its_own_and_of_its_program() {
        let resident = resident(std::process::id()).unwrap();
        assert!(resident.anon > 0 && resident.file > 0);
        assert_eq!(super::resident(u32::MAX), None);
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let mut process = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(ended(&mut process, Duration::from_millis(10)).is_err());
        assert!(!process.wait().unwrap().success());
    }
}
