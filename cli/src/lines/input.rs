//! Where lines are read from.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use super::csv::CsvInput;
use super::{Line, json};
use crate::failure::{Failure, Outcome};
use crate::file::Progress;

const BUFFER: usize = 1 << 18;
/// The longest line: room for the longest value in base64, with its key under a path of many names.
const MAX_LINE: u64 = 3 << 30;

/// Lines of an export, from a file or from standard input.
pub(crate) struct Input {
    /// What it is called in messages.
    pub(crate) name: String,
    from: From,
    /// A line that was looked at and is still the next one.
    ahead: Option<(Line, u64)>,
    progress: Progress,
}

enum From {
    Json { reader: BufReader<Box<dyn Read>>, line: Vec<u8> },
    Csv(CsvInput<Box<dyn Read>>),
}

impl Input {
    /// Opens a file; `-`, or none, is standard input.
    pub(crate) fn open(path: Option<&Path>, is_csv: bool) -> Outcome<Self> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::new("standard input".into(), Box::new(io::stdin()), is_csv, Progress::counting("bytes")));
        };
        let failed = |error| Failure::unreachable(format!("could not open {}: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let progress =
            if metadata.is_file() { Progress::of_bytes(metadata.len()) } else { Progress::counting("bytes") };
        Ok(Self::new(path.display().to_string(), Box::new(file), is_csv, progress))
    }

    fn new(name: String, from: Box<dyn Read>, is_csv: bool, progress: Progress) -> Self {
        let from = if is_csv {
            From::Csv(CsvInput::new(from))
        } else {
            From::Json { reader: BufReader::with_capacity(BUFFER, from), line: Vec::new() }
        };
        Self { name, from, ahead: None, progress }
    }

    /// The next line, and how many bytes it took; `None` after the last.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn next(&mut self) -> Result<Option<(Line, u64)>, String> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let read = match &mut self.from {
            From::Json { reader, line } => next_json(reader, line)?,
            From::Csv(records) => {
                let before = records.position();
                records.next()?.map(|line| (line, records.position() - before))
            }
        };
        if let Some((_, len)) = &read {
            self.progress.advance(*len);
        }
        Ok(read)
    }

    /// The next line, which stays the next one.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) fn peek(&mut self) -> Result<Option<&Line>, String> {
        self.ahead = self.next()?;
        Ok(self.ahead.as_ref().map(|(line, _)| line))
    }
}

/// The last line may be without its end.
fn next_json(reader: &mut BufReader<Box<dyn Read>>, line: &mut Vec<u8>) -> Result<Option<(Line, u64)>, String> {
    line.clear();
    let read = reader.take(MAX_LINE).read_until(b'\n', line);
    let len = read.map_err(|error| format!("could not be read: {error}"))? as u64;
    if len == MAX_LINE && !line.ends_with(b"\n") {
        return Err(format!("longer than the {MAX_LINE} bytes that the longest value takes"));
    }
    if len == 0 {
        return Ok(None);
    }
    json::parse(line).map(|line| Some((line, len)))
}
