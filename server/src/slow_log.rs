//! The newest requests that took long: what they were and whose, never what was in them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::debug;

use crate::clients::Client;
use crate::rows::{Row, page, row};

/// No request takes so long.
const NEVER: u64 = u64::MAX;

/// How many are kept, and from which time on, in microseconds; `None`: none is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowLimits {
    pub(crate) most: u32,
    pub(crate) from_us: Option<u64>,
}

/// A ring of slow requests.
#[derive(Debug)]
pub(crate) struct SlowLog {
    most: AtomicU32,
    /// In microseconds; [`NEVER`]: nothing is slow.
    from: AtomicU64,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    last_id: u64,
    /// The newest last.
    ring: VecDeque<Entry>,
}

/// One that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    at: SystemTime,
    pub(crate) slow: Slow,
    client: u64,
    pub(crate) peer: String,
    pub(crate) name: Option<Box<str>>,
    token: Option<Box<str>>,
}

/// A request that took long, or requests that were answered together and did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slow {
    pub(crate) command: &'static str,
    /// What came of it.
    pub(crate) result: &'static str,
    pub(crate) requests: u32,
    pub(crate) took: Duration,
}

impl SlowLog {
    /// An empty one, of so many entries, for requests that take at least so long.
    pub(crate) fn new(most: u32, from: Duration) -> Self {
        let from = u64::try_from(from.as_micros()).unwrap_or(NEVER);
        Self { most: AtomicU32::new(most), from: AtomicU64::new(from), entries: Mutex::default() }
    }

    /// Whether a request that took so long belongs here.
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        let from = self.from.load(Relaxed);
        from != NEVER && took >= Duration::from_micros(from) && self.most.load(Relaxed) > 0
    }

    pub(crate) fn limits(&self) -> SlowLimits {
        let from = self.from.load(Relaxed);
        SlowLimits { most: self.most.load(Relaxed), from_us: (from != NEVER).then_some(from) }
    }

    /// Changes them, until the server is started again. Where fewer are kept, the oldest go.
    pub(crate) fn limit(&self, to: SlowLimits) {
        self.from.store(to.from_us.unwrap_or(NEVER), Relaxed);
        let mut entries = self.lock();
        self.most.store(to.most, Relaxed);
        let over = entries.ring.len().saturating_sub(to.most as usize);
        entries.ring.drain(..over);
    }

    /// Notes a slow request; the oldest makes room.
    pub(crate) fn note(&self, slow: Slow, client: &Client) {
        let said = client.said();
        debug!(
            command = slow.command,
            result = slow.result,
            requests = slow.requests,
            took_us = u64::try_from(slow.took.as_micros()).unwrap_or(u64::MAX),
            client = client.id,
            token = said.token.as_deref().unwrap_or_default(),
            name = said.name.as_deref().unwrap_or_default(),
            peer = %client.peer,
            "slow request"
        );
        let mut entries = self.lock();
        entries.last_id += 1;
        let id = entries.last_id;
        let most = self.most.load(Relaxed) as usize;
        if most == 0 {
            return;
        }
        if entries.ring.len() >= most {
            entries.ring.pop_front();
        }
        let peer = client.peer.to_string();
        let entry = Entry { id, at: now(), slow, client: client.id, peer, name: said.name, token: said.token };
        entries.ring.push_back(entry);
    }

    /// The newest first of those whose ids are lower (0: of all), so many at most (0: all) and as many as take `bytes`.
    pub(crate) fn rows(&self, most: u32, before: u64, bytes: usize) -> Vec<Row> {
        let most = if most == 0 { usize::MAX } else { most as usize };
        let entries = self.lock();
        let older = entries.ring.iter().rev().skip_while(|entry| before > 0 && entry.id >= before);
        page(older.take(most).map(Entry::row), bytes)
    }

    /// The newest first, so many at most.
    pub(crate) fn newest(&self, most: usize) -> Vec<Entry> {
        self.lock().ring.iter().rev().take(most).cloned().collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().ring.len()
    }

    /// Forgets them.
    pub(crate) fn reset(&self) {
        self.lock().ring.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Nothing that holds it can panic half way.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(crate) fn since_1970(&self) -> Duration {
        self.at.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn row(&self) -> Row {
        let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or_default().to_owned();
        row([
            ("id", self.id.to_string()),
            ("time_ms", self.since_1970().as_millis().to_string()),
            ("took_us", self.slow.took.as_micros().to_string()),
            ("command", self.slow.command.to_owned()),
            ("result", self.slow.result.to_owned()),
            ("requests", self.slow.requests.to_string()),
            ("client", self.client.to_string()),
            ("peer", self.peer.clone()),
            ("token", text(&self.token)),
            ("name", text(&self.name)),
        ])
    }
}

#[expect(clippy::disallowed_methods, reason = "people look at it, beside other logs")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::clients::Clients;
    use crate::peer::Peer;

    #[tokio::test]
    async fn the_newest_are_kept_and_told_first() {
        let client = Arc::new(Clients::default()).add(Peer::Unix(None), CancellationToken::new());
        let log = SlowLog::new(2, Duration::from_millis(10));
        assert!(log.is_slow(Duration::from_millis(10)) && !log.is_slow(Duration::from_millis(9)));
        for command in ["a", "b", "c"] {
            log.note(Slow { command, result: "ok", requests: 1, took: Duration::from_secs(1) }, &client);
        }
        let commands =
            |most| -> Vec<_> { log.rows(most, 0, usize::MAX).into_iter().map(|row| row[3].1.clone()).collect() };
        assert_eq!((commands(0), commands(1)), (vec!["c".into(), "b".into()], vec!["c".into()]));
        assert_eq!(log.rows(0, 3, usize::MAX)[0][0].1, "2", "those before");
        assert_eq!(log.rows(0, 0, 0).len(), 1, "as many as fit, and one in any case");
        log.reset();
        assert!(commands(0).is_empty());
        log.note(Slow { command: "d", result: "ok", requests: 1, took: Duration::from_secs(1) }, &client);
        assert_eq!(log.rows(0, 0, usize::MAX)[0][0].1, "4", "ids go on");
        assert!(!SlowLog::new(0, Duration::ZERO).is_slow(Duration::from_secs(9)));
    }
}
