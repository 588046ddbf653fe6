//! What is to be called when a transaction is committed. One that panics keeps none of the others from being called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// In the order in which they were given.
#[derive(Default)]
pub(crate) struct Callbacks(Vec<Box<dyn FnOnce() + Send>>);

impl Callbacks {
    pub(super) fn push(&mut self, callback: impl FnOnce() + Send + 'static) {
        self.0.push(Box::new(callback));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but the first so many.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Takes the first so many away from the others.
    pub(crate) fn take_first(&mut self, count: usize) -> Self {
        let rest = self.0.split_off(count.min(self.0.len()));
        Self(std::mem::replace(&mut self.0, rest))
    }

    /// Calls all of them; the error is what the first of those that panicked did so with.
    pub(crate) fn call(self) -> Result<(), Box<dyn Any + Send>> {
        let mut outcome = Ok(());
        for callback in self.0 {
            let called = catch_unwind(AssertUnwindSafe(callback));
            outcome = outcome.and(called);
        }
        outcome
    }
}
