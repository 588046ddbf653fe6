//! Printing what is read from a file while it is read: no command keeps its whole output in memory.
//!
//! JSON is printed one value a line, and everything binary in it in base64, as `export` has it.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use boltkv_storage as storage;
use serde::{Serialize, Serializer};

use super::target::{RawTarget, Target};
use crate::failure::{Failure, Outcome};

/// Standard output.
pub(super) type Out = BufWriter<StdoutLock<'static>>;

const BUFFER: usize = 1 << 18;

/// The two sides on which copying from a file can fail.
#[derive(Debug)]
pub(super) enum Error {
    Read(storage::Error),
    Write(io::Error),
}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// What printing comes to.
pub(super) type Printed<T = ()> = Result<T, Error>;

impl Target {
    /// Prints what `print` reads from the file. What was printed before a failure stays.
    pub(super) fn print(&self, print: impl FnOnce(&mut Out) -> Printed) -> Outcome {
        self::print(self.path(), print)
    }
}

impl RawTarget {
    /// As [`Target::print`].
    pub(super) fn print(&self, print: impl FnOnce(&mut Out) -> Printed) -> Outcome {
        self::print(self.path(), print)
    }
}

/// Prints what `print` reads from a file. What was printed before a failure stays.
pub(super) fn print(file: &Path, print: impl FnOnce(&mut Out) -> Printed) -> Outcome {
    to_stdout(print).map_err(|error| error.about(file))
}

/// Standard output, to be flushed at the end.
pub(super) fn stdout() -> Out {
    BufWriter::with_capacity(BUFFER, io::stdout().lock())
}

impl Error {
    fn about(self, file: &Path) -> Failure {
        match self {
            Self::Read(error) => Failure::storage(file, &error),
            Self::Write(error) => Failure::stdout(&error),
        }
    }
}

/// Has `print` write to standard output, and flushes it.
fn to_stdout(print: impl FnOnce(&mut Out) -> Printed) -> Printed {
    let mut out = stdout();
    let printed = print(&mut out);
    out.flush()?;
    printed
}

/// Prints a value as JSON on a line of its own.
pub(crate) fn json_line(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Prints the number that a command ends with on a line of its own; in JSON by its name.
pub(crate) fn number_line(is_json: bool, name: &str, number: impl Display, out: &mut impl Write) -> io::Result<()> {
    if is_json { writeln!(out, "{{\"{name}\":{number}}}") } else { writeln!(out, "{number}") }
}

/// Bytes that are base64 in JSON. They are not copied: a value may be 2 GiB long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base64<'a>(pub(super) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}
