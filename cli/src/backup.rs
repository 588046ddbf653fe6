//! `boltkv backup`: a server's whole file as of one transaction, while the server goes on.
//!
//! A file has its name only once all of it is on the disk, its checksum is right, and it opens. Whatever goes wrong before
//! leaves nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use boltkv_client::{self as client, Client};
use boltkv_storage::{Advice, CheckOptions, Options};
use clap::Args;
use serde::Serialize;
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep_until};

use crate::arguments::Size;
use crate::failure::{Failure, Outcome};
use crate::file::{Interrupt, Progress, holder, json_line, must_be_new, must_have_no_journal};
use crate::permission::{about_new, folder_of};
use crate::remote::Remote;

/// So many bytes are written before they are synced. What waits for the disk is bounded by it: a server that has the same
/// disk would wait behind all of it with each of its own syncs.
const SYNC_EVERY: u64 = 32 << 20;

/// The slowest pace: at a slower one the server may take the client for one that has stopped reading.
const LEAST_RATE: Size = Size(64 << 10);

/// Back up the file of a running server, as of one transaction
///
/// The backup is an ordinary bolt file. It holds every write that was answered before it began; writes go on meanwhile. FILE
/// has its name only once all of it is on the disk, its checksum is right and it opens. Only its owner may read it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv backup app.backup.db
  boltkv backup --force --check --rate 50MiB app.backup.db
  boltkv backup - | gzip > app.backup.db.gz

To put a backup in place, stop the server, move the file and its journal (the folder FILE-journal) aside, and give the \
backup the file's name.")]
pub(crate) struct Backup {
    /// Where to write; `-` is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace a file that is there, in one step, unless a process has it locked
    #[arg(long)]
    force: bool,
    /// Look at every page before the file gets its name, as `boltkv file check` does
    #[arg(long)]
    check: bool,
    /// Read at most so many bytes a second, 64KiB or more. The server reads its disk no faster
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<Size>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: Remote,
}

fn rate(text: &str) -> Result<Size, String> {
    let rate: Size = text.parse()?;
    if rate.0 < LEAST_RATE.0 { Err(format!("less than {LEAST_RATE} a second")) } else { Ok(rate) }
}

/// What was written, in the shape of its JSON.
#[derive(Serialize)]
struct Done {
    file: String,
    bytes: u64,
    crc32c: String,
    txid: u64,
    pages: u64,
    page_size: u32,
    /// Whether every page was looked at.
    checked: bool,
}

impl Backup {
    pub(crate) fn run(&self) -> Outcome {
        if self.file.as_os_str() == "-" {
            return self.to_stdout();
        }
        let target = Target { file: &self.file, force: self.force };
        target.must_be_free()?;
        let done = self.remote.run(async |client| self.to_file(&client, &target).await)?;
        let mut out = io::stdout().lock();
        let printed = if self.json {
            json_line(&done, &mut out)
        } else {
            let Done { file, bytes, txid, pages, .. } = &done;
            let checked = if done.checked { ", checked" } else { "" };
            writeln!(out, "{file}: transaction {txid}, {pages} pages, {bytes} bytes{checked}")
        };
        printed.map_err(|error| Failure::stdout(&error))
    }

    async fn to_file(&self, client: &Client, target: &Target<'_>) -> Outcome<Done> {
        let size = size(client).await?;
        let backup = client.backup().await?;
        let is_placed = Arc::new(AtomicBool::new(false));
        let interrupt = Interrupt::new({
            let (file, is_placed) = (self.file.clone(), Arc::clone(&is_placed));
            move || {
                let what = if is_placed.load(Relaxed) { "is complete" } else { "was not written" };
                format!("{} {what}", file.display())
            }
        })?;
        let mut file = target.temporary(&interrupt)?;
        let (bytes, crc32c) = {
            let mut out = Synced { file: file.as_file_mut(), unsynced: 0 };
            let received = self.receive(backup, size, &mut out, |error| target.failed("write", &error)).await?;
            out.file.sync_all().map_err(|error| target.failed("sync", &error))?;
            received
        };
        let done = self.examined(file.path(), bytes, crc32c)?;
        target.place(file)?;
        is_placed.store(true, Relaxed);
        target.sync_folder()?;
        Ok(done)
    }

    fn to_stdout(&self) -> Outcome {
        if self.json || self.check || self.force {
            return Err(Failure::usage("--json, --check and --force are about a file, not about standard output"));
        }
        if io::stdout().is_terminal() {
            return Err(Failure::usage("a backup is not written to a terminal: say a file, or lead it elsewhere"));
        }
        self.remote.run(async |client| {
            let size = size(&client).await?;
            let backup = client.backup().await?;
            // A reader that has gone has not got all of it, and has to hear of that.
            let failed = |error| Failure::not_done(format!("could not write standard output: {error}"));
            let mut out = io::stdout().lock();
            self.receive(backup, size, &mut out, failed).await?;
            out.flush().map_err(failed)
        })
    }

