//! Runs works: each engine in a process of its own, on a folder of its own, in turn. Watches the time and the memory
//! that a worker takes, from outside. Times nothing itself.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::contestant::Contestant;
use crate::results::Run;
use crate::work::{Told, Work};

/// Time between two looks at a worker's memory.
const LOOK: Duration = Duration::from_millis(10);

/// Starts workers.
#[derive(Debug)]
pub struct Runner {
    /// Where databases are made; on the disk that is to be measured.
    pub folder: PathBuf,
    /// The program that measures Go's engines, or why there is none.
    pub go: Result<PathBuf, String>,
    /// How long a worker may take.
    pub limit: Duration,
}

/// A run, and why it ended early if it did.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured, up to where it ended.
    pub run: Run,
    /// Why there is no more of it.
    pub failed: Option<String>,
}

impl Runner {
    /// Lets a contestant do a work.
    ///
    /// # Errors
    /// Those of folders and processes. What goes wrong in a worker is no error here, but an [`Outcome`].
    pub fn run(&self, work: &Work, contestant: &Contestant) -> Result<Outcome> {
        let run = Run { work: work.name.clone(), contestant: contestant.to_string(), ..Run::default() };
        let mut outcome = Outcome { run, failed: None };
        let mut command = match (&self.go, contestant.is_go()) {
            (Ok(program), true) => Command::new(program),
            (Err(why), true) => {
                outcome.failed = Some(why.clone());
                return Ok(outcome);
            }
            (_, false) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("worker");
                command
            }
        };
        let folder = tempfile::tempdir_in(&self.folder)?;
        command.arg(contestant.to_string()).arg(folder.path());
        let mut worker =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a worker")?;
        let watched = self.watch(&mut worker, work, &mut outcome);
        // It has ended, or it has to.
        let _ = worker.kill();
        let status = worker.wait()?;
        watched?;
        if outcome.failed.is_none() && !status.success() {
            outcome.failed = Some(format!("its worker ended with {status}"));
        }
        if outcome.failed.is_some() {
            outcome.run.peak_private = None;
        }
        Ok(outcome)
    }

    /// Gives a worker its work, and takes down what it tells until it is done.
    fn watch(&self, worker: &mut Child, work: &Work, outcome: &mut Outcome) -> Result<()> {
        let (Some(mut input), Some(output)) = (worker.stdin.take(), worker.stdout.take()) else {
            bail!("a worker without pipes");
        };
        serde_json::to_writer(&mut input, work)?;
        input.flush()?;
        drop(input);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || BufReader::new(output).lines().try_for_each(|line| sender.send(line).ok()));
        let start = Instant::now();
        loop {
            outcome.run.peak_private = outcome.run.peak_private.max(private_memory(worker.id()));
            match lines.recv_timeout(LOOK) {
                Ok(line) => match serde_json::from_str(&line?).context("a worker speaks in riddles")? {
                    Told::Cost(cost) => outcome.run.add(cost),
                    Told::Done(used) => outcome.run.used = used,
                    Told::Failed(why) => outcome.failed = Some(why),
                },
                Err(RecvTimeoutError::Timeout) if start.elapsed() < self.limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    outcome.failed = Some(format!("took more than {} s", self.limit.as_secs()));
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(worker.wait().map(drop)?),
            }
        }
    }
}

/// Bytes of memory that a process has for itself, without pages of files.
fn private_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_of_its_own() {
        assert!(private_memory(std::process::id()).unwrap() > 0);
        assert_eq!(private_memory(u32::MAX), None);
    }
}
