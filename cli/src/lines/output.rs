//! Where lines go: standard output, a pipe or device, or a file that has its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use boltkv_lines::Sink;
use boltkv_storage::RawFile;
use tempfile::NamedTempFile;

use super::Partial;
use crate::failure::{Failure, Outcome};
use crate::file::Interrupt;
use crate::permission::about_new;

const BUFFER: usize = 1 << 18;

/// Where lines go. As long as it lives, a signal ends the command tidily.
pub(crate) struct Destination {
    out: Out,
    _interrupt: Interrupt,
}

enum Out {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// Is written as it is; nothing may take its place.
    Device(BufWriter<File>),
    File(BufWriter<NamedTempFile>, PathBuf),
    /// Stays, under a name of its own, until it is complete.
    Partial(BufWriter<File>, PathBuf),
}

impl Destination {
    /// Standard output, where no path is given. A file that is there is replaced in the end, but for one that is no export.
    pub(crate) fn open(output: Option<&Path>) -> Outcome<Self> {
        let not_whole = || Interrupt::new(|| "what is written of the export is not whole".into());
        let Some(path) = output else {
            let out = Out::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock()));
            return Ok(Self { out, _interrupt: not_whole()? });
        };
        let failed = |error| write_failed(output, &error);
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let device = File::options().write(true).open(path).map_err(failed)?;
            let out = Out::Device(BufWriter::with_capacity(BUFFER, device));
            return Ok(Self { out, _interrupt: not_whole()? });
        }
        refuse_database(path)?;
        let interrupt = Interrupt::writing(path)?;
        let unfinished = NamedTempFile::new_in(folder_of(path)).map_err(failed)?;
        interrupt.remove(unfinished.path());
        let out = Out::File(BufWriter::with_capacity(BUFFER, unfinished), path.to_owned());
        Ok(Self { out, _interrupt: interrupt })
    }

    /// Goes on with an export that was not finished.
    pub(crate) fn go_on(output: &Path, partial: Partial) -> Outcome<Self> {
        let kept = format!("{} is kept, and --resume goes on with it", Partial::path(output).display());
        let out = Out::Partial(BufWriter::with_capacity(BUFFER, partial.file), output.to_owned());
        Ok(Self { out, _interrupt: Interrupt::new(move || kept.clone())? })
    }
}

impl Write for Destination {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::Stdout(out) => out.write(data),
            Out::Device(out) | Out::Partial(out, _) => out.write(data),
            Out::File(out, _) => out.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Stdout(out) => out.flush(),
            Out::Device(out) | Out::Partial(out, _) => out.flush(),
            Out::File(out, _) => out.flush(),
        }
    }
}

impl Sink for Destination {
    /// Writes out the rest, and gives a file its name.
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        let (out, path) = match self.out {
            Out::Stdout(_) | Out::Device(_) => return Ok(()),
            Out::Partial(out, path) => {
                out.get_ref().sync_all()?;
                return fs::rename(Partial::path(&path), path);
            }
            Out::File(out, path) => (out, path),
        };
        let finished = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        finished.as_file().sync_all()?;
        finished.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// What is said where it could not be written.
pub(crate) fn write_failed(output: Option<&Path>, error: &io::Error) -> Failure {
    match output {
        None => Failure::stdout(error),
        Some(path) => Failure::not_done(format!("could not write {}: {}", path.display(), about_new(path, error))),
    }
}

/// A database is not replaced by its lines, whoever has it open: its name was meant to be the other file's.
pub(super) fn refuse_database(path: &Path) -> Outcome {
    if RawFile::open(path, None).is_err() {
        return Ok(());
    }
    let what = "it is a bolt file, which an export does not write over: name another file, or remove this one";
    Err(Failure::usage(format!("{}: {what}", path.display())))
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
