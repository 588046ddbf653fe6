//! The file that a command is about, and how it is opened. Nothing waits for a lock for ever.

use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use boltkv_storage::tools::{RawFile, Surgery};
use boltkv_storage::{Advice, Db, Error, Options, Pgid};
use clap::Args;

use super::{holder, waiting};
use crate::arguments::{bytes, seconds};
use crate::failure::{Failure, Outcome, begins_as, journal_beside};
use crate::shell::quoted_for_shell;

/// The file that a command is about.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The bolt file
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// How long to wait for a file that another process has open, such as 5s or 200ms; a number alone is
    /// seconds
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    timeout: Duration,
    /// Waits for as long as it takes, as bbolt does, but says so.
    #[arg(skip)]
    patient: bool,
}

/// After how long a command that waits for as long as it takes says for whom.
const PATIENCE: Duration = Duration::from_secs(5);

impl Target {
    /// A file of a command that is about two.
    pub(super) fn new(path: &Path, timeout: Duration) -> Self {
        Self { path: path.into(), timeout, patient: false }
    }

    /// A file that is waited for as bbolt does it: for as long as it takes.
    pub(super) fn patient(path: &Path) -> Self {
        Self { path: path.into(), timeout: PATIENCE, patient: true }
    }

    /// Opens the file to be read: it must be there, and others may read it meanwhile.
    pub(super) fn open(&self) -> Result<Db, Error> {
        self.wait_for(&self.options().read_only(true))
    }

    /// As [`Self::open`]; a failure says who holds the file, and `ask`, the command that asks a server the same, if there is one.
    pub(super) fn open_to_read(&self, ask: Option<&str>) -> Outcome<Db> {
        self.open().map_err(|error| {
            let failure = self.not_opened(&error, ask);
            match error {
                Error::LockTimeout { .. } => failure.followed_by(&self.peek_at_it()),
                _ => failure,
            }
        })
    }

    /// What can be done all the same with a file that is locked.
    fn peek_at_it(&self) -> String {
        let path = quoted_for_shell(&self.path);
        format!("; what is in it can be seen all the same: boltkv file peek {path} tree")
    }

    /// As [`Self::open`], and reads the freelist too: it must be free of damage.
    pub(super) fn open_with_freelist(&self) -> Result<Db, Error> {
        self.wait_for(&self.options().read_only(true).pre_load_freelist(true))
    }

    /// Opens the file to be written; makes it if it is missing.
    pub(super) fn open_to_write(&self) -> Outcome<Db> {
        self.wait_for(&self.options()).map_err(|error| self.not_opened(&error, None))
    }

    /// The same, with options of the caller's.
    pub(super) fn open_with(&self, options: Options) -> Outcome<Db> {
        self.wait_for(&options.timeout(self.timeout)).map_err(|error| self.not_opened(&error, None))
    }

    fn wait_for(&self, options: &Options) -> Result<Db, Error> {
        let mut said = !self.patient;
        loop {
            match options.clone().open(&self.path) {
                Err(Error::LockTimeout { .. }) if self.patient => {
                    if !std::mem::replace(&mut said, true) {
                        let holders = holder::named(&self.path);
                        // If standard error is closed, it waits without a word.
                        let _ = writeln!(io::stderr(), "waiting for {}: it is locked{holders}", self.path.display());
                    }
                }
                opened => return opened,
            }
        }
    }

    /// The failure for a file that could not be opened.
    pub(super) fn not_opened(&self, error: &Error, ask: Option<&str>) -> Failure {
        match error {
            Error::LockTimeout { .. } => {
                Failure::unreachable(format!("{error}{}", holder::advice(&self.path, "--timeout", ask)))
            }
            _ => Failure::open(&self.path, error),
        }
    }

    /// An operation on a copy of the file.
    pub(super) fn surgery(&self, output: &Path) -> Surgery {
        Surgery::new(&self.path, output).timeout(self.timeout)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn options(&self) -> Options {
        // Most commands go through the whole file, and the disk is slow where nothing is read ahead.
        Options::new().timeout(self.timeout).advice(Advice::Normal)
    }
}

/// The file that a command looks into page by page.
#[derive(Debug, Args)]
pub(super) struct RawTarget {
    /// The bolt file; it need not open, nor be free of damage
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Bytes of a page, where both meta pages are too damaged to say
    #[arg(long, value_name = "SIZE", value_parser = bytes::<u32>)]
    page_size: Option<u32>,
}

impl RawTarget {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.into(), page_size: None }
    }

    /// Opens the file without a lock, as bbolt does: also one that a server has open can be looked into.
    pub(super) fn open(&self) -> Outcome<RawFile> {
        // A page is there or not, whatever the journal has.
        let _ = waiting::note_of_journal(&self.path);
        RawFile::open(&self.path, self.page_size).map_err(|error| match error {
            Error::NotABoltFile if self.page_size.is_none() && begins_as(&self.path).is_none() => {
                Failure::unreachable(format!(
                    "{}: {error} (if it is one all the same, say the size of its pages: --page-size 4096)",
                    self.path.display()
                ))
            }
            Error::InvalidPageSize { .. } => Failure::usage(error.to_string()),
            _ => Failure::open(&self.path, &error),
        })
    }

    /// Refuses pages that lie beyond the end of the file and beyond its high-water mark. A page below the mark that the
    /// file was cut before is damage: reading it says so.
    pub(super) fn must_have(&self, file: &RawFile, pages: &[Pgid]) -> Outcome {
        must_have(&self.path, file, pages)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Refuses pages that lie beyond the end of a file and beyond its high-water mark.
pub(super) fn must_have(path: &Path, file: &RawFile, pages: &[Pgid]) -> Outcome {
    let end = file.newest_meta().map_or(0, |meta| meta.high_water_mark).max(file.pages());
    let Some(page) = pages.iter().find(|&&page| page >= end) else { return Ok(()) };
    let path = path.display();
    Err(Failure::usage(match end.checked_sub(1) {
        Some(last) => format!("{path} has no page {page}: its pages are 0 to {last}"),
        None => format!("{path} has no page {page}: it is shorter than one page"),
    }))
}

/// Refuses a name that is taken before any work is done: what is there is never written over.
pub(crate) fn must_be_new(output: &Path) -> Outcome {
    match output.symlink_metadata() {
        Ok(_) => Err(Failure::usage(format!("{} is there already: it is not written over", output.display()))),
        Err(_) => Ok(()),
    }
}

/// Refuses a name for a new file that is taken, or would have the journal of another file.
pub(super) fn must_be_free(output: &Path) -> Outcome {
    if output == Path::new("-") {
        let what = "-: what is made is a file, and has a name once all of it is there (`./-` is one of that name)";
        return Err(Failure::usage(what.to_owned()));
    }
    must_be_new(output)?;
    must_have_no_journal(output)
}

/// Refuses a name for a new file beside which the journal of another one is: that would be taken for its own.
pub(crate) fn must_have_no_journal(output: &Path) -> Outcome {
    let journal = journal_beside(output);
    match journal.symlink_metadata() {
        Ok(_) => {
            let what = "it is there, and would be taken for the journal of the new file: move it aside";
            Err(Failure::usage(format!("{}: {what}", journal.display())))
        }
        Err(_) => Ok(()),
    }
}

/// Whether two names lead to one file.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    place(one).is_some() && place(one) == place(other)
}
