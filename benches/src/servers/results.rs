//! What was measured of servers, as it is kept in a JSON file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rows::KEYS;
use crate::machine::Machine;
use crate::results::LeftOut;
use crate::stats::Summary;

/// Seconds that many checkpoints fit in.
const LONG: f64 = 30.0;

/// Everything that one call of the program has measured of servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Servers {
    /// Where.
    pub machine: Machine,
    /// The command that does it again.
    pub command: String,
    /// Whether there were few entries, to try the program.
    pub quick: bool,
    /// How often each row was measured.
    pub rounds: usize,
    /// How long each time.
    pub seconds: f64,
    /// How many keys of 100 bytes there were.
    #[serde(default = "usual_keys")]
    pub keys: u64,
    /// How many writes a second the disk did at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_writes: Option<u32>,
    /// The servers, with their versions.
    pub versions: BTreeMap<String, String>,
    /// What was measured.
    pub runs: Vec<Run>,
    /// The files that boltkv served.
    pub files: Vec<Files>,
    /// What was not measured, and why.
    pub left_out: Vec<LeftOut>,
}

/// One round of one row with one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The row's name.
    pub row: String,
    /// The server's title.
    pub server: String,
    /// Requests a second; of a scan entries.
    pub rate: f64,
    /// Latencies in seconds: half of all, 99 % and 99.9 % take less.
    pub p50: f64,
    /// As above.
    pub p99: f64,
    /// As above.
    pub p999: f64,
    /// The longest latency, in seconds: what a stall comes to.
    pub longest: f64,
    /// Requests that failed.
    pub failed: u64,
    /// Seconds of the processor that the server had for a request, all that ran beside it included.
    pub cpu: f64,
    /// The same of the generator.
    pub generator_cpu: f64,
    /// How often a second the disk was told to keep what it was given; of the whole machine. `None` where the system
    /// does not say, as for the next two.
    pub syncs: Option<f64>,
    /// Bytes that the server has given to the disk, a request.
    pub bytes: Option<f64>,
    /// Requests that boltkv's writer took at once, on average.
    pub group: Option<f64>,
    /// The most memory that the server had for itself, in bytes.
    pub memory: Option<u64>,
    /// SETs a second that were done beside it, of those that were due.
    pub beside: Option<f64>,
    /// The share of all processors' time that the host of this virtual machine kept from it meanwhile.
    #[serde(default)]
    pub stolen: Option<f64>,
}

/// A file that boltkv served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// The server's title.
    pub server: String,
    /// The length of all in its folder once it was loaded, in bytes.
    pub loaded: u64,
    /// The same before the rows, after what was overwritten.
    pub aged: u64,
}

fn usual_keys() -> u64 {
    KEYS
}

impl Servers {
    /// Whether it was measured for so long, or out of so many keys, that it does not stand beside others.
    #[must_use]
    pub fn is_of_its_own(&self) -> bool {
        self.keys != KEYS || self.seconds >= LONG
    }

    /// What all rounds of a row came to with this server.
    #[must_use]
    pub fn summary(&self, row: &str, server: &str, of: impl Fn(&Run) -> Option<f64>) -> Option<Summary> {
        Summary::of(self.of(row, server).filter_map(of))
    }

    /// A figure as so many times that of another server in the same round: the median, the least and the most.
    #[must_use]
    pub fn ratio(&self, row: &str, [server, to]: [&str; 2], of: impl Fn(&Run) -> f64) -> Option<Summary> {
        let pairs = self.of(row, server).zip(self.of(row, to));
        Summary::of(pairs.map(|(own, other)| of(own) / of(other)).filter(|ratio| ratio.is_finite()))
    }

    /// The share of the processors' time that was stolen from a server in a row: the median of its rounds.
    #[must_use]
    pub fn stolen(&self, row: &str, server: &str) -> Option<f64> {
        Some(self.summary(row, server, |run| run.stolen)?.median)
    }

    fn of<'a>(&'a self, row: &'a str, server: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.row == row && run.server == server)
    }
}
