//! What has to hold for a server to be ready: latches, each of which is set or not, and says why not.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

use crate::shared::Shared;

/// The latches of a server.
#[derive(Debug, Default)]
pub(super) struct Latches {
    /// Once the database is open.
    shared: OnceLock<Weak<Shared>>,
    stopping: AtomicBool,
}

/// One of them.
#[derive(Debug, PartialEq, Eq)]
struct Latch {
    name: &'static str,
    /// Why the server is not ready because of it.
    holds_back: Option<String>,
}

impl Latches {
    pub(super) fn opened(&self, shared: Weak<Shared>) {
        // It is opened once.
        let _ = self.shared.set(shared);
    }

    pub(super) fn stopping(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// What all connections share, as long as the database is open and there may be one.
    pub(super) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.get()?.upgrade()
    }

    fn all(&self) -> [Latch; 3] {
        let is_open = self.shared.get().is_some();
        let opening = (!is_open).then(|| "the database is not open yet".to_owned());
        // The journal's failure is the disk's: nothing can be written after either, until the file is opened again.
        let disk = self.shared().and_then(|shared| shared.executor.failure().map(one_line));
        let stopping = self.stopping.load(Relaxed).then(|| "the server is stopping".to_owned());
        [
            Latch { name: "opening", holds_back: opening },
            Latch { name: "disk", holds_back: disk },
            Latch { name: "shutting_down", holds_back: stopping },
        ]
    }

    /// Whether the server is ready, and a line for each latch that holds it back; or for each one, if `verbose`.
    pub(super) fn report(&self, verbose: bool) -> (bool, String) {
        let all = self.all();
        let is_ready = all.iter().all(|latch| latch.holds_back.is_none());
        let mut lines = String::new();
        for Latch { name, holds_back } in &all {
            // A string takes every line.
            let _ = match holds_back {
                Some(why) => writeln!(lines, "{name}: {why}"),
                None if verbose => writeln!(lines, "{name}: ok"),
                None => Ok(()),
            };
        }
        if is_ready {
            lines.push_str("ready\n");
        }
        (is_ready, lines)
    }
}

/// Whatever a file's name holds.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_open_yet_or_stops_is_not_ready_and_says_why() {
        let latches = Latches::default();
        assert_eq!(latches.report(false), (false, "opening: the database is not open yet\n".into()));
        latches.opened(Weak::new());
        assert_eq!(latches.report(false), (true, "ready\n".into()));
        assert_eq!(latches.report(true), (true, "opening: ok\ndisk: ok\nshutting_down: ok\nready\n".into()));
        latches.stopping();
        assert_eq!(latches.report(false), (false, "shutting_down: the server is stopping\n".into()));
        assert_eq!(
            latches.report(true),
            (false, "opening: ok\ndisk: ok\nshutting_down: the server is stopping\n".into())
        );
    }

    #[test]
    fn a_reason_stays_one_line() {
        assert_eq!(one_line("could not sync a\nb"), "could not sync a b");
    }
}
