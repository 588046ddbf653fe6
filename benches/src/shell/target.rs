//! The servers that are measured, and what is said to each.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::results::{Target, Timing};
use super::tools::Tools;
use super::{echo, files, hyperfine};
use crate::daemon::{Daemon, Ready};
use crate::process;
use crate::stats::Summary;

/// How often a server is started, to see how long that takes. The last one stays.
const STARTS: usize = 5;

/// How long a command may take when its answer is looked at.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most runs of a command that waits for the server to end the connection: each takes that long.
const LINGERING: u64 = 20;

/// What a SET by an `nc` without `-N` is called in results.
pub const PLAIN: &str = "SET, plain nc";

/// What a SET and a GET look like on the command line, and what has to come back.
type Talk = [(&'static str, &'static str); 2];

const ECHOED: Talk = [("echo 'SET hello world'", "SET hello world\n"), ("echo 'GET hello'", "GET hello\n")];
const ANSWERED: Talk = [("echo 'SET hello world'", "OK\n"), ("echo 'GET hello'", "world\n")];
const RESP: Talk = [("printf 'SET hello world\\r\\n'", "+OK\r\n"), ("printf 'GET hello\\r\\n'", "$5\r\nworld\r\n")];

/// A server that runs, and what was measured so far.
#[derive(Debug)]
pub(super) struct Running {
    target: Target,
    talk: Talk,
    port: u16,
    /// `None`: a thread of this process.
    daemon: Option<Daemon>,
    lines: Vec<Line>,
}

/// A command of the shell.
#[derive(Debug)]
struct Line {
    name: &'static str,
    command: String,
    /// What it has to print.
    answer: &'static str,
    runs: u64,
    seconds: Vec<f64>,
}

/// The server that only echoes.
///
/// # Errors
/// It cannot listen.
pub(super) fn echo() -> Result<Running> {
    let mut running = Running::new("echo", ECHOED);
    running.port = echo::start()?;
    Ok(running)
}

/// boltkv, with a file of about so many bytes of entries.
///
/// # Errors
/// The engine's; the server does not get ready.
pub(super) fn boltkv(tools: &Tools, folder: &Path, bytes: u64) -> Result<Running> {
    let path = folder.join(format!("{bytes}.db"));
    let mut running = Running::new("boltkv", ANSWERED);
    running.target.file = Some(files::make(&path, bytes)?);
    let mut serve = Command::new(&tools.boltkv);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--db"]).arg(path);
    let line = running.start(&mut serve, is_ready)?;
    running.port = port(&line).with_context(|| format!("boltkv tells no port: {line:?}"))?;
    Ok(running)
}

/// Redis without entries, every write on the disk before it is answered.
///
/// # Errors
/// There is none, or it does not get ready.
pub(super) fn redis(tools: &Tools, folder: &Path) -> Result<Running> {
    if !tools.versions.contains_key("Redis") {
        bail!("redis-server is missing: `apt-get install redis-server`");
    }
    let mut running = Running::new("Redis", RESP);
    // It cannot be told to find a port by itself.
    running.port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut serve = Command::new("redis-server");
    serve.args(["--bind", "127.0.0.1", "--port", &running.port.to_string()]).arg("--dir").arg(folder);
    serve.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    running.start(&mut serve, |line| line.contains("Ready to accept connections"))?;
    Ok(running)
}

/// Whether boltkv says in a line that it is ready.
pub(crate) fn is_ready(line: &str) -> bool {
    line.starts_with("boltkv: serving ")
}

/// The port in the line that says that boltkv is ready: that of the first address, whatever the file is called, whose name
/// stands before it and in the journal's behind it.
pub(crate) fn port(ready: &str) -> Option<u16> {
    let address = |rest: &str| rest.split_once(", ")?.0.parse::<SocketAddr>().ok();
    ready.match_indices(" on ").find_map(|(at, on)| address(&ready[at + on.len()..])).map(|address| address.port())
}

impl Running {
    fn new(name: &str, talk: Talk) -> Self {
        let target =
            Target { name: name.to_owned(), file: None, start: None, resident: None, timings: BTreeMap::default() };
        Self { target, talk, port: 0, daemon: None, lines: Vec::new() }
    }

    /// Starts it as often as it takes to know how long that takes. Gives the line that said that it is ready.
    fn start(&mut self, command: &mut Command, is_ready: impl Fn(&str) -> bool) -> Result<String> {
        let mut seconds = Vec::new();
        loop {
            let Ready { daemon, line, after } = Daemon::start(command, &is_ready)?;
            seconds.push(after.as_secs_f64());
            if seconds.len() == STARTS {
                self.target.start = Summary::of(seconds);
                self.daemon = Some(daemon);
                return Ok(line);
            }
            daemon.stop()?;
        }
    }

    /// What a reader takes it for.
    pub(super) fn title(&self) -> String {
        self.target.title()
    }

    /// Prepares its commands, of which most will run `runs` times, and looks whether each is answered as it should be.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn prepare(&mut self, tools: &Tools, runs: u64) -> Result<()> {
        let nc = tools.nc;
        let [set, get] = self.talk;
        let line = |name, flag, (say, answer): (&str, &'static str), runs| {
            let command = format!("{say} | {nc}{flag} 127.0.0.1 {}", self.port);
            Line { name, command, answer, runs, seconds: Vec::new() }
        };
        let mut lines = vec![line("SET", " -N", set, runs), line("GET", " -N", get, runs)];
        // With one file it is enough: what it waits for has nothing to do with that. The server does not end a connection
        // whose line came late, as it may on a busy machine; `-w` does, where nothing comes for so many seconds.
        if self.target.file.is_some_and(|file| file.asked == 0) {
            lines.push(line(PLAIN, " -w 5", set, runs.min(LINGERING)));
        }
        self.lines = lines;
        self.lines.iter().try_for_each(Line::check)
    }

    /// Runs its share of all commands: one of so many rounds.
    ///
    /// # Errors
    /// Those of hyperfine.
    pub(super) fn round(&mut self, round: u64, rounds: u64, folder: &Path) -> Result<()> {
        for line in &mut self.lines {
            let share = line.runs * (round + 1) / rounds - line.runs * round / rounds;
            if share > 0 {
                line.seconds.extend(hyperfine::times(&line.command, share, folder)?);
            }
        }
        Ok(())
    }

    /// Looks at its memory, and ends it.
    ///
    /// # Errors
    /// It does not end in peace.
    pub(super) fn finish(self) -> Result<Target> {
        let mut target = self.target;
        target.resident = self.daemon.as_ref().and_then(Daemon::resident);
        let timing = |line: Line| Some((line.name.to_owned(), Timing::of(&line.seconds)?));
        target.timings = self.lines.into_iter().filter_map(timing).collect();
        self.daemon.map_or(Ok(()), Daemon::stop)?;
        Ok(target)
    }
}

impl Line {
    fn check(&self) -> Result<()> {
        let output = process::output(Command::new("sh").args(["-c", &self.command]), PATIENCE)?;
        if output.stdout != self.answer.as_bytes() {
            let got = String::from_utf8_lossy(&output.stdout);
            bail!("{} prints {got:?}, and should print {:?}", self.command, self.answer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_off_whatever_the_file_is_called() {
        let line = "boltkv: serving a on b, c.db on 127.0.0.1:7878, durability always, journal a on b, c.db-journal";
        assert_eq!(port(line), Some(7878));
        assert_eq!(port("boltkv: serving a.db"), None);
    }
}
