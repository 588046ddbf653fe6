//! `boltkv file export`: everything in a file as lines of JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use boltkv_storage::{Bucket, CheckOptions, Cursor, Db, Tx};
use clap::Args;
use tempfile::NamedTempFile;

use super::interrupt::Interrupt;
use super::line::Lines;
use super::memory::Memory;
use super::output::{Error, Printed};
use super::progress::Progress;
use super::target::{Target, same_file};
use crate::failure::{Failure, Outcome};

const BUFFER: usize = 1 << 18;

/// Write everything in a file as lines of JSON
///
/// One object a line, everything binary in base64: {"path":["b64",…],"sequence":N} for a bucket, before all that is in it,
/// and {"path":["b64",…],"key":"b64","value":"b64"} for an entry; depth first, in key order. The file is checked first, and
/// one that is damaged is not exported. What is exported is one snapshot.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file export boltkv.db > everything.jsonl
  boltkv file export boltkv.db --output everything.jsonl
  boltkv file export old.db | boltkv file import new.db")]
pub(crate) struct Export {
    #[command(flatten)]
    target: Target,
    /// Where to write, instead of standard output. A file appears under this name only when it is complete
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Has no effect: what is written is always lines of JSON
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.open_sound()?;
        let Some(output) = &self.output else {
            let _interrupt = Interrupt::new(|| "what is written of the export is not whole".into())?;
            let out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
            return self.write(&db, out, |error| Failure::stdout(&error)).map(drop);
        };
        self.refuse_own_file(output)?;
        let failed = |error| Failure::not_done(format!("could not write {}: {error}", output.display()));
        if output.metadata().is_ok_and(|found| !found.is_file()) {
            // A pipe or a device is written as it is; nothing may take its place.
            let _interrupt = Interrupt::new(|| "what is written of the export is not whole".into())?;
            let device = File::options().write(true).open(output).map_err(failed)?;
            return self.write(&db, BufWriter::with_capacity(BUFFER, device), failed).map(drop);
        }
        let interrupt = Interrupt::writing(output)?;
        let unfinished = NamedTempFile::new_in(folder_of(output)).map_err(failed)?;
        interrupt.remove(unfinished.path());
        let out = self.write(&db, BufWriter::with_capacity(BUFFER, unfinished), failed)?;
        let finished = out.into_inner().map_err(|error| failed(error.into_error()))?;
        finished.as_file().sync_all().map_err(failed)?;
        finished.persist(output).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Opens the file, which must be free of damage: a damaged tree could go in circles, and half an export looks like a
    /// whole one.
    fn open_sound(&self) -> Outcome<Db> {
        let path = self.target.path();
        let db = self.target.open_to_read(None)?;
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

    /// The export must not take the place of what it exports.
    fn refuse_own_file(&self, output: &Path) -> Outcome {
        if same_file(self.target.path(), output) {
            return Err(Failure::usage(format!("{} is the file to be exported", output.display())));
        }
        Ok(())
    }

    fn write<W: Write>(&self, db: &Db, out: W, failed: impl Fn(io::Error) -> Failure) -> Outcome<W> {
        let storage_failed = |error| Failure::storage(self.target.path(), &error);
        let tx = db.begin().map_err(storage_failed)?;
        let mut lines = Lines::new(out);
        let written = write_everything(&tx, &mut lines).and_then(|()| {
            let mut out = lines.into_inner();
            out.flush()?;
            Ok(out)
        });
        written.map_err(|error| match error {
            Error::Read(error) => storage_failed(error),
            Error::Write(error) => failed(error),
        })
    }
}

fn write_everything(tx: &Tx, lines: &mut Lines<impl Write>) -> Printed {
    let mut read = Read { progress: Progress::counting("entries"), memory: Memory::new(tx), bytes: 0 };
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
fn write_bucket(name: &[u8], top: Bucket<'_>, lines: &mut Lines<impl Write>, read: &mut Read<'_>) -> Printed {
    lines.enter(name, top.sequence())?;
    let mut way: Vec<(Bucket<'_>, Cursor<'_>)> = vec![(top, top.cursor())];
    while let Some((bucket, cursor)) = way.last_mut() {
        match cursor.next()? {
            Some((key, Some(value))) => {
                lines.entry(key, value)?;
                read.entry(key, value);
            }
            Some((name, None)) => {
                let inner = bucket.bucket(name)?;
                lines.enter(name, inner.sequence())?;
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

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
