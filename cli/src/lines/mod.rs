//! The lines of an export, of a file's or of a server's: one for each bucket and each entry.
//!
//! Depth first in key order: a bucket's own line comes before all that is in it. `json` and `csv` know how a line looks;
//! `input` is where lines are read from, `output` where they go, `partial` what there is of an export that was not finished.
//! Nothing here opens or changes a database.

mod csv;
mod input;
mod json;
mod output;
mod partial;

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use boltkv_protocol::Path;

pub(crate) use input::Input;
pub(crate) use output::{Destination, write_failed};
pub(crate) use partial::Partial;

use self::csv::CsvLines;
use self::json::JsonLines;

/// The deepest nesting that a path in text can say.
const MOST_NAMES: usize = 255;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// There is a bucket, with this sequence, if that is known.
    Bucket { path: Vec<Vec<u8>>, sequence: Option<u64> },
    /// A bucket holds an entry.
    Entry { path: Vec<Vec<u8>>, key: Vec<u8>, value: Vec<u8> },
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, everything binary in base64.
    Base64,
    /// JSON, in base64 only what is no text.
    Text,
    /// Comma-separated values, in base64 only what is no text.
    Csv,
}

/// Writes lines, and remembers the bucket in which it stands.
pub(crate) enum Lines<W: Write> {
    Json(JsonLines<W>),
    Csv(Box<CsvLines<W>>),
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W, format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::Base64 => Self::Json(JsonLines::new(out, false)),
            Format::Text => Self::Json(JsonLines::new(out, true)),
            Format::Csv => Self::Csv(Box::new(CsvLines::new(out)?)),
        })
    }

    /// Goes on behind lines that were written before, in the bucket of these names.
    pub(crate) fn go_on<'a>(out: W, format: Format, way: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Self> {
        let mut lines = match format {
            Format::Csv => Self::Csv(Box::new(CsvLines::behind_header(out))),
            _ => Self::new(out, format)?,
        };
        way.into_iter().try_for_each(|name| match &mut lines {
            Self::Json(lines) => lines.stand_in(name),
            Self::Csv(lines) => lines.stand_in(name),
        })?;
        Ok(lines)
    }

    /// Goes into a bucket of the one in which it stands, and writes its line.
    pub(crate) fn enter(&mut self, name: &[u8], sequence: Option<u64>) -> io::Result<()> {
        match self {
            Self::Json(lines) => lines.enter(name, sequence),
            Self::Csv(lines) => lines.enter(name, sequence),
        }
    }

    /// Goes back to the bucket above.
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Json(lines) => lines.place.leave(),
            Self::Csv(lines) => lines.place.leave(),
        }
    }

    /// Writes the line of an entry.
    pub(crate) fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Self::Json(lines) => lines.entry(key, value),
            Self::Csv(lines) => lines.entry(key, value),
        }
    }

    /// Gives back what it wrote to, with all of it written.
    pub(crate) fn into_inner(self) -> io::Result<W> {
        match self {
            Self::Json(lines) => Ok(lines.out),
            Self::Csv(lines) => lines.into_inner(),
        }
    }
}

/// The path of the bucket in which a writer stands, as it writes it.
#[derive(Default)]
struct Place {
    text: String,
    /// The length of `text` before each of its names.
    lengths: Vec<usize>,
}

impl Place {
    fn enter(&mut self, between: &str, name: &str) {
        self.lengths.push(self.text.len());
        if self.lengths.len() > 1 {
            self.text.push_str(between);
        }
        self.text.push_str(name);
    }

    fn leave(&mut self) {
        self.text.truncate(self.lengths.pop().unwrap_or(0));
    }
}

/// A bucket's name as it stands in a path in text, at that depth.
fn name_in_text(name: &[u8], depth: usize) -> io::Result<String> {
    if depth >= MOST_NAMES {
        let what =
            format!("buckets are nested deeper than {MOST_NAMES}, which only `boltkv file export` writes, as base64");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Path::from_names([name]).map(|path| path.to_string()).map_err(io::Error::other)
}

/// The names of a path in text.
fn names(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let path = Path::parse(text.as_bytes()).map_err(|error| format!("the bucket {text:?}: {error}"))?;
    if path.is_root() {
        return Err("the path is empty".into());
    }
    Ok(path.names().map(<[u8]>::to_vec).collect())
}

fn from_base64(what: &str, text: impl AsRef<[u8]>) -> Result<Vec<u8>, String> {
    base64::Engine::decode(&STANDARD, text).map_err(|error| format!("{what}: no base64: {error}"))
}
