//! Takes the lines of an export apart, one by one.

use std::io::{BufRead as _, BufReader, Read};

use super::csv::{self, CsvInput};
use super::{Line, json};

const BUFFER: usize = 1 << 18;
/// The longest line: room for the longest value in base64, with its key under a path of many names.
const MAX_LINE: u64 = 3 << 30;

/// What is wrong with a line that is read as JSON, and is a header of comma-separated values.
pub const IS_CSV: &str = "it is CSV, which --csv reads";

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
        let Some(taken) = self.read()? else { return Ok(None) };
        self.parse().map(|line| Some((line, taken)))
    }

    /// Goes past the next line, whatever it says, and answers it where it can be used, and how many bytes it took; `None` after
    /// the last.
    ///
    /// # Errors
    /// Why it cannot be told where it ends, for people.
    pub fn pass_over(&mut self) -> Result<Option<(Option<Line>, u64)>, String> {
        let Some(taken) = self.read()? else { return Ok(None) };
        Ok(Some((self.parse().ok(), taken)))
    }

    /// How many bytes the next line takes; `None` after the last.
    fn read(&mut self) -> Result<Option<u64>, String> {
        match &mut self.from {
            From::Json(lines) => lines.read(),
            From::Csv(records) => {
                let before = records.position();
                Ok(records.read()?.then(|| records.position() - before))
            }
        }
    }

    /// What the line says that was read.
    fn parse(&self) -> Result<Line, String> {
        match &self.from {
            From::Json(lines) => lines.parse(),
            From::Csv(records) => records.parse(),
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
    /// Reads the next line that is not blank, and how many bytes were taken for it. The last one may be without its end.
    fn read(&mut self) -> Result<Option<u64>, String> {
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
            if is_first && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(taken));
            }
        }
    }

    fn parse(&self) -> Result<Line, String> {
        json::parse(&self.line).map_err(|why| if csv::is_header(&self.line) { IS_CSV.into() } else { why })
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
    fn a_line_that_cannot_be_used_is_passed_over_in_either_form() {
        let json = "no line\n{\"bucket\":\"b\"}\n";
        let csv = "bucket,key,value\nb\nb,,\n";
        for (text, make, bytes) in [(json, Reader::json as fn(_) -> _, 8), (csv, Reader::csv, 19)] {
            let mut reader: Reader = make(Box::new(text.as_bytes()));
            assert_eq!(reader.pass_over(), Ok(Some((None, bytes))), "{text}");
            let line = Line::Bucket { path: vec![b"b".to_vec()], sequence: None };
            assert!(matches!(reader.pass_over(), Ok(Some((Some(passed), _))) if passed == line), "{text}");
            assert_eq!(reader.pass_over(), Ok(None));
        }
        assert!(Reader::csv(Box::new(&b"key\nk\n"[..])).pass_over().is_err(), "without columns there are no records");
    }

    #[test]
    fn csv_that_is_read_as_json_is_told() {
        for header in ["bucket,sequence,key,value,base64\n", "\u{feff}value,key,bucket\r\n"] {
            let why = Reader::json(Box::new(header.as_bytes())).next_line().unwrap_err();
            assert!(why.contains("--csv"), "{why}");
        }
        assert!(!Reader::json(Box::new(&b"bucket"[..])).next_line().unwrap_err().contains("--csv"));
    }

    #[test]
    fn all_bytes_are_counted_with_the_line_behind_them() {
        let mut reader = Reader::json(Box::new("\n\n{\"bucket\":\"b\"}\n".as_bytes()));
        assert_eq!(reader.next_line().unwrap().map(|(_, taken)| taken), Some(17));
    }
}
