//! Takes the lines of an export apart, one by one.

use std::io::{BufRead as _, BufReader, Read};

use super::csv::CsvInput;
use super::{Line, json};

const BUFFER: usize = 1 << 18;
/// The longest line: room for the longest value in base64, with its key under a path of many names.
const MAX_LINE: u64 = 3 << 30;

/// Reads the lines of an export. Blank lines, and a byte-order mark before the first, say nothing.
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
    Json(JsonInput),
    Csv(CsvInput<Box<dyn Read>>),
}

impl Reader {
    /// Of lines of JSON.
    #[must_use]
    pub fn json(from: Box<dyn Read>) -> Self {
        let reader = BufReader::with_capacity(BUFFER, from);
        Self { from: From::Json(JsonInput { reader, line: Vec::new(), begun: false }) }
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
            From::Json(lines) => lines.next(),
            From::Csv(records) => {
                let before = records.position();
                Ok(records.next()?.map(|line| (line, records.position() - before)))
            }
        }
    }
}

/// What some programs begin a text with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads lines of JSON.
struct JsonInput {
    reader: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    /// Whether the first line was read.
    begun: bool,
}

impl JsonInput {
    /// The next line, and how many bytes were taken for it. The last one may be without its end.
    fn next(&mut self) -> Result<Option<(Line, u64)>, String> {
        let mut taken = 0;
        loop {
            self.line.clear();
            let read = (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut self.line);
            let len = read.map_err(|error| format!("could not be read: {error}"))? as u64;
            if len == MAX_LINE && !self.line.ends_with(b"\n") {
                return Err(format!("longer than the {MAX_LINE} bytes that the longest value takes"));
            }
            if len == 0 {
                return Ok(None);
            }
            taken += len;
            let is_first = !std::mem::replace(&mut self.begun, true);
            let line = self.line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(&self.line);
            if !line.trim_ascii().is_empty() {
                return json::parse(line).map(|line| Some((line, taken)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_a_byte_order_mark_say_nothing_in_either_form() {
        let json = "\u{feff}{\"bucket\":\"b\"}\r\n\r\n \n{\"bucket\":\"b\",\"key\":\"k\",\"value\":\"\"}\n\n";
        let csv = "\u{feff}bucket,key,value\r\nb,,\r\n\r\nb,k,\r\n\r\n";
        for (text, make) in [(json, Reader::json as fn(_) -> _), (csv, Reader::csv)] {
            let mut reader: Reader = make(Box::new(text.as_bytes()));
            let mut next = || reader.next_line().unwrap().map(|(line, _)| line);
            assert!(matches!(next(), Some(Line::Bucket { .. })), "{text}");
            assert!(matches!(next(), Some(Line::Entry { .. })), "{text}");
            assert_eq!(next(), None);
        }
        let mut marked_twice = Reader::json(Box::new("{\"bucket\":\"b\"}\n\u{feff}{\"bucket\":\"b\"}\n".as_bytes()));
        assert!(marked_twice.next_line().is_ok() && marked_twice.next_line().is_err());
    }

    #[test]
    fn all_bytes_are_counted_with_the_line_behind_them() {
        let mut reader = Reader::json(Box::new("\n\n{\"bucket\":\"b\"}\n".as_bytes()));
        assert_eq!(reader.next_line().unwrap().map(|(_, taken)| taken), Some(17));
    }
}
