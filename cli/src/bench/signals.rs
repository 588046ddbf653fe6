//! Ctrl-C ends a run early, so that what it has is told and its bucket removed. A second one ends the process at once.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use tokio::runtime::Builder;

use crate::failure::{Failure, Outcome};
use crate::file::Signals;

/// Whether a signal has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    flag: Arc<AtomicBool>,
    number: Arc<AtomicI32>,
}

impl Stop {
    /// From now on signals come here.
    pub(super) fn at_signals() -> Outcome<Self> {
        let stop = Self::default();
        let failed = |error| Failure::not_done(format!("could not handle signals: {error}"));
        stop.clone().listen().map_err(failed)?;
        Ok(stop)
    }

    #[expect(clippy::disallowed_methods, reason = "a second signal says that nothing is to be tidied up")]
    fn listen(self) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let mut signals = Signals::new(&runtime)?;
        thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                let (number, _) = signals.next().await;
                self.number.store(number, Ordering::Relaxed);
                self.flag.store(true, Ordering::Relaxed);
                let (number, _) = signals.next().await;
                process::exit(128 + number);
            });
        })?;
        Ok(())
    }

    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// What the command ends with, if a signal came.
    pub(super) fn outcome(&self) -> Outcome {
        match self.number.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Failure::Signal(number)),
        }
    }
}
