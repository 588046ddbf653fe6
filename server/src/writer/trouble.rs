//! What the log is told of writes that are refused: at once that they are, and from then on their number now and then. A full
//! disk refuses every group, and what fits in between is done: a line each would fill the disk that the log lies on.

use std::time::{Duration, Instant};

/// So long there is no second line.
const QUIET: Duration = Duration::from_secs(10);

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// So many requests were refused since the last line.
    Refused(u64),
    /// Nothing was refused for a while, and something was done; so many were refused since the last line.
    Works(u64),
}

/// What was said, and when.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// When there was a line last, and when something was refused last.
    last: Option<(Instant, Instant)>,
    unsaid: u64,
}

impl Trouble {
    pub(super) const fn new() -> Self {
        Self { last: None, unsaid: 0 }
    }

    /// So many requests were refused.
    pub(super) fn refused(&mut self, requests: usize, now: Instant) -> Option<Line> {
        self.unsaid = self.unsaid.saturating_add(requests as u64);
        match &mut self.last {
            Some((said, refused)) if now.duration_since(*said) < QUIET => {
                *refused = now;
                None
            }
            _ => {
                self.last = Some((now, now));
                Some(Line::Refused(std::mem::take(&mut self.unsaid)))
            }
        }
    }

    /// A group was done. Cheap where nothing was refused.
    pub(super) fn done(&mut self, now: impl FnOnce() -> Instant) -> Option<Line> {
        let (_, refused) = self.last?;
        if now().duration_since(refused) < QUIET {
            return None;
        }
        self.last = None;
        Some(Line::Works(std::mem::take(&mut self.unsaid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_refusal_is_told_at_once_and_the_number_of_the_others_now_and_then() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut trouble = Trouble::new();
        assert_eq!(trouble.done(|| panic!("no clock is read where nothing was refused")), None);
        assert_eq!(trouble.refused(3, at(0)), Some(Line::Refused(3)));
        for moment in 1..1000 {
            assert_eq!(trouble.refused(2, at(moment * 10)), None);
            assert_eq!(trouble.done(|| at(moment * 10)), None, "what fits in between is no end of it");
        }
        assert_eq!(trouble.refused(1, at(10_000)), Some(Line::Refused(1999)));
        assert_eq!(trouble.refused(5, at(10_001)), None);
        assert_eq!(trouble.done(|| at(20_000)), None);
        assert_eq!(trouble.done(|| at(20_001)), Some(Line::Works(5)));
        assert_eq!(trouble.done(|| at(20_002)), None);
        assert_eq!(trouble.refused(1, at(20_003)), Some(Line::Refused(1)), "at once again");
    }
}
