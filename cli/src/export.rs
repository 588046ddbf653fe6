//! `boltkv export`: what a running server has, as lines.

use std::io;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use boltkv_client::{Client, Entries, EntryKind, Error, ErrorCode, Path, Snapshot};
use boltkv_lines::{Format, Line, Lines};
use bytes::Bytes;
use clap::Args;

use crate::failure::{Failure, Outcome, note};
use crate::file::Progress;
use crate::lines::{Destination, Partial, write_failed};
use crate::moment;
use crate::patience::Patience;
use crate::remote::{Remote, path_parser};
use crate::words::counted;

/// How long the server keeps the state while nothing of it is asked for.
const LEASE: Duration = Duration::from_secs(60);

/// Write what a running server has as lines
///
/// A line is {"bucket":"users/eu","sequence":7} for a bucket, before all that is in it, or {"bucket":"users/eu","key":"ada","value":"…"}
/// for an entry; depth first, in key order. A key or value that is no text stands as "key64" or "value64", in base64. All of it
/// is one state, from a snapshot that the server holds open meanwhile: writes go on, and pages that they would use again wait. An
/// export whose connection is lost ends with an error. With --live it is as things are when it comes by: nothing waits for it,
/// and a server that is restarted, or busy, is waited for, as long as --timeout. When keys expire is not told: where these
/// lines are imported, also where they came from, the keys never expire; a line on standard error says so where the server has
/// such keys. A copy that has their times is one of `boltkv backup`, of which `boltkv file export` makes lines.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv export > everything.jsonl
  boltkv export --bucket users/eu --output users.jsonl
  boltkv export --csv | csvlook
  boltkv export --output everything.jsonl --resume     # again, if it was interrupted
  boltkv export --addr old:7878 | boltkv import --addr new:7878")]
pub(crate) struct Export {
    /// Only this bucket, with all within: names from the top down, separated by `/`
    #[arg(long, short, value_name = "PATH", default_value = "/", value_parser = path_parser())]
    bucket: Path,
    /// Write comma-separated values: bucket, sequence, key, value, and which of key and value are in base64
    #[arg(long)]
    csv: bool,
    /// Where to write, instead of standard output, which is `-`, too. A file appears under this name only when it is
    /// complete, in the place of one that is there; where the name is a link, what it leads to is replaced
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Read what there is at the time, not one state
    #[arg(long)]
    live: bool,
    /// As --live, and write to OUT.partial, which stays where the export is interrupted, and go on behind what it has
    /// already. Which server that is of, by its address, is kept in OUT.partial.server: what is of another one is refused
    #[arg(long, requires = "output")]
    resume: bool,
    #[command(flatten)]
    remote: Remote,
}

/// A bucket that is being written, and the last key in it that was.
struct Level {
    path: Path,
    after: Option<Bytes>,
}

/// What ended a bucket's entries for now.
enum Found {
    /// A bucket of this name within.
    Bucket(Bytes),
    End,
}

/// Where entries come from.
enum State {
    /// What there is at the time.
    Live(Client),
    /// One state.
    Held(Client, Snapshot),
}

impl State {
    async fn open(client: Client, live: bool) -> Outcome<Self> {
        if live {
            return Ok(Self::Live(client));
        }
        let snapshot = client.snapshot(LEASE).await;
        let snapshot =
            snapshot.map_err(|error| Failure::from(error).followed_by("; --live does without a snapshot"))?;
        Ok(Self::Held(client, snapshot))
    }

    async fn scan(&self, path: &Path, low: Bound<&Bytes>) -> Result<Entries, Error> {
        match self {
            Self::Live(client) => client.bucket_at(path.clone()).scan().range(low, Bound::Unbounded).stream().await,
            Self::Held(client, snapshot) => {
                snapshot.scan(client.bucket_at(path.clone()).scan().range(low, Bound::Unbounded)).await
            }
        }
    }

    async fn sequence(&self, path: &Path) -> Result<u64, Error> {
        match self {
            Self::Live(client) => client.bucket_at(path.clone()).sequence().await,
            Self::Held(client, snapshot) => snapshot.sequence(&client.bucket_at(path.clone())).await,
        }
    }
}

