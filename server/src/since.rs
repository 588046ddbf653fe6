//! What INFO counts from: what CONFIG RESETSTAT has it forget. The figures themselves only grow, for those who watch them.

use std::sync::{Mutex, PoisonError};

use crate::shared::Shared;

/// Figures as they were.
#[derive(Debug, Default)]
pub(crate) struct Since(Mutex<[u64; 5]>);

impl Since {
    /// From now on.
    pub(crate) fn reset(&self, server: &Shared) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all(server);
    }

    /// Connections that were accepted and that were refused, requests that were answered, bytes that came and that went.
    pub(crate) fn figures(&self, server: &Shared) -> [u64; 5] {
        let before = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut figures = all(server);
        figures.iter_mut().zip(before).for_each(|(figure, before)| *figure = figure.saturating_sub(before));
        figures
    }
}

fn all(server: &Shared) -> [u64; 5] {
    let Shared { stats, counters, .. } = server;
    let [_, accepted, refused] = stats.connections();
    [accepted, refused, counters.answered(), counters.received(), counters.sent()]
}
