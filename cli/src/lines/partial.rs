//! An export that was not finished: how much of it is whole, which server it is from, and where it goes on.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use boltkv_lines::{Format, Line};

use super::Input;
use super::output::refuse_database;
use super::place::{NEW_MODE, Place, keep_mode};
use crate::failure::{Failure, Outcome};

/// An unfinished export, opened to be gone on with.
pub(crate) struct Partial {
    pub(super) file: File,
    /// Where it is while it is not finished.
    pub(crate) path: PathBuf,
    /// The file beside it that says from which server it is: nothing in the lines does.
    pub(super) origin: PathBuf,
    /// Where it is to be.
    pub(super) output: PathBuf,
    /// The last line that it holds; `None` where it holds none.
    pub(crate) last: Option<Line>,
    /// How many it holds.
    pub(crate) lines: u64,
    /// When it was last written.
    pub(crate) written: SystemTime,
}

impl Partial {
    /// Opens what there is of the export from `server` to `output`, or begins it. The last line is cut off, for it may not be
    /// whole.
    pub(crate) fn open(
        server: &str,
        output: &Path,
        format: Format,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Outcome<Self> {
        let Place::File(output) = Place::of(output).map_err(&failed)? else {
            let what = "it is no file, and --resume goes on with one";
            return Err(Failure::usage(format!("{}: {what}", output.display())));
        };
        refuse_database(&output)?;
        let path = with_ending(&output, ".partial");
        let origin = with_ending(&path, ".server");
        refuse_other(&path, format, &failed)?;
        let mut file = own(&path, &failed)?;
        let written = file.metadata().and_then(|found| found.modified()).map_err(&failed)?;
        let Whole { bytes, lines, last } = whole_lines(&mut Input::open(Some(&path), format == Format::Csv)?);
        if last.is_some() {
            refuse_other_server(&path, &origin, server)?;
        }
        write_anew(&origin, server).map_err(&failed)?;
        keep_mode(&file, &output).map_err(&failed)?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).map_err(&failed)?;
        Ok(Self { file, path, origin, output, last, lines, written })
    }

    /// Forgets what it holds.
    pub(crate) fn begin_anew(mut self) -> io::Result<Self> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        Ok(Self { last: None, ..self })
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Refuses to put the entries of two servers into one file. A server is known by its address: it tells no name of its own.
fn refuse_other_server(path: &Path, origin: &Path, server: &str) -> Outcome {
    let Ok(begun_at) = fs::read_to_string(origin) else { return Ok(()) };
    if begun_at == server {
        return Ok(());
    }
    let (path, origin) = (path.display(), origin.display());
    Err(Failure::usage(format!(
        "{path}: it was begun from {begun_at}, and this is {server}: remove it to begin anew, or {origin} if both are the \
         same server"
    )))
}

/// What the name leads to, if it is a link, stays as it is.
fn write_anew(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(text.as_bytes())
}

/// Refuses what was not begun by an export: a file of that name may be somebody's own.
fn refuse_other(path: &Path, format: Format, failed: &impl Fn(io::Error) -> Failure) -> Outcome {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if found.is_file() {
        let (whole, mut beginning) = (format.beginning(), Vec::new());
        let read = File::open(path).and_then(|file| file.take(whole.len() as u64).read_to_end(&mut beginning));
        read.map_err(failed)?;
        if whole.as_bytes().starts_with(&beginning) {
            return Ok(());
        }
    }
    let what = "it is no unfinished export of this form, and is not written over: move it aside, or name another file";
    Err(Failure::usage(format!("{}: {what}", path.display())))
}

/// Opens the file, or makes it, for one export alone, until it is closed: two would write into each other's lines.
fn own(path: &Path, failed: &impl Fn(io::Error) -> Failure) -> Outcome<File> {
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(NEW_MODE).clone();
    loop {
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::not_done(format!("{}: another export is writing it", path.display())));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // An export that was finished since it was opened has given it the other name.
        match (file.metadata(), path.metadata()) {
            (Ok(own), Ok(there)) if (own.dev(), own.ino()) == (there.dev(), there.ino()) => return Ok(file),
            (Err(error), _) => return Err(failed(error)),
            _ => {}
        }
    }
}

/// What there is of an export, but for its last line.
#[derive(Default)]
struct Whole {
    bytes: u64,
    lines: u64,
    last: Option<Line>,
}

fn whole_lines(input: &mut Input) -> Whole {
    let mut whole = Whole::default();
    let mut newest: Option<(Line, u64)> = None;
    // Where a line cannot be read, the one before it is taken for the last.
    while let Ok(Some(next)) = input.next() {
        if let Some((line, len)) = newest.replace(next) {
            whole.bytes += len;
            whole.lines += 1;
            whole.last = Some(line);
        }
    }
    whole
}