impl Export {
    pub(crate) fn run(&self) -> Outcome {
        self.remote.run(async |client| {
            note_times(&client).await;
            let state = State::open(client, self.live || self.resume).await?;
            let mut progress = Progress::counting("entries");
            let (mut lines, way) = match &self.output {
                Some(output) if self.resume => self.go_on(&state, output).await?,
                output => {
                    let out = Destination::open(output.as_deref())?;
                    progress.hide_if(out.is_terminal());
                    self.begin(&state, out).await?
                }
            };
            self.write_everything(&state, &mut lines, way, &progress).await?;
            lines.finish().map_err(|error| self.failed(&error))
        })
    }

    fn failed(&self, error: &io::Error) -> Failure {
        write_failed(self.output.as_deref(), error)
    }

    const fn format(&self) -> Format {
        if self.csv { Format::Csv } else { Format::Text }
    }

    /// The beginning: the lines of the buckets down to the one that is asked for.
    async fn begin(&self, state: &State, out: Destination) -> Outcome<(Lines, Vec<Level>)> {
        let failed = |error| self.failed(&error);
        let mut lines = Lines::new(Box::new(out), self.format()).map_err(failed)?;
        let mut path = Path::ROOT;
        for name in self.bucket.names() {
            path = child(&path, name)?;
            lines.enter(name, self.sequence(state, &path).await?).map_err(failed)?;
        }
        Ok((lines, vec![Level { path: self.bucket.clone(), after: None }]))
    }

    /// Behind what an export has that was not finished.
    async fn go_on(&self, state: &State, output: &std::path::Path) -> Outcome<(Lines, Vec<Level>)> {
        let failed = |error| self.failed(&error);
        let partial = Partial::open(self.remote.addr(), output, self.format(), failed)?;
        let way = match &partial.last {
            Some(line) => self.way_to(line).map_err(|failure| {
                failure.prefixed(&partial.path.display().to_string()).followed_by("; move it aside")
            })?,
            None => Vec::new(),
        };
        let Some(last) = way.last() else {
            return self.begin(state, Destination::go_on(partial.begin_anew().map_err(failed)?)?).await;
        };
        say_where(&partial);
        let lines = Lines::go_on(Box::new(Destination::go_on(partial)?), self.format(), last.path.names());
        Ok((lines.map_err(failed)?, way))
    }

    /// The buckets down to where this line stands, and where to go on in each; none where it stands before all entries.
    fn way_to(&self, line: &Line) -> Outcome<Vec<Level>> {
        let (names, key) = match line {
            Line::Bucket { path, .. } => (path, None),
            Line::Entry { path, key, .. } => (path, Some(Bytes::copy_from_slice(key))),
        };
        let wanted: Vec<_> = self.bucket.names().collect();
        if wanted.iter().zip(names).any(|(wanted, name)| wanted != name) {
            return Err(Failure::usage("it is of another bucket"));
        }
        if names.len() < wanted.len() || (names.len() == wanted.len() && key.is_none()) {
            return Ok(Vec::new());
        }
        (wanted.len()..=names.len())
            .map(|depth| {
                let (above, within) = names.split_at(depth);
                let path = Path::from_names(above).map_err(|error| Failure::usage(error.to_string()))?;
                let after = within.first().map(|name| Bytes::copy_from_slice(name)).or_else(|| key.clone());
                Ok(Level { path, after })
            })
            .collect()
    }

    /// The way down is kept in a list: of each bucket it is known where to go on.
    async fn write_everything(
        &self,
        state: &State,
        lines: &mut Lines,
        mut way: Vec<Level>,
        progress: &Progress,
    ) -> Outcome {
        while let Some(level) = way.last_mut() {
            match self.write_entries(state, level, lines, progress).await? {
                Found::Bucket(name) => {
                    let path = child(&level.path, &name)?;
                    // One that was deleted since it was seen is left out.
                    let sequence = self.sequence(state, &path).await?;
                    if sequence.is_some() {
                        lines.enter(&name, sequence).map_err(|error| self.failed(&error))?;
                    }
                    level.after = Some(name);
                    way.extend(sequence.map(|_| Level { path, after: None }));
                }
                Found::End => {
                    lines.leave();
                    way.pop();
                }
            }
        }
        Ok(())
    }

