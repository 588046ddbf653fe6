//! `boltkv file compact`: everything in a file written anew, without what is free.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use boltkv_storage::Error;
use clap::Args;
use serde::Serialize;

use super::interrupt::Interrupt;
use super::memory::Memory;
use super::output::json_line;
use super::progress::Progress;
use super::target::Target;
use super::target::must_be_free;
use crate::arguments::bytes;
use crate::failure::{Failure, Outcome};

/// Write everything in a file into a new one, without free pages and with full ones
///
/// The new file has the permissions and the page size of the old one, which is left as it is. It appears under its name only
/// when it is complete and on the disk.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file compact boltkv.db --output smaller.db && mv smaller.db boltkv.db")]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(super) target: Target,
    /// Where to write. A file that is there is not replaced
    #[arg(long, short, value_name = "OUT")]
    pub(super) output: PathBuf,
    /// How much of keys and values are written at a time, and kept in memory; 0: all
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = bytes::<u64>)]
    pub(super) tx_max_size: u64,
    /// Has no effect: the new file is synced once, at its end (bbolt's command syncs it for every transaction without this)
    #[arg(long)]
    pub(super) no_sync: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
pub(super) struct Done {
    pub(super) bytes_before: u64,
    pub(super) bytes_after: u64,
}

impl Done {
    /// As bbolt prints it.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { bytes_before, bytes_after } = self;
        #[expect(clippy::cast_precision_loss, reason = "a ratio with two digits")]
        let gain = *bytes_before as f64 / *bytes_after as f64;
        writeln!(out, "{bytes_before} -> {bytes_after} bytes (gain={gain:.2}x)")
    }
}

impl Compact {
    pub(crate) fn run(&self) -> Outcome {
        must_be_free(&self.output)?;
        let _interrupt = Interrupt::writing(&self.output)?;
        let path = self.target.path();
        let db = self.target.open_to_read(Some("boltkv shrink"))?;
        let looked_at = path.metadata();
        let metadata = looked_at.map_err(|error| Failure::not_done(format!("{}: {error}", path.display())))?;
        let failed = |error| Failure::storage(path, &error);
        let tx = db.begin().map_err(failed)?;
        let mode = metadata.permissions().mode() & 0o777;
        let bytes_after = {
            let progress = Progress::of_bytes(tx.size());
            let memory = Memory::new(&tx);
            let mut reached = |bytes| {
                progress.reach(bytes);
                memory.has_read(bytes);
            };
            // What is read takes no room.
            tx.compact_to_file(&self.output, mode, self.tx_max_size, &mut reached).map_err(|error| match error {
                Error::NoSpace { .. } | Error::MaxSizeReached { .. } => Failure::storage(&self.output, &error),
                error => failed(error),
            })?
        };
        let done = Done { bytes_before: metadata.len(), bytes_after };
        self.target.print(|out| {
            if self.json {
                return Ok(json_line(&done, out)?);
            }
            Ok(done.print(out)?)
        })
    }
}
