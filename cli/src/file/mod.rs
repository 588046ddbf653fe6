//! `boltkv file`: commands on a file that no server has open.

mod check;
mod export;
mod import;
mod line;
mod progress;

use std::path::{Path, PathBuf};
use std::time::Duration;

use boltkv_storage::{Db, Options};
use clap::{Args, Subcommand};

use crate::arguments::seconds;
use crate::failure::{Failure, Outcome};

/// Work on a file that no server has open
#[derive(Debug, Subcommand)]
pub(crate) enum File {
    Check(check::Check),
    Export(export::Export),
    Import(import::Import),
}

impl File {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Check(check) => check.run(),
            Self::Export(export) => export.run(),
            Self::Import(import) => import.run(),
        }
    }
}

/// The file that a command is about.
#[derive(Debug, Args)]
struct Target {
    /// The bolt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// How long to wait for a file that another process has open, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

impl Target {
    /// Opens the file to be read: it must be there, and others may read it meanwhile.
    fn open(&self) -> Result<Db, boltkv_storage::Error> {
        Options::new().read_only(true).timeout(self.timeout).open(&self.path)
    }

    /// Opens the file to be written; makes it if it is missing.
    fn open_to_write(&self) -> Outcome<Db> {
        let opened = Options::new().timeout(self.timeout).open(&self.path);
        opened.map_err(|error| Failure::open(&self.path, &error))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