    /// Writes a backup as it comes; answers its length and its checksum, which is right.
    async fn receive(
        &self,
        mut backup: client::Backup,
        size: u64,
        out: &mut impl Write,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Outcome<(u64, u32)> {
        let progress = Progress::of_bytes(size);
        let start = Instant::now();
        while let Some(piece) = backup.next().await {
            out.write_all(&piece?).map_err(&failed)?;
            progress.reach(backup.received());
            if let Some(Size(rate)) = self.rate {
                #[expect(clippy::cast_precision_loss, reason = "a pace need not be exact")]
                let due = Duration::try_from_secs_f64(backup.received() as f64 / rate as f64).unwrap_or_default();
                sleep_until(start + due).await;
            }
        }
        Ok((backup.received(), backup.crc32c()))
    }

    /// Opens what was written, and looks at all of it where that was asked for.
    fn examined(&self, written: &Path, bytes: u64, crc32c: u32) -> Outcome<Done> {
        let unusable = |why: String| {
            Failure::not_done(format!("{}: what the server sent is no whole file: {why}", self.file.display()))
        };
        let options = Options::new().read_only(true).advice(Advice::Normal);
        let db = options.open(written).map_err(|error| unusable(error.to_string()))?;
        let stats = db.stats();
        if let Some(damaged) = db.damaged_meta() {
            return Err(unusable(damaged.to_string()));
        }
        let expected = stats.pages.saturating_mul(stats.page_size.into());
        if expected != bytes {
            return Err(unusable(format!("its metas tell of {expected} bytes, and {bytes} came")));
        }
        if self.check {
            let progress = Progress::of_pages(stats.pages);
            let reached = |pages| progress.reach(pages);
            let tx = db.begin().map_err(|error| unusable(error.to_string()))?;
            let problems = tx.check_with(&CheckOptions::new().progress(&reached));
            let problems = problems.map_err(|error| unusable(error.to_string()))?;
            if let Some(problem) = problems.first() {
                let (page, what, count) = (problem.page, &problem.what, problems.len());
                return Err(unusable(format!("page {page}: {what} (of {count} problems the first)")));
            }
        }
        Ok(Done {
            file: self.file.display().to_string(),
            bytes,
            crc32c: format!("{crc32c:08x}"),
            txid: stats.txid,
            pages: stats.pages,
            page_size: stats.page_size,
            checked: self.check,
        })
    }
}

/// How many bytes the server's file has, or had a moment ago; for people who wait.
async fn size(client: &Client) -> Outcome<u64> {
    let figures = client.stats().await?;
    let figure = |name| figures.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.parse().ok());
    Ok(figure("pages").unwrap_or(0_u64).saturating_mul(figure("page_size").unwrap_or(0)))
}

/// A file that is synced as it grows.
struct Synced<'a> {
    file: &'a mut File,
    unsynced: u64,
}

impl Write for Synced<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        self.unsynced += written as u64;
        if self.unsynced >= SYNC_EVERY {
            self.unsynced = 0;
            self.file.sync_data()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Where a backup is to be.
struct Target<'a> {
    file: &'a Path,
    force: bool,
}

impl Target<'_> {
    /// Refuses a name that a backup cannot take, and one where it would not be what it is.
    fn must_be_free(&self) -> Outcome {
        if !self.force {
            must_be_new(self.file).map_err(|failure| failure.followed_by(" (--force replaces it)"))?;
        }
        // First: the journal of a file that is in use is in use, too, and is not to be moved.
        drop(self.lock()?);
        must_have_no_journal(self.file)
    }

    /// The file that is to be replaced, locked, so that nobody opens it; `None` where there is none.
    fn lock(&self) -> Outcome<Option<File>> {
        let is_file = match self.file.symlink_metadata() {
            Ok(metadata) => metadata.is_file(),
            Err(_) => return Ok(None),
        };
        if !is_file {
            return Err(Failure::usage(format!("{}: it is not a regular file", self.file.display())));
        }
        let file = File::open(self.file).map_err(|error| self.failed("replace", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                let holders = holder::named(self.file);
                let what = "it is open in another process, and is not replaced";
                Err(Failure::not_done(format!("{}: {what}{holders}", self.file.display())))
            }
            Err(TryLockError::Error(error)) => Err(self.failed("lock", &error)),
        }
    }

    /// An empty file beside it, which goes when it is dropped, and at a signal.
    fn temporary(&self, interrupt: &Interrupt) -> Outcome<NamedTempFile> {
        let failed = |error| self.failed("create", &error);
        let name = self.file.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut prefix = name.to_os_string();
        prefix.push(".new-");
        let created = tempfile::Builder::new().prefix(&prefix).make_in(folder_of(self.file), |path| {
            interrupt.remove(path);
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        });
        created.map_err(failed)
    }

    /// Gives it its name.
    fn place(&self, file: NamedTempFile) -> Outcome {
        let placed = if self.force {
            // Until it is replaced nobody opens the one that is there.
            let _locked = self.lock()?;
            file.persist(self.file)
        } else {
            file.persist_noclobber(self.file)
        };
        placed.map(drop).map_err(|error| self.failed("create", &error.error))
    }

    fn sync_folder(&self) -> Outcome {
        let synced = File::open(folder_of(self.file)).and_then(|folder| folder.sync_all());
        synced.map_err(|error| self.failed("sync the folder of", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Failure {
        Failure::not_done(format!("could not {what} {}: {}", self.file.display(), about_new(self.file, error)))
    }
}
