//! Ctrl-C ends a run early, so that what it has is told and its bucket removed. A second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::failure::{Failure, Outcome};
use crate::file::at_first_signal;

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
        let signalled = stop.clone();
        let listening = at_first_signal(move |number, _| {
            signalled.number.store(number, Ordering::Relaxed);
            signalled.flag.store(true, Ordering::Relaxed);
            true
        });
        listening.map_err(|error| Failure::not_done(format!("could not handle signals: {error}")))?;
        Ok(stop)
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
