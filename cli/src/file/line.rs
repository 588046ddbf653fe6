//! The lines of an export: one JSON object for each bucket and each entry, everything binary in base64.
//!
//! ```text
//! {"path":["dXNlcnM="],"sequence":7}
//! {"path":["dXNlcnM="],"key":"YWRh","value":"bG92ZWxhY2U="}
//! ```
//! The path holds the bucket's names from the top down. Depth first in key order: a bucket's own line comes before all that
//! is in it. This module knows how a line looks; it neither opens nor changes a database.

use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// Writes lines, and remembers the bucket in which it stands.
pub(super) struct Lines<W> {
    out: W,
    /// The names of the path as they stand in a line: `"dXNlcnM=","ZXU="`.
    path: String,
    /// The length of `path` before each of its names.
    lengths: Vec<usize>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, path: String::new(), lengths: Vec::new() }
    }

    /// Goes into a bucket of the one in which it stands, and writes its line.
    pub(super) fn enter(&mut self, name: &[u8], sequence: u64) -> io::Result<()> {
        self.lengths.push(self.path.len());
        if !self.path.is_empty() {
            self.path.push(',');
        }
        self.path.push('"');
        STANDARD.encode_string(name, &mut self.path);
        self.path.push('"');
        writeln!(self.out, r#"{{"path":[{}],"sequence":{sequence}}}"#, self.path)
    }

    /// Goes back to the bucket above.
    pub(super) fn leave(&mut self) {
        self.path.truncate(self.lengths.pop().unwrap_or(0));
    }

    /// Writes the line of an entry. The value is never copied as a whole: it may be 2 GiB long.
    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        write!(self.out, r#"{{"path":[{}],"key":""#, self.path)?;
        self.base64(key)?;
        self.out.write_all(br#"","value":""#)?;
        self.base64(value)?;
        self.out.write_all(b"\"}\n")
    }

    fn base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut encoder = EncoderWriter::new(&mut self.out, &STANDARD);
        encoder.write_all(bytes)?;
        encoder.finish().map(|_| ())
    }

    /// Gives back what it wrote to.
    pub(super) fn into_inner(self) -> W {
        self.out
    }
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// There is a bucket.
    Bucket { path: Vec<Vec<u8>>, sequence: u64 },
    /// A bucket holds an entry.
    Entry { path: Vec<Vec<u8>>, key: Vec<u8>, value: Vec<u8> },
}

impl Line {
    /// Reads a line; with or without its end.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let fields: Fields = serde_json::from_slice(line).map_err(|error| describe(&error))?;
        let path: Vec<Vec<u8>> = fields.path.into_iter().map(|name| name.0).collect();
        if path.is_empty() {
            return Err("the path is empty".into());
        }
        match (fields.sequence, fields.key, fields.value) {
            (Some(sequence), None, None) => Ok(Self::Bucket { path, sequence }),
            (None, Some(key), Some(value)) => Ok(Self::Entry { path, key: key.0, value: value.0 }),
            _ => Err(r#"beside "path" there must be either "sequence", or "key" and "value""#.into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    path: Vec<Base64>,
    key: Option<Base64>,
    value: Option<Base64>,
    sequence: Option<u64>,
}

/// Bytes, decoded while the line is read.
struct Base64(Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Base64Visitor)
    }
}

struct Base64Visitor;

impl Visitor<'_> for Base64Visitor {
    type Value = Base64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string in base64")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64, E> {
        STANDARD.decode(text).map(Base64).map_err(|error| E::custom(format_args!("no base64: {error}")))
    }
}

/// The parser's message. It counts lines within what it was given, which is always one: only the column is news.
fn describe(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    format!("column {}: {what}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Lines<Vec<u8>>) -> io::Result<()>) -> String {
        let mut lines = Lines::new(Vec::new());
        write(&mut lines).unwrap();
        String::from_utf8(lines.into_inner()).unwrap()
    }

    #[test]
    fn a_line_names_its_bucket_from_the_top_down() {
        let text = written(|lines| {
            lines.enter(b"users", 7)?;
            lines.enter(b"eu", 0)?;
            lines.entry(b"ada", b"lovelace")?;
            lines.leave();
            lines.entry(b"k", b"")
        });
        let expected = concat!(
            r#"{"path":["dXNlcnM="],"sequence":7}"#,
            "\n",
            r#"{"path":["dXNlcnM=","ZXU="],"sequence":0}"#,
            "\n",
            r#"{"path":["dXNlcnM=","ZXU="],"key":"YWRh","value":"bG92ZWxhY2U="}"#,
            "\n",
            r#"{"path":["dXNlcnM="],"key":"aw==","value":""}"#,
            "\n",
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_written_reads_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let text = written(|lines| {
            lines.enter(&every_byte, u64::MAX)?;
            lines.entry(&every_byte, &every_byte)
        });
        let read: Vec<Line> = text.lines().map(|line| Line::parse(line.as_bytes()).unwrap()).collect();
        let path = vec![every_byte.clone()];
        let bucket = Line::Bucket { path: path.clone(), sequence: u64::MAX };
        let entry = Line::Entry { path, key: every_byte.clone(), value: every_byte };
        assert_eq!(read, [bucket, entry]);
    }

    #[test]
    fn fields_may_stand_in_any_order_and_between_blanks() {
        let line = Line::parse(b" { \"value\" : \"\", \"key\":\"aw==\", \"path\":[\"Yg==\"] }\r\n");
        assert_eq!(line, Ok(Line::Entry { path: vec![b"b".to_vec()], key: b"k".to_vec(), value: vec![] }));
    }

    #[test]
    fn what_is_no_line_of_an_export_is_refused_and_says_why() {
        let refused = |line: &str| Line::parse(line.as_bytes()).unwrap_err();
        let cases = [
            ("", "EOF while parsing a value"),
            ("hello", "expected value"),
            (r#"{"path":["Yg=="]}"#, "either"),
            (r#"{"path":["Yg=="],"key":"aw=="}"#, "either"),
            (r#"{"path":["Yg=="],"key":"aw==","value":"","sequence":1}"#, "either"),
            (r#"{"path":[],"sequence":1}"#, "the path is empty"),
            (r#"{"path":["Yg=="],"sequence":-1}"#, "invalid value"),
            (r#"{"path":["Yg=="],"sequence":1,"more":2}"#, "unknown field `more`"),
            (r#"{"path":["Yg"],"sequence":1}"#, "no base64"),
            (r#"{"path":["Yg=="],"key":"a?==","value":""}"#, "no base64"),
            (r#"{"path":["Yg=="],"sequence":1} x"#, "trailing characters"),
        ];
        for (line, why) in cases {
            let message = refused(line);
            assert!(message.contains(why), "{line}: {message}");
            assert!(!message.contains(" at line "), "{line}: {message}");
        }
    }
}
