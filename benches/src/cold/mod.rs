//! A server on a file that is not in memory: what GETs take that have to be read from the disk, and what a PING on another
//! connection takes beside them. Once with all the machine's memory, from an empty cache on, and once in a control group
//! that has a tenth of the file.

mod load;
mod table;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::daemon::{Daemon, Ready};
use crate::group::Group;
use crate::measure::progress;
use crate::shell::{files, target, tools};
use load::{Burst, Figures};
pub use table::table;

/// So many times the memory is the file's length.
const TIMES: u64 = 10;

/// Bytes that an entry takes in a page beside its value: the element that points to it, and its key.
const ENTRY: u64 = 16 + 16;

/// Loads, each on a server that was just started, with nothing of the file in memory.
const LOADS: [Option<Burst>; 3] =
    [None, Some(Burst { connections: 50, in_flight: 1 }), Some(Burst { connections: 4, in_flight: 1_000 })];

/// What is measured, and how.
#[derive(Debug)]
pub struct Plan {
    /// How long each load goes on.
    pub time: Duration,
    /// Bytes of memory of the control group; the file has ten times as many.
    pub memory: u64,
    /// Bytes of a value.
    pub value: usize,
    /// boltkv's program; `None`: that beside this one.
    pub server: Option<PathBuf>,
    /// Where the file is made; on the disk to be measured.
    pub folder: PathBuf,
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    entries: u64,
    /// The file's length.
    bytes: u64,
    /// A line of the table each.
    rows: Vec<Row>,
    /// Why there are no rows with little memory.
    unlimited: Option<String>,
}

/// A load, and what came of it.
#[derive(Debug)]
struct Row {
    /// Bytes of memory that the server had; `None`: all that there is.
    memory: Option<u64>,
    load: Option<Burst>,
    figures: Figures,
}

/// Measures.
///
/// # Errors
/// The server does not start, answer or end; those of files. That no control group can be made is none, and is said.
pub fn measure(plan: &Plan) -> Result<Measured> {
    let server = tools::server_at(plan.server.as_deref())?;
    let folder = tempfile::tempdir_in(&plan.folder)?;
    let path = folder.path().join("cold.db");
    progress("cold: the file");
    let entries = plan.memory * TIMES / (plan.value as u64 + ENTRY);
    let bytes = files::fill(&path, entries, |n| load::value(n, plan.value))?;
    let mut measured = Measured { entries, bytes, rows: Vec::new(), unlimited: None };
    let group = match Group::of_memory(plan.memory) {
        Ok(group) => Some(group),
        Err(why) => {
            measured.unlimited = Some(format!("{why:#}"));
            None
        }
    };
    for limit in [None, group.as_ref()].into_iter().take(1 + usize::from(group.is_some())) {
        for load in LOADS {
            progress(&format!("cold: row {}", measured.rows.len() + 1));
            forget(&path)?;
            let mut serve = Command::new(&server);
            serve.args(["serve", "--listen", "127.0.0.1:0", "--db"]).arg(&path);
            if let Some(group) = limit {
                serve = group.within(&serve);
            }
            let Ready { daemon, line, .. } = Daemon::start(&mut serve, target::is_ready)?;
            let port = target::port(&line).with_context(|| format!("boltkv tells no port: {line:?}"))?;
            let figures = load::run(port, load, (entries, plan.value), plan.time)?;
            daemon.stop()?;
            measured.rows.push(Row { memory: limit.map(|_| plan.memory), load, figures });
        }
    }
    progress("");
    Ok(measured)
}

/// Has the system drop what it keeps of the file. It must be on the disk, and nobody may have it mapped.
fn forget(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
        .with_context(|| format!("{} cannot be dropped from the cache", path.display()))
}
