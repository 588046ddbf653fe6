//! What the system says of a process and of a disk: processor time, bytes written, syncs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Clock ticks a second in `/proc`: the same on every Linux that boltkv is built for.
const TICKS: f64 = 100.0;
/// Where user and system time stand in `/proc/PID/stat`, behind the name in brackets.
const USER_TIME: usize = 11;
/// Where flushes stand in a line of `/proc/diskstats`, behind two numbers and a name, from Linux 5.5 on.
const FLUSHES: usize = 18;

/// Counters, which only grow. `None`: the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counters {
    /// Seconds of the processor.
    pub(super) cpu: f64,
    /// Bytes that the process has given to the disk.
    pub(super) bytes: Option<f64>,
    /// Flushes of the disk that the folder is on, by whomever.
    pub(super) flushes: Option<f64>,
}

impl Counters {
    /// As they are now, for a process that writes into `folder`.
    pub(super) fn of(process: u32, folder: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        let disks = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let device = fs::metadata(folder).map(|folder| folder.dev()).unwrap_or_default();
        Self {
            cpu: cpu(&read("stat")).unwrap_or_default(),
            bytes: bytes(&read("io")),
            flushes: flushes(&disks, device),
        }
    }
}

fn cpu(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: f64 = fields.split(' ').skip(USER_TIME).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks / TICKS)
}

fn bytes(io: &str) -> Option<f64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

/// The flushes of the disk with this number; also of the disk that it is a part of, where parts are not counted.
fn flushes(disks: &str, device: u64) -> Option<f64> {
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xfff_ff00);
    let number = |fields: &[&str], at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let lines: Vec<Vec<&str>> = disks.lines().map(|line| line.split_whitespace().collect()).collect();
    let own = lines.iter().find(|line| number(line, 0) == Some(major) && number(line, 1) == Some(minor))?;
    let whole = lines.iter().find(|line| {
        let (name, own) = (line.get(2).copied().unwrap_or_default(), own.get(2).copied().unwrap_or_default());
        own.strip_prefix(name).is_some_and(|part| !part.is_empty())
    });
    let own = number(own, FLUSHES)?;
    let flushes = if own > 0 { own } else { whole.and_then(|whole| number(whole, FLUSHES)).unwrap_or(0) };
    #[expect(clippy::cast_precision_loss, reason = "a count, far below 2^52")]
    Some(flushes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_where_the_system_has_them() {
        assert_eq!(cpu("7 (a ) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0"), Some(3.0));
        assert_eq!(bytes("rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"), Some(4096.0));
        let disks = "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 77 17\n\
                        8       1 sda1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 17\n\
                      254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 5 17\n";
        assert_eq!(flushes(disks, 254 << 8), Some(5.0));
        assert_eq!(flushes(disks, 0x0801), Some(77.0), "a part of a disk has none of its own");
        assert_eq!(flushes(disks, 0x0900), None);
    }

    #[test]
    fn a_process_that_works_has_had_the_processor() {
        let folder = tempfile::tempdir().unwrap();
        let id = std::process::id();
        let before = Counters::of(id, folder.path());
        let mut sum = 0_u64;
        while Counters::of(id, folder.path()).cpu - before.cpu < 0.02 {
            sum = (0..100_000).fold(sum, |sum, number: u64| sum.wrapping_mul(31).wrapping_add(number));
        }
        assert!(before.cpu >= 0.0 && sum != 1);
    }
}
