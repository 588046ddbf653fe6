//! An export that was not finished: how much of it is whole, and where it goes on.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

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
    /// Where it is to be.
    pub(super) output: PathBuf,
    /// The last line that it holds; `None` where it holds none.
    pub(crate) last: Option<Line>,
}

impl Partial {
    /// Opens what there is of the export to `output`, or begins it. The last line is cut off, for it may not be whole.
    pub(crate) fn open(output: &Path, format: Format, failed: impl Fn(io::Error) -> Failure) -> Outcome<Self> {
        let Place::File(output) = Place::of(output).map_err(&failed)? else {
            let what = "it is no file, and --resume goes on with one";
            return Err(Failure::usage(format!("{}: {what}", output.display())));
        };
        refuse_database(&output)?;
        let mut name = output.clone().into_os_string();
        name.push(".partial");
        let path = PathBuf::from(name);
        refuse_other(&path, format, &failed)?;
        let mut file = own(&path, &failed)?;
        let (bytes, last) = whole_lines(&mut Input::open(Some(&path), format == Format::Csv)?);
        keep_mode(&file, &output).map_err(&failed)?;
        file.set_len(bytes).and_then(|()| file.seek(SeekFrom::End(0))).map_err(&failed)?;
        Ok(Self { file, path, output, last })
    }

    /// Forgets what it holds.
    pub(crate) fn begin_anew(mut self) -> io::Result<Self> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        Ok(Self { last: None, ..self })
    }
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

/// The length of all lines but the last, and the last of those.
fn whole_lines(input: &mut Input) -> (u64, Option<Line>) {
    let (mut whole, mut last, mut end, mut newest) = (0, None, 0, None);
    // Where a line cannot be read, the one before it is taken for the last.
    while let Ok(Some((line, len))) = input.next() {
        (whole, last) = (end, newest.replace(line));
        end += len;
    }
    (whole, last)
}
