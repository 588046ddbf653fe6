//! Buckets and entries as lines: of an export, of a file's or of a server's, and as `boltkv scan` prints them.
//!
//! An export goes depth first in key order: a bucket's own line comes before all that is in it. `json` and `csv` know how a line
//! looks; [`Lines`] writes them, [`Reader`] takes them apart; [`Style`] prints the entries of one bucket. Nothing here opens
//! or changes a database, and nothing here is the command line's: it is apart because it works through every entry, and so
//! is compiled for speed where the command line is compiled for size.

mod csv;
mod entries;
mod json;
mod reader;

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use boltkv_protocol::Path;

pub use entries::{Object, Style};
pub use reader::{IS_CSV, Reader};

use self::csv::CsvLines;
use self::json::JsonLines;

/// The deepest nesting that a path in text can say.
const MOST_NAMES: usize = 255;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// There is a bucket.
    Bucket {
        /// Its names, from the top down; at least one.
        path: Vec<Vec<u8>>,
        /// Its sequence, if that is known.
        sequence: Option<u64>,
    },
    /// A bucket holds an entry.
    Entry {
        /// The bucket's names, from the top down; at least one.
        path: Vec<Vec<u8>>,
        /// Not empty, where it comes from a database.
        key: Vec<u8>,
        /// Any bytes.
        value: Vec<u8>,
    },
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, everything binary in base64.
    Base64,
    /// JSON, in base64 only what is no text.
    Text,
    /// Comma-separated values, in base64 only what is no text.
    Csv,
}

impl Format {
    /// What an export that has any lines begins with.
    #[must_use]
    pub const fn beginning(self) -> &'static str {
        match self {
            Self::Base64 => "{\"path\":[\"",
            Self::Text => "{\"bucket\":\"",
            Self::Csv => "bucket,sequence,key,value,base64\n",
        }
    }
}

/// Where lines go, and what there is to do when all of them are there.
pub trait Sink: Write {
    /// Writes out what it holds, and is done.
    ///
    /// # Errors
    /// It could not be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Sink for Vec<u8> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the lines of an export, and remembers the bucket in which it stands.
///
/// # Errors
/// What it writes to could not take it, or buckets are nested so deep that no path in text says it (255 names).
///
/// ```
/// use boltkv_lines::{Format, Lines};
///
/// let mut lines = Lines::new(Box::new(Vec::new()), Format::Text)?;
/// lines.enter(b"users", Some(7))?;
/// lines.entry(b"ada", b"lovelace")?;
/// lines.leave();
/// lines.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Lines {
    kind: Kind,
}

enum Kind {
    Json(JsonLines<Box<dyn Sink>>),
    Csv(Box<CsvLines<Box<dyn Sink>>>),
}

#[expect(clippy::missing_errors_doc, reason = "all fail in the two ways that the type tells")]
impl Lines {
    /// Begins an export.
    pub fn new(out: Box<dyn Sink>, format: Format) -> io::Result<Self> {
        let kind = match format {
            Format::Base64 => Kind::Json(JsonLines::new(out, false)),
            Format::Text => Kind::Json(JsonLines::new(out, true)),
            Format::Csv => Kind::Csv(Box::new(CsvLines::new(out)?)),
        };
        Ok(Self { kind })
    }

    /// Goes on behind lines that were written before, in the bucket of these names.
    pub fn go_on<'a>(out: Box<dyn Sink>, format: Format, way: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Self> {
        let mut lines = match format {
            Format::Csv => Self { kind: Kind::Csv(Box::new(CsvLines::behind_header(out))) },
            _ => Self::new(out, format)?,
        };
        way.into_iter().try_for_each(|name| match &mut lines.kind {
            Kind::Json(lines) => lines.stand_in(name),
            Kind::Csv(lines) => lines.stand_in(name),
        })?;
        Ok(lines)
    }

    /// Goes into a bucket of the one in which it stands, and writes its line.
    pub fn enter(&mut self, name: &[u8], sequence: Option<u64>) -> io::Result<()> {
        match &mut self.kind {
            Kind::Json(lines) => lines.enter(name, sequence),
            Kind::Csv(lines) => lines.enter(name, sequence),
        }
    }

    /// Goes back to the bucket above.
    pub fn leave(&mut self) {
        match &mut self.kind {
            Kind::Json(lines) => lines.place.leave(),
            Kind::Csv(lines) => lines.place.leave(),
        }
    }

    /// Writes the line of an entry.
    pub fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match &mut self.kind {
            Kind::Json(lines) => lines.entry(key, value),
            Kind::Csv(lines) => lines.entry(key, value),
        }
    }

    /// All lines are there.
    pub fn finish(self) -> io::Result<()> {
        let out = match self.kind {
            Kind::Json(lines) => lines.out,
            Kind::Csv(lines) => lines.into_inner()?,
        };
        out.finish()
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(data)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Kept {
        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_export_begins_as_its_format_says() {
        for format in [Format::Base64, Format::Text, Format::Csv] {
            let written = Rc::default();
            let mut lines = Lines::new(Box::new(Kept(Rc::clone(&written))), format).unwrap();
            lines.enter(b"b", None).unwrap();
            lines.finish().unwrap();
            assert!(written.borrow().starts_with(format.beginning().as_bytes()), "{format:?}");
        }
    }
}
