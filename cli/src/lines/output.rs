//! Where lines go: standard output, a pipe or device, or a file that has its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::{Path, PathBuf};

use boltkv_lines::Sink;
use boltkv_storage::tools::RawFile;
use tempfile::NamedTempFile;

use super::Partial;
use super::place::{Place, beside, is_stdout};
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
    /// Stays, under the name of its own, until it is complete.
    Partial(BufWriter<File>, Names),
}

/// The files of an export that is gone on with.
struct Names {
    partial: PathBuf,
    origin: PathBuf,
    output: PathBuf,
}

impl Destination {
    /// Standard output, where no path is given, or `-`. A file that is there is replaced in the end, but for one that is no
    /// export; where the path is a link, what it leads to.
    pub(crate) fn open(output: Option<&Path>) -> Outcome<Self> {
        let failed = |error| write_failed(output, &error);
        let path = output.unwrap_or(Path::new("-"));
        let out = match Place::of(path).map_err(failed)? {
            Place::Stdout => Out::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock())),
            Place::AsItIs { append } => {
                let device = File::options().write(true).append(append).open(path).map_err(failed)?;
                Out::Device(BufWriter::with_capacity(BUFFER, device))
            }
            Place::File(path) => {
                refuse_database(&path)?;
                let interrupt = Interrupt::writing(&path)?;
                let unfinished = beside(&path).map_err(failed)?;
                interrupt.remove(unfinished.path());
                let out = Out::File(BufWriter::with_capacity(BUFFER, unfinished), path);
                return Ok(Self { out, _interrupt: interrupt });
            }
        };
        Ok(Self { out, _interrupt: Interrupt::new(|| "what is written of the export is not whole".into())? })
    }

    /// Goes on with an export that was not finished.
    pub(crate) fn go_on(partial: Partial) -> Outcome<Self> {
        let kept = format!("{} is kept, and --resume goes on with it", partial.path.display());
        let names = Names { partial: partial.path, origin: partial.origin, output: partial.output };
        let out = Out::Partial(BufWriter::with_capacity(BUFFER, partial.file), names);
        Ok(Self { out, _interrupt: Interrupt::new(move || kept.clone())? })
    }

    /// Whether the lines go to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        match &self.out {
            Out::Stdout(out) => out.get_ref().is_terminal(),
            Out::Device(out) => out.get_ref().is_terminal(),
            Out::File(..) | Out::Partial(..) => false,
        }
    }
}

impl Write for Destination {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::Stdout(out) => out.write(data),
            Out::Device(out) | Out::Partial(out, ..) => out.write(data),
            Out::File(out, _) => out.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Stdout(out) => out.flush(),
            Out::Device(out) | Out::Partial(out, ..) => out.flush(),
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
            Out::Partial(out, names) => {
                out.get_ref().sync_all()?;
                // First, for another export may begin once the name is free. One that is lost is written anew.
                let _ = fs::remove_file(names.origin);
                return fs::rename(names.partial, names.output);
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
    match output.filter(|path| !is_stdout(path)) {
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
