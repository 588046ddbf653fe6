//! `boltkv file surgery`: changing single pages of a damaged file, on a copy of it.
//!
//! One file a command. What an operation does, and what it refuses, is in the engine's `surgery`.

mod clear_page;
mod clear_page_elements;
mod copy_page;
mod freelist_abandon;
mod freelist_rebuild;
mod meta_update;
mod meta_validate;
mod revert_meta_page;

use std::io::Write as _;
use std::path::PathBuf;

use boltkv_storage::tools::{RawFile, Surgery as Operation};
use boltkv_storage::{Error, Result};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::interrupt::Interrupt;
use super::output::json_line;
use super::progress::Progress;
use super::target::{Target, must_be_free, must_have};
use super::waiting;
use crate::arguments::bytes;
use crate::failure::{Failure, Outcome};

/// Change single pages of a damaged file, on a copy of it
#[derive(Debug, Subcommand)]
pub(crate) enum Surgery {
    RevertMetaPage(revert_meta_page::RevertMetaPage),
    CopyPage(copy_page::CopyPage),
    ClearPage(clear_page::ClearPage),
    ClearPageElements(clear_page_elements::ClearPageElements),
    #[command(subcommand)]
    Freelist(Freelist),
    #[command(subcommand)]
    Meta(Meta),
}

/// Give up the stored freelist, or store one that was found anew
#[derive(Debug, Subcommand)]
pub(crate) enum Freelist {
    Abandon(freelist_abandon::Abandon),
    Rebuild(freelist_rebuild::Rebuild),
}

/// Look at the two meta pages, or set their fields
#[derive(Debug, Subcommand)]
pub(crate) enum Meta {
    Validate(meta_validate::Validate),
    Update(meta_update::Update),
}

impl Surgery {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::RevertMetaPage(command) => command.run(),
            Self::CopyPage(command) => command.run(),
            Self::ClearPage(command) => command.run(),
            Self::ClearPageElements(command) => command.run(),
            Self::Freelist(Freelist::Abandon(command)) => command.run(),
            Self::Freelist(Freelist::Rebuild(command)) => command.run(),
            Self::Meta(Meta::Validate(command)) => command.run(),
            Self::Meta(Meta::Update(command)) => command.run(),
        }
    }
}

/// The file and its copy.
#[derive(Debug, Args)]
pub(super) struct OnCopy {
    #[command(flatten)]
    target: Target,
    /// Where the changed copy is written. A file that is there is not replaced
    #[arg(long, short, value_name = "OUT")]
    output: PathBuf,
    /// Bytes of a page, where both meta pages are too damaged to say
    #[arg(long, value_name = "SIZE", value_parser = bytes::<u32>)]
    page_size: Option<u32>,
    /// Make the copy of the file alone, although its journal holds what the file does not
    #[arg(long)]
    without_journal: bool,
    /// Say what was done as a JSON object
    #[arg(long)]
    json: bool,
    /// As bbolt does it: without a lock.
    #[arg(skip)]
    as_bbolt: bool,
}

impl OnCopy {
    pub(super) fn as_bbolt(target: Target, output: PathBuf) -> Self {
        Self { target, output, page_size: None, without_journal: true, json: false, as_bbolt: true }
    }

    /// Refuses pages that the file does not have. bbolt's command calls that what the operation does.
    pub(super) fn must_have(&self, pages: &[u64]) -> Outcome {
        if self.as_bbolt {
            return Ok(());
        }
        // Why a file cannot be opened, the operation says.
        let file = RawFile::open(self.target.path(), self.page_size);
        file.map_or(Ok(()), |file| must_have(self.target.path(), &file, pages))
    }

    /// Has the copy made.
    pub(super) fn make<T>(&self, operation: impl FnOnce(&Operation) -> Result<T>) -> Outcome<T> {
        if self.as_bbolt {
            waiting::warn_of_journal(self.target.path(), "the copy is made of the file alone");
        } else {
            must_be_free(&self.output)?;
            if !self.without_journal {
                waiting::refuse_journal(self.target.path(), "--without-journal makes the copy of the file alone")?;
            }
        }
        let mut surgery = self.target.surgery(&self.output);
        if let Some(page_size) = self.page_size {
            surgery = surgery.page_size(page_size);
        }
        if self.as_bbolt {
            surgery = surgery.unlocked();
        }
        let (_interrupt, _progress) = (Interrupt::writing(&self.output)?, Progress::doing("copying"));
        operation(&surgery).map_err(|error| match error {
            Error::LockTimeout { .. } | Error::NotABoltFile | Error::EmptyFile | Error::Io { op: "open", .. } => {
                self.target.not_opened(&error, None)
            }
            Error::InvalidPageSize { .. } => Failure::usage(error.to_string()),
            error => Failure::storage(self.target.path(), &error),
        })
    }

    /// Prints what was done: lines for people, the first of them behind the name of the copy, or an object.
    fn say(&self, object: &impl Serialize, lines: &[String]) -> Outcome {
        self.target.print(|out| {
            if self.json {
                return Ok(json_line(object, out)?);
            }
            let mut lines = lines.iter();
            if let Some(first) = lines.next() {
                writeln!(out, "{}: {first}", self.output.display())?;
            }
            Ok(lines.try_for_each(|line| writeln!(out, "{line}"))?)
        })
    }
}

/// What to do where pages are in no tree and in no freelist any more.
fn freelist_in_doubt(in_doubt: bool) -> Option<String> {
    let advice = "the freelist that it stores may be wrong now: see `boltkv file surgery freelist abandon`";
    in_doubt.then(|| advice.to_owned())
}
