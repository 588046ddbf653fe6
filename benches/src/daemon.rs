//! A server in a process of its own: started, waited for, looked at, ended. It never outlives its value here, and nothing
//! is waited for without a limit.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{self, Resident};

/// How long a server may take to get ready, or to end: far more than any does.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(5);

/// A server that runs; killed when it is dropped.
#[derive(Debug)]
pub struct Daemon {
    process: Child,
    name: String,
}

/// A server that is ready.
#[derive(Debug)]
pub struct Ready {
    /// The server.
    pub daemon: Daemon,
    /// The line that told it.
    pub line: String,
    /// From its start until that line came.
    pub after: Duration,
}

impl Daemon {
    /// Starts a server, and waits for a line on its standard output that says it is ready.
    ///
    /// # Errors
    /// It does not start, or does not get ready; why, it says on standard error, which is ours.
    pub fn start(command: &mut Command, is_ready: impl Fn(&str) -> bool) -> Result<Ready> {
        let name = command.get_program().to_string_lossy().into_owned();
        let clock = Instant::now();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut daemon = Self { process: spawned.with_context(|| format!("{name} does not start"))?, name };
        let Some(output) = daemon.process.stdout.take() else { bail!("a server without a pipe") };
        let (sender, lines) = mpsc::channel();
        // It reads on when nobody listens any more: a pipe that is full, or closed, is no matter of the server's.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send((line, clock.elapsed()));
            }
        });
        while let Ok((line, after)) = lines.recv_timeout(PATIENCE.saturating_sub(clock.elapsed())) {
            if is_ready(&line) {
                return Ok(Ready { daemon, line, after });
            }
        }
        bail!("{} ended, or was not ready within {} s", daemon.name, PATIENCE.as_secs());
    }

    /// Starts a server that says nothing, and waits until somebody listens at `addr`.
    ///
    /// # Errors
    /// It does not start, or does not listen.
    pub fn start_listening(command: &mut Command, addr: &str) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut daemon = Self { process: spawned.with_context(|| format!("{name} does not start"))?, name };
        let clock = Instant::now();
        while clock.elapsed() < PATIENCE && daemon.process.try_wait()?.is_none() {
            // Who connects to a port of the system's choice may be given that port, and meet himself.
            let is_of_another = |stream: TcpStream| stream.local_addr().ok() != stream.peer_addr().ok();
            if TcpStream::connect(addr).is_ok_and(is_of_another) {
                return Ok(daemon);
            }
            std::thread::sleep(LOOK);
        }
        bail!("{} ended, or did not listen within {} s", daemon.name, PATIENCE.as_secs());
    }

    /// Its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its memory now.
    #[must_use]
    pub fn resident(&self) -> Option<Resident> {
        process::resident(self.process.id())
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// It does not, or not in peace.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// As [`stop`](Self::stop), for a value that stays.
    ///
    /// # Errors
    /// As there.
    pub fn end(&mut self) -> Result<()> {
        // The shell's own `kill`: nothing else is everywhere.
        let kill = format!("kill -TERM {}", self.process.id());
        process::output(Command::new("sh").args(["-c", &kill]), PATIENCE)?;
        let status = process::ended(&mut self.process, PATIENCE).with_context(|| format!("{} was ended", self.name))?;
        if !status.success() {
            bail!("{} ended with {status}", self.name);
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_server_is_ready_when_it_says_so_and_ends_when_told() {
        let script = "trap 'exit 0' TERM; echo loading; echo ready on 7; while :; do sleep 0.01; done";
        let ready = Daemon::start(&mut shell(script), |line| line.starts_with("ready")).unwrap();
        assert_eq!(ready.line, "ready on 7");
        assert!(ready.daemon.resident().is_some());
        ready.daemon.stop().unwrap();
    }

    #[test]
    fn a_server_that_ends_before_it_is_ready_is_an_error() {
        assert!(Daemon::start(&mut shell("echo loading"), |line| line == "ready").is_err());
    }
}
