//! How long a client may take over something: it has to move on, and to come to an end.

use std::time::Duration;

use tokio::time::Instant;

use super::crowding::Looked;
use super::flow::Flow;

/// The least that a client has to move, in bytes a second, beyond the time that it has anyway.
const LEAST_RATE: u64 = 16 * 1024;

/// How one transfer goes: of a request that is arriving, or of replies that the client is to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    since: Instant,
    /// How many bytes had passed when it began.
    before: u64,
}

impl Pace {
    /// It begins now.
    pub(super) fn start(flow: Flow) -> Self {
        Self { since: Instant::now(), before: flow.bytes }
    }

    /// When the transfer is given up if nothing moves until then.
    pub(super) fn stalled(self, flow: Flow, patience: Duration) -> Instant {
        flow.last.max(self.since) + patience
    }

    /// When the transfer is given up if it is no faster until then.
    pub(super) fn slow(self, flow: Flow, patience: Duration) -> Instant {
        let moved = flow.bytes.saturating_sub(self.before);
        self.since + patience + Duration::from_secs(moved / LEAST_RATE)
    }
}

/// What has to go on.
#[derive(Debug, Default)]
pub(super) struct Paces {
    /// The item at the front of the input, which is not whole yet.
    pub(super) item: Option<Pace>,
    /// The replies that are to leave.
    pub(super) output: Option<Pace>,
    /// When it was last looked whether streams that stand still keep memory that writes need.
    pub(super) looked: Option<Looked>,
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: wire-unfinished, ops-unfinished.
    #[tokio::test(start_paused = true)]
    async fn what_stands_still_or_creeps_has_an_end_and_what_flows_has_not() {
        const PATIENCE: Duration = Duration::from_secs(30);
        let begun = Instant::now();
        let pace = Pace::start(Flow { bytes: 500, last: begun });
        let at = |seconds| begun + Duration::from_secs(seconds);
        let still = Flow { bytes: 500, last: begun };
        assert_eq!((pace.stalled(still, PATIENCE), pace.slow(still, PATIENCE)), (at(30), at(30)));
        let creeping = Flow { bytes: 520, last: at(20) };
        assert_eq!((pace.stalled(creeping, PATIENCE), pace.slow(creeping, PATIENCE)), (at(50), at(30)));
        let flowing = Flow { bytes: 500 + (10 << 20), last: at(20) };
        assert_eq!((pace.stalled(flowing, PATIENCE), pace.slow(flowing, PATIENCE)), (at(50), at(670)));
    }
}
