//! Runs works: each engine in a process of its own, on a folder of its own, in turn. Watches the time and the memory
//! that a worker takes, from outside. Times nothing itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::contestant::Contestant;
use crate::process;
use crate::results::{Run, Total};
use crate::work::{Stage, Told, Work};
use crate::worker;

/// Time between two looks at a worker's memory.
const LOOK: Duration = Duration::from_millis(10);

/// Starts workers.
#[derive(Debug)]
pub struct Runner {
    /// Where databases are made; on the disk that is to be measured.
    pub folder: PathBuf,
    /// The programs that measure Go's engines, or why there is none, for those that take part.
    pub go: BTreeMap<&'static str, Result<PathBuf, String>>,
    /// How long a worker may take.
    pub limit: Duration,
}

impl Runner {
    /// Lets a contestant do a work. Where it is not done to its end, the inner result says why.
    ///
    /// # Errors
    /// Those of folders and processes. What goes wrong in a worker is none.
    pub fn run(&self, work: &Work, contestant: &Contestant) -> Result<Result<Run, String>> {
        let mut run = Run { work: work.name.clone(), contestant: contestant.to_string(), ..Run::default() };
        let failed = match self.worker(contestant) {
            Err(why) => Some(why),
            Ok(program) if work.counted => self.count(&program, work, &mut run)?,
            Ok(program) => self.work(&program, work, &mut run)?,
        };
        Ok(failed.map_or(Ok(run), Err))
    }

    /// The program that measures a contestant, with its first arguments.
    fn worker(&self, contestant: &Contestant) -> Result<Vec<OsString>, String> {
        let name = contestant.to_string().into();
        if let Some(program) = self.go.get(contestant.engine) {
            return Ok(vec![program.clone()?.into(), name]);
        }
        let this = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        Ok(vec![this.into(), "worker".into(), name])
    }

    /// Has a work done in a new folder. Returns why it was not done to its end, if it was not.
    fn work(&self, program: &[OsString], work: &Work, run: &mut Run) -> Result<Option<String>> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut worker = match command.spawn() {
            Ok(worker) => worker,
            Err(error) => return Ok(Some(format!("{} does not start: {error}", program[0].display()))),
        };
        let watched = self.watch(&mut worker, work, run);
        // It has ended, or it has to.
        let _ = worker.kill();
        let status = worker.wait()?;
        run.file_bytes = Some(worker::bytes(folder.path())?);
        Ok(watched?.or_else(|| (!status.success()).then(|| format!("its worker ended with {status}"))))
    }

    /// Gives a worker its work, and takes down what it tells until it is done. Returns why it was not done, if so.
    fn watch(&self, worker: &mut Child, work: &Work, run: &mut Run) -> Result<Option<String>> {
        let (Some(input), Some(output)) = (worker.stdin.take(), worker.stdout.take()) else {
            bail!("a worker without pipes");
        };
        // One that ends before it has read its work says why below, by its status at least.
        let _ = serde_json::to_writer(input, work);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || BufReader::new(output).lines().try_for_each(|line| sender.send(line).ok()));
        let start = Instant::now();
        let (mut failed, mut done) = (None, false);
        loop {
            if !done {
                run.peak_private = run.peak_private.max(process::resident(worker.id()).map(|resident| resident.anon));
            }
            match lines.recv_timeout(LOOK) {
                Ok(line) => match serde_json::from_str(&line?) {
                    Ok(Told::Cost(cost)) => run.add(cost),
                    Ok(Told::Done(used)) => (run.used, done) = (used, true),
                    Ok(Told::Holds(contents)) => run.contents = Some(contents),
                    Ok(Told::Failed(why)) => failed = Some(why),
                    Err(error) => return Ok(Some(format!("its worker speaks in riddles: {error}"))),
                },
                Err(RecvTimeoutError::Timeout) if start.elapsed() < self.limit => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Ok(Some(format!("took more than {} s", self.limit.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    worker.wait()?;
                    return Ok(failed);
                }
            }
        }
    }

    /// Counts the instructions of each timed stage of a work: those of a process that does only that, without those of
    /// one that does nothing. They take the place of seconds.
    fn count(&self, program: &[OsString], work: &Work, run: &mut Run) -> Result<Option<String>> {
        let only = |stages: &[Stage]| Work { stages: stages.to_vec(), ..work.clone() };
        let nothing = match self.instructions(program, &only(&[]), &mut Run::default())? {
            Ok(count) => count,
            Err(why) => return Ok(Some(why)),
        };
        for stage in work.stages.iter().filter(|stage| stage.figure.is_some()) {
            let mut alone = Run::default();
            match self.instructions(program, &only(std::slice::from_ref(stage)), &mut alone)? {
                Ok(count) => run.costs.extend(alone.costs.into_iter().map(|(figure, total)| {
                    let spent = count - nothing;
                    (figure, Total { spent, ..total })
                })),
                Err(why) => return Ok(Some(why)),
            }
        }
        Ok(None)
    }

    /// The instructions that a process takes for a work, by valgrind's count; or why there is none.
    fn instructions(&self, program: &[OsString], work: &Work, run: &mut Run) -> Result<Result<f64, String>> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        let log = folder.path().join("log");
        let mut valgrind: Vec<OsString> = vec!["valgrind".into(), "--tool=callgrind".into()];
        valgrind.extend(["--callgrind-out-file=/dev/null".into(), format!("--log-file={}", log.display()).into()]);
        valgrind.extend_from_slice(program);
        if let Some(why) = self.work(&valgrind, work, run)? {
            return Ok(Err(why));
        }
        let said = fs::read_to_string(log)?;
        let count = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        Ok(count.ok_or_else(|| "valgrind has not counted".to_owned()))
    }
}
