//! What the system says about this process, in `/proc`; nothing where there is no such thing.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// A process, as the system sees it.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// Time that all its threads had on a processor, in seconds.
    pub(super) cpu: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) most_files: Option<u64>,
    /// When it was started, in seconds since 1970.
    pub(super) started: Option<f64>,
}

impl Process {
    /// This one, now.
    pub(super) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Times::of(&text));
        let ticks = |ticks: u64| seconds(ticks, clock_ticks_per_second());
        let booted = fs::read_to_string("/proc/stat").ok().and_then(|text| booted(&text));
        Self {
            cpu: stat.as_ref().map(|stat| ticks(stat.cpu)),
            resident_bytes: resident_bytes().map(|[all, _]| all),
            // The folder itself is open while it is looked at.
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| (files.count() as u64).saturating_sub(1)),
            most_files: getrlimit(Resource::Nofile).current,
            started: booted.zip(stat).map(|(booted, stat)| seconds(booted, 1) + ticks(stat.started)),
        }
    }
}

/// The memory that this process has of the machine's; and what of it is its own, and no page of a mapped file.
pub(crate) fn resident_bytes() -> Option<[u64; 2]> {
    fs::read_to_string("/proc/self/statm").ok().and_then(|text| resident(&text))
}

/// Time that all threads of this process had on a processor: its own, and the system's for it.
pub(crate) fn processor_times() -> Option<[Duration; 2]> {
    let time = |time: TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or_default())
    };
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    Some([time(usage.user_time()), time(usage.system_time())])
}

/// What a line of `/proc/PID/stat` says about times, in ticks of the system's clock.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    cpu: u64,
    /// Since the machine was started.
    started: u64,
}

impl Times {
    fn of(stat: &str) -> Option<Self> {
        // The program's name stands in parentheses, and may hold some.
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<_> = after_name.split_whitespace().collect();
        // Numbered from 1 in proc(5), and the first one here is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self { cpu: field(14)?.checked_add(field(15)?)?, started: field(22)? })
    }
}

/// When the machine was started, in seconds since 1970.
fn booted(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn resident(statm: &str) -> Option<[u64; 2]> {
    let mut fields = statm.split_whitespace().skip(1).map(str::parse::<u64>);
    let (all, of_files) = (fields.next()?.ok()?, fields.next()?.ok()?);
    let bytes = |pages: u64| pages.checked_mul(page_size() as u64);
    Some([bytes(all)?, bytes(all.saturating_sub(of_files))?])
}

fn seconds(ticks: u64, a_second: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "above 2^53 the last digits do not matter")]
    let (ticks, a_second) = (ticks as f64, a_second.max(1) as f64);
    ticks / a_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_is_read_whatever_the_program_is_called() {
        let line = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 9 0 12345 100 200 300\n";
        assert_eq!(Times::of(line), Some(Times { cpu: 300, started: 12_345 }));
        assert_eq!(Times::of("7 (a) S 1"), None);
        assert_eq!(booted("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000));
        assert_eq!(resident("100 3 1 1 0 1 0\n"), Some([3, 2].map(|pages| pages * page_size() as u64)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_seen() {
        let process = Process::now();
        assert!(process.resident_bytes.is_some_and(|bytes| bytes > 100_000));
        assert!(process.open_files.is_some_and(|files| files >= 3));
        assert!(process.started.is_some_and(|started| started > 1.6e9));
        assert!(process.cpu.is_some() && process.most_files != Some(0));
    }
}
