//! `boltkv file diff`: what differs between two files.

mod compare;

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::format::Format;
use super::memory::Memory;
use super::output::{Base64, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::arguments::seconds;
use crate::failure::{Failure, Outcome, before_a_verdict};
use compare::{Difference, Error, Side, compare};

/// Tell what differs between two files: buckets, keys, values, sequences
///
/// One line for each difference, in the order of the keys: `-` for what only the old file has, `+` for what only the new one
/// has, `~` for what both have and is not the same. A bucket has a slash behind its name, and all that is in it lines of its
/// own. How the files are built, and what they have free, makes no difference.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file diff yesterday.db today.db
  boltkv file diff --keys-only yesterday.db today.db | grep '^-'
  boltkv file diff --brief backup.db app.db && echo the same

With --json a line is {\"change\":\"-\",\"path\":[\"b64\",…],\"key\":\"b64\",\"old\":\"b64\",\"new\":\"b64\"} for a value, and \
{\"change\":\"-\",\"path\":[\"b64\",…],\"old_sequence\":N,\"new_sequence\":N} for a bucket; what there is not is left out.

Exit code 0: the files hold the same; 1: they do not; 3: one of them could not be opened, or not be read.")]
pub(crate) struct Diff {
    /// The bolt file to start from
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The bolt file to compare with it
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// How long to wait for a file that another process has open, such as 5s or 200ms; a number alone is
    /// seconds
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    timeout: Duration,
    /// How names, keys and values are printed
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "json")]
    format: Format,
    /// Leave values out
    #[arg(long)]
    keys_only: bool,
    /// Only count what differs
    #[arg(long, conflicts_with_all = ["keys_only", "json", "format"])]
    brief: bool,
    /// Print lines of JSON, with names, keys and values in base64
    #[arg(long)]
    json: bool,
}

/// A line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    change: char,
    path: Vec<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_sequence: Option<u64>,
}

/// How much differs, by kind of change.
#[derive(Default)]
struct Tally {
    only_old: u64,
    only_new: u64,
    changed: u64,
}

impl Diff {
    pub(crate) fn run(&self) -> Outcome {
        let open = |path: &Path| Target::new(path, self.timeout).open_to_read(None);
        let (old, new) = (open(&self.old)?, open(&self.new)?);
        let begin = |db: &boltkv_storage::Db, path| db.begin().map_err(|error| Failure::open(path, &error));
        let (old, new) = (begin(&old, &self.old)?, begin(&new, &self.new)?);
        let mut progress = Progress::counting("entries");
        progress.hide_if(!self.brief && io::stdout().is_terminal());
        let mut tally = Tally::default();
        let mut out = BufWriter::new(io::stdout().lock());
        let tell = |difference: Difference<'_>| {
            tally.count(change(&difference));
            if self.brief { Ok(()) } else { self.print(&difference, &mut out) }
        };
        let (memory_old, memory_new) = (Memory::new(&old), Memory::new(&new));
        let compared = compare(&old, &new, tell, |read_old, read_new| {
            memory_old.has_read(read_old);
            memory_new.has_read(read_new);
            progress.advance(1);
        });
        drop(progress);
        let flushed = out.flush();
        compared.map_err(|error| self.failed(error))?;
        before_a_verdict(flushed.map_err(|error| Failure::stdout(&error)))?;
        tally.outcome(&self.old, &self.new)
    }

    /// The failure for a comparison that has no end.
    fn failed(&self, error: Error<io::Error>) -> Failure {
        let path = |side| if side == Side::Old { &self.old } else { &self.new };
        match error {
            Error::Read(side, error) => Failure::open(path(side), &error),
            Error::Endless(side) => Failure::unreachable(format!(
                "{}: it leads to more than it can hold: it is damaged (`boltkv file check` tells more)",
                path(side).display()
            )),
            Error::Told(error) => match Failure::stdout(&error) {
                // What nobody read any more is a difference.
                Failure::OutputClosed => {
                    Failure::not_done(format!("{} and {} differ", self.old.display(), self.new.display()))
                }
                failure => failure,
            },
        }
    }

    fn print(&self, difference: &Difference<'_>, out: &mut BufWriter<StdoutLock<'_>>) -> io::Result<()> {
        if self.json {
            return json_line(&Line::new(difference, self.keys_only), out);
        }
        write!(out, "{} ", change(difference))?;
        match *difference {
            Difference::Value { path, key, old, new } => {
                self.format.write_path(path.iter().copied(), out)?;
                out.write_all(b" ")?;
                self.format.write(key, out)?;
                if !self.keys_only {
                    let print = |value, out: &mut BufWriter<_>| self.format.write(value, out);
                    print_change(old, new, print, out)?;
                }
            }
            Difference::Bucket { path, old, new } => {
                self.format.write_path(path.iter().copied(), out)?;
                let shown = |sequence: &u64| *sequence != 0 || (old.is_some() && new.is_some());
                if old.as_ref().or(new.as_ref()).is_some_and(shown) {
                    out.write_all(b" sequence")?;
                    print_change(old, new, |sequence, out: &mut BufWriter<_>| write!(out, "{sequence}"), out)?;
                }
            }
        }
        out.write_all(b"\n")
    }
}

/// Prints what was and what is.
fn print_change<T, W: Write>(
    old: Option<T>,
    new: Option<T>,
    print: impl Fn(T, &mut W) -> io::Result<()>,
    out: &mut W,
) -> io::Result<()> {
    out.write_all(b" = ")?;
    let both = old.is_some() && new.is_some();
    old.map_or(Ok(()), |old| print(old, out))?;
    if both {
        out.write_all(b" -> ")?;
    }
    new.map_or(Ok(()), |new| print(new, out))
}

fn change(difference: &Difference<'_>) -> char {
    let (in_old, in_new) = match difference {
        Difference::Value { old, new, .. } => (old.is_some(), new.is_some()),
        Difference::Bucket { old, new, .. } => (old.is_some(), new.is_some()),
    };
    match (in_old, in_new) {
        (true, false) => '-',
        (false, _) => '+',
        (true, true) => '~',
    }
}

impl<'a> Line<'a> {
    fn new(difference: &Difference<'a>, keys_only: bool) -> Self {
        let change = change(difference);
        let base64 = |path: &'a [&'a [u8]]| path.iter().map(|name| Base64(name)).collect();
        let shown = |value: Option<&'a [u8]>| value.filter(|_| !keys_only).map(Base64);
        match *difference {
            Difference::Value { path, key, old, new } => Self {
                change,
                path: base64(path),
                key: Some(Base64(key)),
                old: shown(old),
                new: shown(new),
                old_sequence: None,
                new_sequence: None,
            },
            Difference::Bucket { path, old, new } => Self {
                change,
                path: base64(path),
                key: None,
                old: None,
                new: None,
                old_sequence: old,
                new_sequence: new,
            },
        }
    }
}

impl Tally {
    fn count(&mut self, change: char) {
        match change {
            '-' => self.only_old += 1,
            '+' => self.only_new += 1,
            _ => self.changed += 1,
        }
    }

    fn outcome(&self, old: &Path, new: &Path) -> Outcome {
        let Self { only_old, only_new, changed } = self;
        if only_old + only_new + changed == 0 {
            return Ok(());
        }
        let (old, new) = (old.display(), new.display());
        Err(Failure::not_done(format!("only in {old}: {only_old}, only in {new}: {only_new}, changed: {changed}")))
    }
}