    /// Writes the entries of a bucket from where it was left, up to the next bucket within.
    async fn write_entries(
        &self,
        state: &State,
        level: &mut Level,
        lines: &mut Lines,
        progress: &Progress,
    ) -> Outcome<Found> {
        let mut patience = Patience::new(self.remote.timeout());
        loop {
            let low = level.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let lost = match state.scan(&level.path, low).await {
                // One within that was deleted since it was seen has nothing any more.
                Err(error) if error.code() == Some(ErrorCode::BucketNotFound) && level.path != self.bucket => {
                    return Ok(Found::End);
                }
                Err(error) => error,
                Ok(mut entries) => loop {
                    let entry = match entries.next().await {
                        None => return Ok(Found::End),
                        Some(Err(error)) => break error,
                        Some(Ok(entry)) => entry,
                    };
                    match entry.kind {
                        EntryKind::Bucket => return Ok(Found::Bucket(entry.key)),
                        EntryKind::TooLarge => return Err(too_large(&level.path, &entry.key, entry.value_size())),
                        EntryKind::Value => {
                            lines.entry(&entry.key, &entry.value).map_err(|error| self.failed(&error))?;
                        }
                    }
                    progress.advance(1);
                    level.after = Some(entry.key);
                    patience = Patience::new(self.remote.timeout());
                },
            };
            self.wait_after(state, lost, &mut patience).await?;
        }
    }

    /// A bucket's sequence; `None` where it was deleted since it was seen.
    async fn sequence(&self, state: &State, path: &Path) -> Outcome<Option<u64>> {
        let mut patience = Patience::new(self.remote.timeout());
        loop {
            match state.sequence(path).await {
                Ok(sequence) => return Ok(Some(sequence)),
                Err(error) if error.code() == Some(ErrorCode::BucketNotFound) && path.depth() > self.bucket.depth() => {
                    return Ok(None);
                }
                Err(error) => self.wait_after(state, error, &mut patience).await?,
            }
        }
    }

    /// Waits a little where it may help to ask again; otherwise fails with the error.
    async fn wait_after(&self, state: &State, error: Error, patience: &mut Patience) -> Outcome {
        let may_help = error.is_passing() || error.code() == Some(ErrorCode::SnapshotExpired);
        if may_help && matches!(state, State::Held(..)) {
            let lost = "; with it the state that was exported is lost: begin anew, or use --live, or --resume";
            return Err(Failure::from(error).followed_by(lost));
        }
        if may_help && patience.is_left().await { Ok(()) } else { Err(error.into()) }
    }
}

/// Says that the lines lack something, where keys of the server have times. Which keys those are is not to be seen.
async fn note_times(client: &Client) {
    // What fails here fails again, and is told then.
    let figures = client.stats().await.unwrap_or_default();
    if figures.iter().any(|(name, value)| name == "keys_expire" && value == "1") {
        note(
            "keys of this server expire, and the lines do not tell when: imported, they never do; `boltkv backup`, and `boltkv \
             file export` of that, have the times",
        );
    }
}

/// Says behind what it goes on: a file of that name may have been forgotten.
fn say_where(partial: &Partial) {
    let (lines, path) = (counted(partial.lines, "line"), partial.path.display());
    let written = moment::shown(moment::millis(partial.written));
    note(&format!("goes on behind {lines} of {written}; remove {path} to begin anew"));
}

fn child(path: &Path, name: &[u8]) -> Outcome<Path> {
    path.child(name).map_err(|error| Failure::not_done(error.to_string()))
}

fn too_large(path: &Path, key: &[u8], size: Option<u64>) -> Failure {
    let (key, size) = (key.escape_ascii(), size.unwrap_or_default());
    Failure::not_done(format!(
        "{path}: the value of {key} has {size} bytes, which does not fit a frame; the server's option --max-frame sets the \
         limit, and `boltkv backup` has everything"
    ))
}
