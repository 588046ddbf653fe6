//! What a signal does to a command that writes a file: nothing half done stays, and it says how far it came.
//!
//! The first signal is answered by a thread of its own, so that it works also while the command waits: for a lock, for
//! input, for the disk. A second one ends the process at once. Commands that only read need none of this.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::progress;
use crate::failure::{Failure, Outcome, note};

/// Signals within this time are one.
const ONE_WISH: Duration = Duration::from_millis(250);

/// `SIGXFSZ`, on every platform that this is built for.
const FILE_SIZE_EXCEEDED: i32 = 25;

/// As long as this lives, a signal ends the command tidily; after that, without a word.
pub(crate) struct Interrupt(Arc<Mutex<Command>>);

/// What there is to be done at a signal.
struct Command {
    /// Says what has become of the result; nothing once the command is done.
    outcome: Option<Box<dyn Fn() -> String + Send>>,
    /// To be removed, beside what the engine has not finished.
    unfinished: Option<PathBuf>,
}

impl Interrupt {
    /// From now on signals come here. `outcome` says what the command leaves behind, as the end of a sentence.
    pub(crate) fn new(outcome: impl Fn() -> String + Send + 'static) -> Outcome<Self> {
        let command = Arc::new(Mutex::new(Command { outcome: Some(Box::new(outcome)), unfinished: None }));
        let failed = |error| Failure::not_done(format!("could not handle signals: {error}"));
        listen(Arc::clone(&command)).map_err(failed)?;
        Ok(Self(command))
    }

    /// For a command that writes one new file, which has its name only when it is whole.
    pub(crate) fn writing(file: &Path) -> Outcome<Self> {
        let file = file.to_owned();
        let is_there = |file: &Path| file.symlink_metadata().is_ok();
        let was_there = is_there(&file);
        Self::new(move || {
            let is_complete = !was_there && is_there(&file);
            format!("{} {}", file.display(), if is_complete { "is complete" } else { "was not written" })
        })
    }

    /// A file, or a folder with all in it, to be removed at a signal.
    pub(crate) fn remove(&self, unfinished: &Path) {
        locked(&self.0).unfinished = Some(unfinished.into());
    }

    /// Does what takes a moment and makes what is to be removed: a signal waits for its end. Otherwise the file could get its
    /// name behind the back of who removes it.
    pub(crate) fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = locked(&self.0);
        work()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        *locked(&self.0) = Command { outcome: None, unfinished: None };
    }
}

fn locked(command: &Mutex<Command>) -> std::sync::MutexGuard<'_, Command> {
    command.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "what would be dropped was removed before")]
fn listen(command: Arc<Mutex<Command>>) -> io::Result<()> {
    at_first_signal(move |number, name| {
        // A thread that cannot be had must not keep the process from ending.
        let tidying = thread::Builder::new().spawn(move || {
            tidy(&command, name);
            process::exit(128 + number);
        });
        tidying.is_ok()
    })
}

/// From now on signals come here. The first one's number and name are for `act`, on a thread of its own; a second one, or one
/// for which `act` can do nothing, ends the process at once.
#[expect(clippy::disallowed_methods, reason = "a second signal says that nothing is to be tidied up")]
pub(crate) fn at_first_signal(act: impl FnOnce(i32, &'static str) -> bool + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let mut signals = Signals::new(&runtime)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            let (mut number, name) = signals.next().await;
            let first = Instant::now();
            if act(number, name) {
                (number, _) = signals.next().await;
                // `timeout` signals its child, and then the group that the child is in: that is one wish.
                while first.elapsed() < ONE_WISH {
                    (number, _) = signals.next().await;
                }
            }
            process::exit(128 + number);
        });
    })?;
    Ok(())
}

/// Removes what is not finished, and says how far the command came.
fn tidy(command: &Mutex<Command>, signal: &str) {
    let mut command = locked(command);
    boltkv_storage::remove_unfinished_files();
    if let Some(unfinished) = command.unfinished.take() {
        // It may be finished, or not have come to be.
        let _ = if unfinished.is_dir() { fs::remove_dir_all(unfinished) } else { fs::remove_file(unfinished) };
    }
    let Some(outcome) = command.outcome.take() else { return };
    let reached = progress::stop().map_or_else(String::new, |reached| format!(" {reached}"));
    note(&format!("interrupted by {signal}{reached}: {}", outcome()));
    // Stays locked: the command is not done any more, whatever it comes to meanwhile.
    std::mem::forget(command);
}

/// The signals that ask a command to end.
struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
    /// A write past the file-size limit (`ulimit -f`) is to fail, as one to a full disk does, and not to end the process.
    _file_size_exceeded: Signal,
}

impl Signals {
    fn new(runtime: &Runtime) -> io::Result<Self> {
        let _entered = runtime.enter();
        let ignored = ignored();
        let unless_ignored = |kind: SignalKind| {
            let is_ignored = ignored & 1 << (kind.as_raw_value() - 1) != 0;
            if is_ignored { Ok(None) } else { signal(kind).map(Some) }
        };
        Ok(Self {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: unless_ignored(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
            _file_size_exceeded: signal(SignalKind::from_raw(FILE_SIZE_EXCEEDED))?,
        })
    }

    /// The next one's number and name.
    async fn next(&mut self) -> (i32, &'static str) {
        let (kind, name) = tokio::select! {
            () = next(&mut self.interrupt) => (SignalKind::interrupt(), "SIGINT"),
            () = next(&mut self.terminate) => (SignalKind::terminate(), "SIGTERM"),
            () = next(&mut self.hang_up) => (SignalKind::hangup(), "SIGHUP"),
        };
        (kind.as_raw_value(), name)
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The signals that this process was started to ignore, a bit each: `nohup` does that, and a shell for what it starts in
/// the background. They stay ignored.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
