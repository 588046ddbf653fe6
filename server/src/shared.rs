//! What all connections share, for as long as there is one.

use std::sync::Arc;

use crate::config::{Limits, Timeouts};
use crate::executor::Executor;
use crate::stats::Stats;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) stats: Arc<Stats>,
}
