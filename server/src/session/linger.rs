//! When a text connection ends its sending side by itself.
//!
//! `echo 'SET hello world' | nc HOST PORT` is to print the reply and end, but several netcats wait for the server to end
//! first, and send no end of their own. So where every line came at once and ended as `echo` ends it, and the last reply is some
//! time ago, the server says that it is done. What is sent later is not executed: the connection is reset, so that the client
//! hears of it.

use std::time::Duration;

use boltkv_protocol::text::LineEnd;
use tokio::time::Instant;

/// How long after connecting a line may arrive that a one-shot client has sent.
const ONE_SHOT: Duration = Duration::from_millis(100);

/// Watches for a one-shot client.
#[derive(Debug)]
pub(super) struct Linger {
    opened: Instant,
    wait: Duration,
    /// Everything so far looked like a one-shot client.
    one_shot: bool,
}

impl Linger {
    /// For a connection opened at `opened`, to end `wait` after the last reply; zero: never.
    pub(super) const fn new(opened: Instant, wait: Duration) -> Self {
        Self { opened, wait, one_shot: !wait.is_zero() }
    }

    /// A line arrived at `now`.
    pub(super) fn line(&mut self, end: LineEnd, now: Instant) {
        self.one_shot &= end == LineEnd::Lf && now <= self.opened + ONE_SHOT;
    }

    /// When to end the sending side, if nothing is executing till then. `last_reply`: when the last byte of a reply left.
    pub(super) fn deadline(&self, last_reply: Instant) -> Option<Instant> {
        self.one_shot.then(|| last_reply + self.wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(30);

    /// When a connection ends whose lines, each answered at once, came at these milliseconds.
    fn ends_at(lines: &[(u64, LineEnd)], wait: Duration) -> Option<u128> {
        let opened = Instant::now();
        let mut linger = Linger::new(opened, wait);
        let mut last_reply = None;
        for (ms, end) in lines {
            let now = opened + Duration::from_millis(*ms);
            linger.line(*end, now);
            last_reply = Some(now);
        }
        Some((linger.deadline(last_reply?)? - opened).as_millis())
    }

    #[test]
    fn a_one_shot_client_is_ended_some_time_after_its_last_reply() {
        use LineEnd::Lf;
        assert_eq!(ends_at(&[(1, Lf)], WAIT), Some(31));
        assert_eq!(ends_at(&[(1, Lf), (20, Lf), (100, Lf)], WAIT), Some(130));
    }

    #[test]
    fn a_late_line_and_a_carriage_return_turn_it_off_for_good() {
        use LineEnd::{CrLf, Lf};
        assert_eq!(ends_at(&[(1, Lf), (101, Lf)], WAIT), None);
        assert_eq!(ends_at(&[(101, Lf), (102, Lf)], WAIT), None);
        assert_eq!(ends_at(&[(1, CrLf)], WAIT), None);
        assert_eq!(ends_at(&[(1, CrLf), (2, Lf)], WAIT), None);
    }

    #[test]
    fn nothing_is_ended_before_a_reply_or_where_it_is_turned_off() {
        assert_eq!(ends_at(&[], WAIT), None);
        assert_eq!(ends_at(&[(1, LineEnd::Lf)], Duration::ZERO), None);
    }
}
