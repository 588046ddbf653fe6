//! Where lines are read from.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;

use boltkv_lines::{Line, Reader};
use boltkv_storage::tools::RawFile;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::file::{Progress, json_line};
use crate::shell::quoted_for_shell;
use crate::words::counted;

#[derive(Serialize)]
struct Count {
    lines: u64,
}

/// Lines of an export, from a file or from standard input.
pub(crate) struct Input {
    /// What it is called in messages.
    pub(crate) name: String,
    /// What is counted in it, for messages: of CSV records, the header not among them, for one may have several lines.
    pub(crate) counted: &'static str,
    from: Reader,
    /// A line that was looked at and is still the next one.
    ahead: Option<(Line, u64)>,
    progress: Progress,
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
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() && RawFile::open(path, None).is_ok() {
            let export =
                format!("`boltkv file export {}` makes lines of it, to be piped in here", quoted_for_shell(path));
            return Err(Failure::usage(format!("{}: it is a bolt file, and no export: {export}", path.display())));
        }
        let progress =
            if metadata.is_file() { Progress::of_bytes(metadata.len()) } else { Progress::counting("bytes") };
        Ok(Self::new(path.display().to_string(), Box::new(file), is_csv, progress))
    }

    fn new(name: String, from: Box<dyn Read>, is_csv: bool, progress: Progress) -> Self {
        let (from, counted) = if is_csv { (Reader::csv(from), "record") } else { (Reader::json(from), "line") };
        Self { name, counted, from, ahead: None, progress }
    }

    /// The next line, and how many bytes it took; `None` after the last.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn next(&mut self) -> Result<Option<(Line, u64)>, String> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let read = self.from.next_line()?;
        if let Some((_, len)) = &read {
            self.progress.advance(*len);
        }
        Ok(read)
    }

    /// Goes past the next line, whatever it says, and answers it where it can be used, and how many bytes it took; `None` after
    /// the last.
    ///
    /// # Errors
    /// Why it cannot be told where it ends, for people.
    pub(crate) fn pass_over(&mut self) -> Result<Option<(Option<Line>, u64)>, String> {
        if let Some((line, len)) = self.ahead.take() {
            return Ok(Some((Some(line), len)));
        }
        let passed = self.from.pass_over()?;
        if let Some((_, len)) = &passed {
            self.progress.advance(*len);
        }
        Ok(passed)
    }

    /// The next line, which stays the next one.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) fn peek(&mut self) -> Result<Option<&Line>, String> {
        self.ahead = self.next()?;
        Ok(self.ahead.as_ref().map(|(line, _)| line))
    }

    /// Says how many of its lines, or records, were put in.
    pub(crate) fn print_count(&self, lines: u64, json: bool) -> Outcome {
        let mut out = io::stdout().lock();
        let printed = if json {
            json_line(&Count { lines }, &mut out)
        } else {
            writeln!(out, "{}", counted(lines, self.counted))
        };
        printed.map_err(|error| Failure::result(&error))
    }
}
