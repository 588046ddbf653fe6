//! A server of its own for each test: the binary, on a free port.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Ran, boltkv, feed};

/// How long anything may take before a test gives up: far more than it ever takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs; killed when it is dropped.
pub struct Server {
    child: Child,
    addr: String,
    /// The line that it said when it was ready.
    pub ready: String,
}

impl Server {
    /// Serves a file.
    #[track_caller]
    pub fn start(db: &Path) -> Self {
        Self::start_with(db, [""; 0])
    }

    /// Serves a file, with further arguments.
    #[track_caller]
    pub fn start_with<A: AsRef<OsStr>>(db: &Path, more: impl IntoIterator<Item = A>) -> Self {
        Self::spawn(boltkv(crate::args!["serve", "--listen", "127.0.0.1:0", "--db", db]).args(more))
    }

    /// Runs a command that serves, and waits until it is ready.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let Some(addr) = ready.split_once(" on ").and_then(|(_, rest)| rest.split_once(", ")).map(|(addr, _)| addr)
        else {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("the server did not start: {ready}{stderr}");
        };
        let addr = addr.split(" and ").next().unwrap_or(addr).to_owned();
        Self { child, addr, ready }
    }

    /// Where it listens; of several places, the first.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Where it tells how it is, if it was asked to.
    #[track_caller]
    pub fn admin(&self) -> &str {
        self.ready.trim_end().rsplit_once(", admin on ").unwrap().1
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A command against it.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = boltkv(args);
        command.env("BOLTKV_ADDR", &self.addr);
        command
    }

    /// Runs a command against it.
    #[track_caller]
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs a command against it, with this on its standard input.
    #[track_caller]
    pub fn run_with_input<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Ran {
        feed(&mut self.command(args), input)
    }

    /// What it answers to lines of text.
    #[track_caller]
    pub fn text(&self, lines: &str) -> String {
        let mut stream = TcpStream::connect(&self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(lines.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        // The shell's own `kill`: nothing else is everywhere.
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.child.id())).status().unwrap();
        assert!(sent.success(), "could not send {name}");
    }

    /// Asks it to end, and waits for what it comes to.
    #[track_caller]
    pub fn stop(self) -> Ran {
        self.signal("TERM");
        self.wait()
    }

    /// Sends it this signal again and again, until it has ended.
    #[track_caller]
    pub fn end_by(self, name: &str) -> Ran {
        self.wait_and(|server| server.signal(name))
    }

    /// Waits for what it comes to.
    #[track_caller]
    pub fn wait(self) -> Ran {
        self.wait_and(|_| {})
    }

    #[track_caller]
    fn wait_and(mut self, meanwhile: impl Fn(&Self)) -> Ran {
        let given_up = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < given_up, "the server does not end");
            meanwhile(&self);
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { code: self.child.wait().unwrap().code(), stdout: vec![], stderr }
    }

    /// Ends it as a crash would: SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
