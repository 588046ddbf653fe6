//! What all connections share, for as long as there is one.

use std::sync::Arc;

use boltkv_protocol::Reply;

use crate::access::Access;
use crate::bursts::Bursts;
use crate::clients::Clients;
use crate::config::{Limits, Timeouts};
use crate::counters::Counters;
use crate::executor::Executor;
use crate::memory::Memory;
use crate::silent::SilentOnes;
use crate::since::Since;
use crate::slow_log::SlowLog;
use crate::stats::{Figure, Stats};
use crate::tls::Encryption;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) access: Arc<Access>,
    pub(crate) encryption: Arc<Encryption>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) stats: Arc<Stats>,
    pub(crate) counters: Counters,
    pub(crate) since: Since,
    pub(crate) clients: Arc<Clients>,
    pub(crate) slow_log: SlowLog,
    /// Those who had no token that is one, and wait to be told so.
    pub(crate) turned_away: Arc<SilentOnes>,
    pub(crate) memory: Arc<Memory>,
    /// The first port that it listens on, that of the Redis dialect before others; 0 where there is none.
    pub(crate) port: u16,
    /// None where all connections are served by the same threads.
    pub(crate) bursts: Option<Bursts>,
}

impl Shared {
    /// The reply to STATS.
    pub(crate) fn stats_reply(&self) -> Reply {
        let figures = self.figures().into_iter();
        Reply::Stats(figures.map(|(name, figure)| (name.into(), figure.to_string().into())).collect())
    }

    /// All figures, as names and values.
    fn figures(&self) -> Vec<(&'static str, Figure)> {
        let executor = &self.executor;
        let mut figures = self.stats.figures(executor.db(), executor.is_read_only(), executor.is_writable());
        figures.push(("backups", Figure::Number(executor.turns().backups.places.taken() as u64)));
        figures.push(("watches", Figure::Number(executor.turns().watches.places.taken() as u64)));
        let (snapshots, oldest) = executor.snapshots().figures();
        figures.push(("snapshots", Figure::Number(snapshots as u64)));
        figures.push(("snapshot_oldest_seconds", Figure::Number(oldest.as_secs())));
        figures.push(("shrinking", Figure::Number(executor.turns().shrinks.places.taken() as u64)));
        let lag = executor.expiry_lag();
        figures.push(("keys_expire", Figure::Number(lag.is_some().into())));
        let lag = lag.unwrap_or_default().as_millis();
        figures.push(("expired_keys", Figure::Number(self.stats.expired_keys())));
        figures.push(("expiry_lag_ms", Figure::Number(u64::try_from(lag).unwrap_or(u64::MAX))));
        if self.access.asks() {
            figures.push(("authentications_failed", Figure::Number(self.access.failed())));
        }
        let memory = [("memory_used", self.memory.used()), ("memory_limit", self.memory.limit())];
        figures.extend(memory.map(|(name, bytes)| (name, Figure::Number(bytes as u64))));
        figures
    }
}
