//! Scans that stand still, where the snapshots they are of keep what writes need: memory for what is new, or pages of a file
//! that may not grow. They end, the oldest first. Otherwise commits would go on without that memory, each with pages of its
//! own, and the file would grow; or none would be done at all; for as long as such a client likes.

use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply};
use boltkv_storage::{Stats, TxId};
use tokio::time::Instant;
use tracing::info;

use super::codec::Codec;
use super::deadline::{Deadline, Overdue};
use super::serve::Session;
use super::socket::Socket;
use super::stream::Stream;
use crate::commands::Run;

/// A scan stands still once its client has taken nothing for this part of the time after which it would lose it anyway.
const PART: u32 = 5;
/// So often it is looked at, meanwhile.
const LOOKS: u32 = 6;

/// What was seen when it was last looked whether somebody is in the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    at: Instant,
    /// Commits that had found no memory by then, and writes that had found no room.
    missed: u64,
    refused: u64,
    /// How often in a row somebody was.
    times: u32,
}

/// What writes lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    Memory,
    Room,
}

impl Looked {
    /// What writes have lacked since `before`, for which snapshots that are read are to blame.
    fn lack_since(self, before: Self, stats: &Stats) -> Option<Lack> {
        let is_kept = stats.journal.is_some_and(|journal| journal.memory_kept);
        if is_kept && before.missed < self.missed {
            return Some(Lack::Memory);
        }
        let waits = stats.pending_pages.is_some_and(|pages| pages > 0);
        (waits && before.refused < self.refused).then_some(Lack::Room)
    }
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// When it is to be looked whether a scan is in the way.
    pub(super) fn crowding_deadline(&self) -> Option<Deadline> {
        let (patience, every) = self.crowding_patience();
        // The first look is for what was before.
        let first = self.stands_still_since()? + patience.saturating_sub(every);
        let again = self.paces.looked.map(|looked| looked.at + every);
        Some((again.map_or(first, |again| first.max(again)), Overdue::Crowding))
    }

    /// Looks, and ends those that are in the way: the older half of what is kept; where it still is at the next look, half of
    /// what is left, for somebody may be the oldest who stays.
    pub(super) fn end_crowding(&mut self) {
        let (now, (patience, every)) = (Instant::now(), self.crowding_patience());
        let shared = &self.conn.shared;
        let stats = shared.executor.db().stats();
        let missed = stats.journal.map_or(0, |journal| journal.memory_missed);
        let mut looked = Looked { at: now, missed, refused: shared.stats.refused_for_room(), times: 0 };
        let before = self.paces.looked.filter(|before| now - before.at < 2 * every);
        let lack = before.and_then(|before| looked.lack_since(before, &stats));
        looked.times = lack.and(before).map_or(0, |before| before.times + 1);
        self.paces.looked = Some(looked);
        let (Some(lack), Some(oldest)) = (lack, stats.oldest_reader) else { return };
        let upto = stats.txid - (stats.txid - oldest).checked_shr(looked.times).unwrap_or(0);
        self.end_older(upto, now.checked_sub(patience), lack);
    }

    /// Ends those that have stood still since then, or before, and are of a state up to `upto`.
    fn end_older(&mut self, upto: TxId, since: Option<Instant>, lack: Lack) {
        let is_over = |at: Option<Instant>| at.zip(since).is_some_and(|(at, since)| at <= since);
        let all_stand = is_over(self.nothing_taken_since());
        let leases = &self.leases;
        let is_old = |run: &Run| leases.own(run).is_some_and(|snapshot| snapshot <= upto);
        if self.streams.runs().any(|run| all_stand && run.is_told_whole() && is_old(run)) {
            info!(?lack, "a reply that stood still was in the way: the connection is reset");
            self.resetting = true;
            return;
        }
        let ended = self.streams.end_those(|stream: &Stream<C::Tag>| {
            let stands = all_stand || is_over(stream.credit.missing_since());
            stands && is_old(&stream.run)
        });
        for due in ended {
            info!(?lack, "a scan that stood still was in the way: it was ended");
            self.refuse(due, in_the_way(lack));
        }
    }

    /// For how long a client may take nothing; and how often it is looked.
    fn crowding_patience(&self) -> (Duration, Duration) {
        let patience = self.conn.shared.timeouts.stream_stall / PART;
        (patience, patience / LOOKS)
    }

    /// Since when nothing is taken of a stream, or it has no credit; `None` where all go on, or none keeps a snapshot.
    fn stands_still_since(&self) -> Option<Instant> {
        if self.streams.runs().all(|run| self.leases.own(run).is_none()) {
            return None;
        }
        self.nothing_taken_since().into_iter().chain(self.streams.without_credit_since()).min()
    }

    /// Since when nothing has left of what is to be sent.
    fn nothing_taken_since(&self) -> Option<Instant> {
        self.paces.output.map(|pace| pace.stalled(self.conn.wire.sent(), Duration::ZERO))
    }
}

fn in_the_way(lack: Lack) -> ErrorReply {
    let (kept, help) = match lack {
        Lack::Memory => ("memory that writes need", "`serve --journal-memory` says how much there is"),
        Lack::Room => ("pages that writes need, of a file that cannot grow", "a shorter scan keeps them for less long"),
    };
    let message = format!("the client took nothing, and the scan's snapshot kept {kept}; it was given up: {help}");
    ErrorReply::new(ErrorCode::SnapshotExpired, message)
}
