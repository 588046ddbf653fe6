//! `boltkv file import`: an export's lines into a file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use boltkv_lines::Line;
use boltkv_storage::{BucketMut, Db, Options, TxMut};
use clap::Args;

use super::interrupt::Interrupt;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::lines::Input;

/// A write transaction is committed when it has so many lines…
const BATCH_LINES: u64 = 10_000;
/// … or so many bytes of them, whichever comes first.
const BATCH_BYTES: u64 = 64 << 20;

/// Put the lines of an export into a file
///
/// Reads what `boltkv file export` and `boltkv export` write, into a new file or beside what a file holds: buckets that are missing are made,
/// their sequences set, entries put, nothing deleted. A bucket's line must come before what is in it. Lines are committed
/// 10,000 (or 64 MiB) at a time. The first line that cannot be used ends it: then all lines before that one are in the
/// file, nothing of it or after it is, and the message says which line it was. Blank lines are passed over, and not counted, also in messages.
/// To import the same lines again does no harm.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file import new.db --input everything.jsonl
  boltkv file export old.db | boltkv file import new.db
  jq -c 'select(.path[0] == \"dXNlcnM=\")' everything.jsonl | boltkv file import users.db")]
pub(crate) struct Import {
    #[command(flatten)]
    target: Target,
    /// What to read, instead of standard input, which is `-`, too
    #[arg(long, short, value_name = "IN")]
    input: Option<PathBuf>,
    /// Read comma-separated values, as `boltkv file export --csv` writes them
    #[arg(long)]
    csv: bool,
    /// Say as a JSON object how many lines were put in: {"lines":N}, of CSV records
    #[arg(long)]
    json: bool,
}

impl Import {
    pub(crate) fn run(&self) -> Outcome {
        let mut lines = Input::open(self.input.as_deref(), self.csv)?;
        if !self.target.path().exists() {
            try_first(&mut lines).map_err(|why| self.refused(&lines, 0, &why))?;
        }
        let in_file = Arc::new(AtomicU64::new(0));
        let _interrupt = self.interrupt(Arc::clone(&in_file))?;
        let db = self.target.open_to_write()?;
        let mut committed = 0;
        loop {
            let batch = self.import_batch(&db, &mut lines, committed)?;
            committed += batch.lines;
            in_file.store(committed, Ordering::Relaxed);
            match batch.end {
                End::Full => {}
                End::OfInput => return lines.print_count(committed, self.json),
                End::Refused(why) => return Err(self.refused(&lines, committed, &why)),
            }
        }
    }

    /// A signal may come while a transaction is committed: at least those lines are in the file that were committed before.
    fn interrupt(&self, in_file: Arc<AtomicU64>) -> Outcome<Interrupt> {
        let file = self.target.path().display().to_string();
        Interrupt::new(move || match in_file.load(Ordering::Relaxed) {
            0 => format!("no line is known to be in {file}"),
            1 => format!("the first line is in {file}"),
            many => format!("the first {many} lines are in {file}"),
        })
    }

    /// One write transaction's worth of lines.
    fn import_batch(&self, db: &Db, lines: &mut Input, committed: u64) -> Outcome<Batch> {
        let mut tx = db.begin_mut().map_err(|error| Failure::storage(self.target.path(), &error))?;
        let batch = fill(&mut tx, lines);
        if batch.lines > 0 {
            tx.commit().map_err(|error| {
                let (first, last) = (committed + 1, committed + batch.lines);
                let what = format!("{}s {first} to {last} could not be committed: {error}", lines.counted);
                Failure::not_done(format!("{}: {what}; {}", lines.name, self.state(lines, committed)))
            })?;
        }
        Ok(batch)
    }

    /// The line after those that are committed cannot be used.
    fn refused(&self, lines: &Input, committed: u64, why: &str) -> Failure {
        let place = format!("{}, {} {}", lines.name, lines.counted, committed + 1);
        Failure::not_done(format!("{place}: {why}; {}", self.state(lines, committed)))
    }

    /// What is in the file after a failure.
    fn state(&self, lines: &Input, committed: u64) -> String {
        let (file, one) = (self.target.path().display(), lines.counted);
        match committed {
            0 => format!("nothing was put into {file}"),
            1 => format!("the {one} before it is in {file}"),
            many => format!("the {many} {one}s before it are in {file}"),
        }
    }
}

/// Lines that were applied to one write transaction, and why there are no more of them.
struct Batch {
    lines: u64,
    end: End,
}

enum End {
    /// It is large enough.
    Full,
    /// There are no more lines.
    OfInput,
    /// The line after them cannot be used, for this reason.
    Refused(String),
}

fn fill(tx: &mut TxMut, input: &mut Input) -> Batch {
    let (mut lines, mut bytes) = (0, 0);
    while lines < BATCH_LINES && bytes < BATCH_BYTES {
        let (line, len) = match input.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Batch { lines, end: End::OfInput },
            Err(why) => return Batch { lines, end: End::Refused(why) },
        };
        if let Err(error) = apply(tx, &line) {
            return Batch { lines, end: End::Refused(error.to_string()) };
        }
        lines += 1;
        bytes += len;
    }
    Batch { lines, end: End::Full }
}

/// Whether the first line can be put into a new database: one in memory, so that none is made for what is no export.
fn try_first(input: &mut Input) -> Result<(), String> {
    let Some(line) = input.peek()? else { return Ok(()) };
    let tried = Options::new().open_in_memory().and_then(|db| apply(&mut db.begin_mut()?, line));
    tried.map_err(|error| error.to_string())
}

/// Puts what a line says into the file; after an error nothing of it is there.
fn apply(tx: &mut TxMut, line: &Line) -> boltkv_storage::Result<()> {
    match line {
        Line::Entry { path, key, value } => tx.bucket_mut_path(path)?.put(key, value),
        Line::Bucket { path, sequence } => {
            let Some((name, parents)) = path.split_last() else {
                return Err(boltkv_storage::Error::BucketNameRequired);
            };
            let set = |mut bucket: BucketMut<'_>| sequence.map_or(Ok(()), |sequence| bucket.set_sequence(sequence));
            if parents.is_empty() {
                return set(tx.create_bucket_if_not_exists(name)?);
            }
            set(tx.bucket_mut_path(parents)?.create_bucket_if_not_exists(name)?)
        }
    }
}
