//! Scans whose clients take nothing, or too little, where the snapshots they are of keep the memory for what is new from being
//! given back: they end, the older half first. Commits would go on without that memory, each with pages of its own, and the
//! file would grow, for as long as such a client likes.

use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply};
use boltkv_storage::{Stats, TxId};
use tokio::time::Instant;

use super::codec::Codec;
use super::deadline::{Deadline, Overdue};
use super::serve::Session;
use super::socket::Socket;
use crate::commands::Run;

/// Such a client has this part of the time after which it would lose its scans anyway.
const PART: u32 = 15;

/// What was seen when it was last looked whether memory is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    at: Instant,
    /// Commits that had found no memory by then.
    missed: u64,
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// When it is to be looked whether a scan is in the way.
    pub(super) fn crowding_deadline(&self) -> Option<Deadline> {
        let patience = self.crowding_patience();
        let due = self.stands_still(patience)?;
        let again = self.paces.looked.map(|looked| looked.at + patience / 2);
        Some((again.map_or(due, |again| due.max(again)), Overdue::Crowding))
    }

    /// Looks, and ends those that are in the way. The first look only notes what was before.
    pub(super) fn end_crowding(&mut self) {
        let (now, patience) = (Instant::now(), self.crowding_patience());
        let stats = self.conn.shared.executor.db().stats();
        let missed = stats.journal.map_or(0, |journal| journal.memory_missed);
        let before = self.paces.looked.replace(Looked { at: now, missed });
        let is_recent = before.is_some_and(|before| now - before.at <= 2 * patience && before.missed < missed);
        let Some(upto) = crowded_by(&stats).filter(|_| is_recent) else { return };
        let takes_nothing = self.takes_nothing_from(patience).is_some_and(|due| due <= now);
        let is_over = |snapshot: Option<TxId>, no_credit: Option<Instant>| {
            let stands = takes_nothing || no_credit.is_some_and(|since| since + patience <= now);
            stands && snapshot.is_some_and(|snapshot| snapshot <= upto)
        };
        let is_owed = |stream: &Run| stream.is_told_whole() && is_over(stream.snapshot(), None);
        if self.streams.runs().any(is_owed) {
            self.resetting = true;
            return;
        }
        for due in self.streams.end_those(|stream| is_over(stream.run.snapshot(), stream.credit.missing_since())) {
            self.refuse(due, in_the_way());
        }
    }

    fn crowding_patience(&self) -> Duration {
        self.conn.shared.timeouts.stream_stall / PART
    }

    /// From when on a client that takes nothing of a stream, or gives it no credit, has had its time; `None` where all go on,
    /// or none has a snapshot.
    fn stands_still(&self, patience: Duration) -> Option<Instant> {
        if self.streams.runs().all(|run| run.snapshot().is_none()) {
            return None;
        }
        let no_credit = self.streams.without_credit_since().map(|since| since + patience);
        self.takes_nothing_from(patience).into_iter().chain(no_credit).min()
    }

    /// The same of what was sent and has not left.
    fn takes_nothing_from(&self, patience: Duration) -> Option<Instant> {
        let sent = self.conn.wire.sent();
        self.paces.output.map(|pace| pace.stalled(sent, patience).min(pace.slow(sent, patience)))
    }
}

/// Up to which state snapshots are to go, so that there is memory again: the older half of those that keep it.
fn crowded_by(stats: &Stats) -> Option<TxId> {
    let oldest = stats.oldest_reader.filter(|_| stats.journal.is_some_and(|journal| journal.memory_kept))?;
    Some(oldest + (stats.txid - oldest) / 2)
}

fn in_the_way() -> ErrorReply {
    let message = "the client took too little, and the snapshot kept memory that writes need; the stream was given up";
    ErrorReply::new(ErrorCode::SnapshotExpired, message)
}
