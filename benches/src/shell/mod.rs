//! A server measured from the shell: what `echo 'SET hello world' | nc` takes, whatever the size of the file, beside a
//! server that only echoes and beside Redis. hyperfine does the timing; nothing here may time a command itself.

mod echo;
pub(crate) mod files;
mod hyperfine;
mod results;
pub(crate) mod target;
pub(crate) mod tools;

use std::path::PathBuf;

use anyhow::Result;

use crate::machine::Machine;
use crate::measure::progress;
use crate::results::LeftOut;
pub use results::{File, Shell, Target, Timing};
pub use target::PLAIN;
use target::Running;
use tools::Tools;

/// In so many rounds the commands of all servers take turns.
const ROUNDS: u64 = 10;

/// What is measured, and how.
#[derive(Debug)]
pub struct Plan {
    /// How often each command is run.
    pub runs: u64,
    /// Whether the files are small ones, to try the program.
    pub quick: bool,
    /// boltkv's program; `None`: that beside this one.
    pub server: Option<PathBuf>,
    /// Where files are made.
    pub folder: PathBuf,
    /// The command that asked for this.
    pub command: String,
}

/// Bytes of entries in each file.
fn sizes(quick: bool) -> [u64; 3] {
    if quick { [0, 10_000, 1_000_000] } else { [0, 1_000_000, 1_000_000_000] }
}

/// Measures.
///
/// # Errors
/// A tool that is missing, but for Redis, which is then left out; a server that does not start, answer or end; those of
/// files.
pub fn measure(plan: &Plan) -> Result<Shell> {
    let tools = Tools::find(plan.server.as_deref())?;
    // Dropped last: no server outlives its folder.
    let folder = tempfile::tempdir_in(&plan.folder)?;
    let mut servers = vec![target::echo()?];
    for bytes in sizes(plan.quick) {
        progress(&format!("shell: a file of {bytes} bytes"));
        servers.push(target::boltkv(&tools, folder.path(), bytes)?);
    }
    let mut left_out = Vec::new();
    match target::redis(&tools, folder.path()) {
        Ok(server) => servers.push(server),
        Err(why) => {
            let (work, contestant) = ("shell".to_owned(), "Redis".to_owned());
            left_out.push(LeftOut { work, contestant, why: format!("{why:#}") });
        }
    }
    servers.iter_mut().try_for_each(|server| server.prepare(&tools, plan.runs))?;
    for round in 0..ROUNDS {
        for server in &mut servers {
            progress(&format!("shell: round {} of {ROUNDS}, {}", round + 1, server.title()));
            server.round(round, ROUNDS, folder.path())?;
        }
    }
    progress("");
    let targets = servers.into_iter().map(Running::finish).collect::<Result<_>>()?;
    Ok(Shell {
        machine: Machine::with(&plan.folder)?,
        command: plan.command.clone(),
        quick: plan.quick,
        versions: tools.versions,
        targets,
        left_out,
    })
}
