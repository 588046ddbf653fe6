//! How a thread hears that nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Has a thread stop when it is dropped.
#[derive(Debug, Default)]
pub(super) struct StopOnDrop(Stop);

/// What the thread looks at between its steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl StopOnDrop {
    pub(super) fn stop(&self) -> Stop {
        self.0.clone()
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

impl Stop {
    pub(super) fn is_wanted(&self) -> bool {
        self.0.load(Relaxed)
    }
}
