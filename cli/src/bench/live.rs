//! How a run is getting on, in one line on standard error, for people only.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use boltkv_load::{Limit, Live};
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line, gone without a trace when it is dropped.
pub(super) struct Line {
    bar: ProgressBar,
    what: String,
    limit: Limit,
    last: Live,
}

impl Line {
    pub(super) fn new(what: &str, limit: Limit) -> Self {
        let bar = ProgressBar::no_length();
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        let last = Live { elapsed: Duration::ZERO, answered: 0, failed: 0 };
        Self { bar, what: what.to_owned(), limit, last }
    }

    pub(super) fn show(&mut self, live: Live) {
        self.bar.set_message(said(&self.what, self.limit, self.last, live));
        self.bar.tick();
        self.last = live;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The line: how far it is, and the rate since it was last told.
fn said(what: &str, limit: Limit, last: Live, live: Live) -> String {
    let since = live.elapsed.saturating_sub(last.elapsed).as_millis().max(1);
    let answered = u128::from(live.answered.saturating_sub(last.answered));
    let rate = HumanCount(u64::try_from(answered * 1000 / since).unwrap_or(u64::MAX));
    let reached = match limit {
        Limit::Time(time) => format!("{:.0} of {:.0} s", live.elapsed.as_secs_f64(), time.as_secs_f64()),
        Limit::Requests(count) => format!("{} of {}", HumanCount(live.answered), HumanCount(count)),
    };
    let failed = if live.failed == 0 { String::new() } else { format!(", {} failed", HumanCount(live.failed)) };
    format!("{what}: {reached}, {rate} requests/s{failed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_moment_and_failures_are_not_hidden() {
        let at = |millis, answered, failed| Live { elapsed: Duration::from_millis(millis), answered, failed };
        let time = Limit::Time(Duration::from_secs(5));
        assert_eq!(said("get", time, at(1000, 5000, 0), at(1250, 10_000, 0)), "get: 1 of 5 s, 20,000 requests/s");
        let count = Limit::Requests(1_000_000);
        let line = said("set", count, at(0, 0, 0), at(500, 1000, 3));
        assert_eq!(line, "set: 1,000 of 1,000,000, 2,000 requests/s, 3 failed");
        assert_eq!(said("get", time, at(0, 0, 0), at(0, 0, 0)), "get: 0 of 5 s, 0 requests/s");
    }
}
