//! `boltkv file export`: everything in a file as lines of JSON.

use std::path::PathBuf;

use boltkv_lines::{Format, Lines};
use boltkv_storage::{Bucket, CheckOptions, Cursor, Db, Tx};
use clap::Args;

use super::memory::Memory;
use super::output::{Error, Printed};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::lines::{Destination, write_failed};

/// Write everything in a file as lines of JSON
///
/// One object a line, everything binary in base64: {"path":["b64",…],"sequence":N} for a bucket, before all that is in it,
/// and {"path":["b64",…],"key":"b64","value":"b64"} for an entry; depth first, in key order. With --text only what is no text
/// is in base64: {"bucket":"users/eu","key":"ada","value64":"b64"}. The file is checked first, and one that is damaged is not
/// exported. What is exported is one snapshot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file export boltkv.db > everything.jsonl
  boltkv file export boltkv.db --output everything.jsonl
  boltkv file export --text boltkv.db | jq -r .key
  boltkv file export old.db | boltkv file import new.db")]
pub(crate) struct Export {
    #[command(flatten)]
    target: Target,
    /// Where to write, instead of standard output, which is `-`, too. A file appears under this name only when it is
    /// complete, in the place of one that is there; where the name is a link, what it leads to is replaced
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Write keys and values as they are, and in base64 only what is no text
    #[arg(long)]
    text: bool,
    /// Write comma-separated values: bucket, sequence, key, value, and which of key and value are in base64
    #[arg(long, conflicts_with = "text")]
    csv: bool,
    /// Has no effect: what is written is lines of JSON unless --csv says otherwise
    #[arg(long, conflicts_with = "csv")]
    json: bool,
}

impl Export {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.open_sound()?;
        let format = match (self.text, self.csv) {
            (_, true) => Format::Csv,
            (true, false) => Format::Text,
            (false, false) => Format::Base64,
        };
        let out = Destination::open(self.output.as_deref())?;
        write(&db, out, format).map_err(|error| match error {
            Error::Read(error) => Failure::storage(self.target.path(), &error),
            Error::Write(error) => write_failed(self.output.as_deref(), &error),
        })
    }

    /// Opens the file, which must be free of damage: a damaged tree could go in circles, and half an export looks like a
    /// whole one.
    fn open_sound(&self) -> Outcome<Db> {
        let path = self.target.path();
        let db = self.target.open_to_read(Some("boltkv export"))?;
        let problems = {
            let failed = |error| Failure::storage(path, &error);
            let stats = db.stats();
            let tx = db.begin().map_err(failed)?;
            let (progress, memory) = (Progress::of_pages(stats.pages), Memory::new(&tx));
            let reached = |pages| {
                progress.reach(pages);
                memory.has_read(pages * u64::from(stats.page_size));
            };
            tx.check_with(&CheckOptions::new().progress(&reached)).map_err(failed)?
        };
        match problems.first() {
            None => Ok(db),
            Some(first) => Err(Failure::not_done(format!(
                "{}: not exported, for it is damaged: {first} (`boltkv file check` tells all)",
                path.display()
            ))),
        }
    }
}

fn write(db: &Db, out: Destination, format: Format) -> Printed {
    let tx = db.begin()?;
    let mut progress = Progress::counting("entries");
    progress.hide_if(out.is_terminal());
    let mut lines = Lines::new(Box::new(out), format)?;
    write_everything(&tx, &mut lines, progress)?;
    Ok(lines.finish()?)
}

fn write_everything(tx: &Tx, lines: &mut Lines, progress: Progress) -> Printed {
    let mut read = Read { progress, memory: Memory::new(tx), bytes: 0 };
    for found in tx.buckets() {
        let (name, bucket) = found?;
        write_bucket(name, bucket, lines, &mut read)?;
    }
    Ok(())
}

/// What was read so far.
struct Read<'tx> {
    progress: Progress,
    memory: Memory<'tx>,
    bytes: u64,
}

impl Read<'_> {
    fn entry(&mut self, key: &[u8], value: &[u8]) {
        self.progress.advance(1);
        self.bytes += (key.len() + value.len()) as u64;
        self.memory.has_read(self.bytes);
    }
}

/// Writes a bucket and all within. The way down is kept in a list: buckets may be nested deeper than the stack would bear.
fn write_bucket(name: &[u8], top: Bucket<'_>, lines: &mut Lines, read: &mut Read<'_>) -> Printed {
    lines.enter(name, Some(top.sequence()))?;
    let mut way: Vec<(Bucket<'_>, Cursor<'_>)> = vec![(top, top.cursor())];
    while let Some((bucket, cursor)) = way.last_mut() {
        match cursor.next()? {
            Some((key, Some(value))) => {
                lines.entry(key, value)?;
                read.entry(key, value);
            }
            Some((name, None)) => {
                let inner = bucket.bucket(name)?;
                lines.enter(name, Some(inner.sequence()))?;
                way.push((inner, inner.cursor()));
            }
            None => {
                lines.leave();
                way.pop();
            }
        }
    }
    Ok(())
}
