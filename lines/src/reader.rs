//! Takes the lines of an export apart, one by one.

use std::io::{BufRead as _, BufReader, Read};

use super::csv::CsvInput;
use super::{Line, json};

const BUFFER: usize = 1 << 18;
/// The longest line: room for the longest value in base64, with its key under a path of many names.
const MAX_LINE: u64 = 3 << 30;

/// Reads the lines of an export.
///
/// ```
/// use boltkv_lines::{Line, Reader};
///
/// let mut lines = Reader::json(Box::new(&br#"{"bucket":"users","key":"ada","value":"lovelace"}"#[..]));
/// let (line, bytes) = lines.next_line()?.ok_or("no line")?;
/// assert!(matches!(line, Line::Entry { key, .. } if key == b"ada"));
/// assert_eq!(bytes, 49);
/// # Ok::<(), String>(())
/// ```
pub struct Reader {
    from: From,
}

enum From {
    Json { reader: BufReader<Box<dyn Read>>, line: Vec<u8> },
    Csv(CsvInput<Box<dyn Read>>),
}

impl Reader {
    /// Of lines of JSON.
    #[must_use]
    pub fn json(from: Box<dyn Read>) -> Self {
        Self { from: From::Json { reader: BufReader::with_capacity(BUFFER, from), line: Vec::new() } }
    }

    /// Of comma-separated values.
    #[must_use]
    pub fn csv(from: Box<dyn Read>) -> Self {
        Self { from: From::Csv(CsvInput::new(from)) }
    }

    /// The next line, and how many bytes it took; `None` after the last.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn next_line(&mut self) -> Result<Option<(Line, u64)>, String> {
        match &mut self.from {
            From::Json { reader, line } => next_json(reader, line),
            From::Csv(records) => {
                let before = records.position();
                Ok(records.next()?.map(|line| (line, records.position() - before)))
            }
        }
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
