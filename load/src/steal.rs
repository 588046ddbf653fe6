//! Processor time that a virtual machine is ready to use and does not get, because its host gives it to others or holds
//! the machine to a share ("steal"). While that lasts nobody on the machine runs, and whoever is answered then waits.

use std::fs;

/// From this share of the processors' time on, what was stolen is to be told: the slowest latencies are the host's as much as the
/// server's.
pub const NOTABLE_STEAL: f64 = 0.01;

/// Where the time stands that was stolen, of the times of all processors in `/proc/stat` (`man 5 proc_stat`): user, nice, system,
/// idle, iowait, irq, softirq, steal. What follows them are parts of the first two.
const STEAL: usize = 7;

/// Times of all processors since the machine was started, in the system's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    /// As they are now. `None`: the system does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn of(stat: &str) -> Option<Self> {
        let times = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> =
            times.split_whitespace().take(STEAL + 1).map(str::parse).collect::<Result<_, _>>().ok()?;
        let &stolen = times.get(STEAL)?;
        Some(Self { all: times.iter().sum(), stolen })
    }

    /// Which part of all processors' time was stolen since then, from 0 to 1. A tick is a hundredth of a second: of what took
    /// less it says nothing.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn stolen_since(self, then: Self) -> f64 {
        let [stolen, all] = [self.stolen.saturating_sub(then.stolen), self.all.saturating_sub(then.all)];
        if all == 0 { 0.0 } else { stolen as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stolen_is_a_share_of_all_processors_time() {
        let then = Processors::of("cpu  100 0 50 800 10 0 30 10 70 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n").unwrap();
        assert_eq!(then, Processors { all: 1000, stolen: 10 });
        let now = Processors::of("cpu  150 0 60 820 10 0 30 130 90 0\n").unwrap();
        assert!((now.stolen_since(then) - 0.6).abs() < 1e-9);
        assert!(now.stolen_since(now).abs() < 1e-9, "no tick has passed");
        assert!(then.stolen_since(now).abs() < 1e-9, "such counters have been seen to go back");
    }

    #[test]
    fn a_system_that_does_not_say_is_not_taken_for_one_that_steals_nothing() {
        let said = ["", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7", "cpu  1 2 3 4 5 6 7 x"];
        assert_eq!(said.map(Processors::of), [None; 4]);
        assert_eq!(Processors::now().is_some(), cfg!(target_os = "linux"));
    }
}
