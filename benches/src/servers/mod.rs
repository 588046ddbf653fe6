//! Servers measured over the network by one generator: boltkv on a fresh file and on one on which was written for long,
//! Redis and memcached. All of them run at once, each is asked in its turn, and a row's rounds are interleaved.

mod host;
mod proc;
mod results;
mod rows;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::group::Group;
use crate::machine::Machine;
use crate::measure::progress;
use crate::results::LeftOut;
use host::Host;
pub use results::{Files, Run, Servers};
pub use rows::{KEYS, Row, Who, rows};

/// What is measured, and how.
#[derive(Debug)]
pub struct Plan {
    /// Only rows of these names, or whose names begin so; all where it is empty.
    pub only: Vec<String>,
    /// Only these; all where it is empty.
    pub servers: Vec<Who>,
    /// How many keys of 100 bytes there are.
    pub keys: u64,
    /// How often each row is measured.
    pub rounds: usize,
    /// How long a round of a row takes, after a fifth of that to warm up.
    pub time: Duration,
    /// Whether there are few entries, to try the program.
    pub quick: bool,
    /// boltkv's program; `None`: that beside this one.
    pub server: Option<PathBuf>,
    /// Where files are made; on the disk to be measured.
    pub folder: PathBuf,
    /// How many writes a second that disk does at most for a server that is measured; `None`: as many as it can.
    pub disk_writes: Option<u32>,
    /// The command that asked for this.
    pub command: String,
}

/// Measures.
///
/// # Errors
/// A server that does not start, answer or end, but for Redis and memcached, which are then left out; those of files.
pub fn measure(plan: &Plan) -> Result<Servers> {
    let wanted = |row: &&Row| plan.only.is_empty() || plan.only.iter().any(|name| row.name.starts_with(name));
    let rows: Vec<&Row> = rows().iter().filter(wanted).collect();
    if rows.is_empty() {
        anyhow::bail!("no row {}: there are {}", plan.only.join(", "), names());
    }
    // Dropped last: no server outlives its folder, nor the group that it is in.
    let folder = tempfile::tempdir_in(&plan.folder)?;
    let disk = plan.disk_writes.map(|writes| Group::of_slow_disk(folder.path(), writes)).transpose()?;
    let (mut hosts, mut left_out, mut versions) = (Vec::new(), Vec::new(), BTreeMap::new());
    for who in Who::ALL.into_iter().filter(|who| plan.servers.is_empty() || plan.servers.contains(who)) {
        progress(&format!("servers: {} is loaded", who.title()));
        match Host::start(who, plan, folder.path(), &rows) {
            Ok(host) => {
                versions.insert(who.title().to_owned(), host.version.clone());
                hosts.push(host);
            }
            // boltkv itself is what all of this is about.
            Err(why) if who.is_boltkv() => return Err(why),
            Err(why) => {
                let (work, contestant) = ("servers".to_owned(), who.title().to_owned());
                left_out.push(LeftOut { work, contestant, why: format!("{why:#}") });
            }
        }
    }
    let mut runs = Vec::new();
    for row in rows {
        for round in 0..plan.rounds {
            // Each round begins with another one.
            let taking_part: Vec<_> = (0..hosts.len()).filter(|at| row.who.contains(&hosts[*at].who)).collect();
            for turn in 0..taking_part.len() {
                let host = &mut hosts[taking_part[(turn + round) % taking_part.len()]];
                progress(&format!(
                    "servers: {}, round {} of {}, {}",
                    row.name,
                    round + 1,
                    plan.rounds,
                    host.who.title()
                ));
                runs.push(host.turn(row, plan, disk.as_ref())?);
            }
        }
    }
    let files = hosts.iter().filter_map(Host::files).collect();
    hosts.into_iter().try_for_each(Host::stop)?;
    progress("");
    Ok(Servers {
        machine: Machine::with(&plan.folder)?,
        command: plan.command.clone(),
        quick: plan.quick,
        rounds: plan.rounds,
        seconds: plan.time.as_secs_f64(),
        keys: plan.keys,
        disk_writes: plan.disk_writes,
        versions,
        runs,
        files,
        left_out,
    })
}

fn names() -> String {
    rows().iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}
