//! Lines of JSON: one object for each bucket and each entry.
//!
//! ```text
//! {"path":["dXNlcnM="],"sequence":7}                                  everything binary in base64
//! {"path":["dXNlcnM="],"key":"YWRh","value":"bG92ZWxhY2U="}
//! {"bucket":"users","sequence":7}                                     only what is no text
//! {"bucket":"users","key":"ada","value":"lovelace"}
//! {"bucket":"users","key64":"/w==","value":"lovelace"}
//! ```
//! "path" holds the bucket's names from the top down, "bucket" the path as the command line takes it. Which of the two a line
//! has says what "key" and "value" are.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_json::error::Category;

use super::{Line, Place, from_base64, name_in_text, names};

/// Writes lines, and remembers the bucket in which it stands.
pub(super) struct JsonLines<W> {
    pub(super) out: W,
    is_text: bool,
    pub(super) place: Place,
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W, is_text: bool) -> Self {
        Self { out, is_text, place: Place::default() }
    }

    pub(super) fn enter(&mut self, name: &[u8], sequence: Option<u64>) -> io::Result<()> {
        self.stand_in(name)?;
        self.begin()?;
        if let Some(sequence) = sequence {
            write!(self.out, ",\"sequence\":{sequence}")?;
        }
        self.out.write_all(b"}\n")
    }

    /// Goes into a bucket whose line is there.
    pub(super) fn stand_in(&mut self, name: &[u8]) -> io::Result<()> {
        if self.is_text {
            let quoted = serde_json::to_string(&name_in_text(name, self.place.lengths.len())?)?;
            self.place.enter("/", quoted.get(1..quoted.len() - 1).unwrap_or_default());
        } else {
            self.place.enter("\",\"", &STANDARD.encode(name));
        }
        Ok(())
    }

    /// Writes the line of an entry. The value is never copied as a whole: it may be 2 GiB long.
    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.begin()?;
        self.field("key", key)?;
        self.field("value", value)?;
        self.out.write_all(b"}\n")
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.is_text {
            write!(self.out, "{{\"bucket\":\"{}\"", self.place.text)
        } else {
            write!(self.out, "{{\"path\":[\"{}\"]", self.place.text)
        }
    }

    fn field(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let text = if self.is_text { std::str::from_utf8(bytes).ok() } else { None };
        if let Some(text) = text {
            write!(self.out, ",\"{name}\":")?;
            return Ok(serde_json::to_writer(&mut self.out, text)?);
        }
        write!(self.out, ",\"{name}{}\":\"", if self.is_text { "64" } else { "" })?;
        self.base64(bytes)?;
        self.out.write_all(b"\"")
    }

    fn base64(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut encoder = EncoderWriter::new(&mut self.out, &STANDARD);
        encoder.write_all(bytes)?;
        encoder.finish().map(|_| ())
    }
}

/// Reads a line; with or without its end.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn parse(line: &[u8]) -> Result<Line, String> {
    let Fields { path, bucket, sequence, key, key64, value, value64 } =
        serde_json::from_slice(line).map_err(|error| describe(&error))?;
    let (path, is_text) = match (path, bucket) {
        (Some(path), None) => {
            let decoded: Result<Vec<_>, _> = path.iter().map(|name| from_base64("path", &*name.0)).collect();
            (decoded?, false)
        }
        (None, Some(bucket)) => (names(&bucket.0)?, true),
        _ => return Err(r#"there must be either "path" or "bucket""#.into()),
    };
    if path.is_empty() {
        return Err("the path is empty".into());
    }
    let bytes = |what, text: Option<Text<'_>>, base64: Option<Text<'_>>| match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) if is_text => Ok(Some(text.0.into_owned().into_bytes())),
        (Some(text), None) => from_base64(what, &*text.0).map(Some),
        (None, Some(text)) if is_text => from_base64(what, &*text.0).map(Some),
        _ => Err(format!(r#""{what}64" stands in the place of "{what}", beside "bucket""#)),
    };
    match (sequence, bytes("key", key, key64)?, bytes("value", value, value64)?) {
        (None, Some(key), Some(value)) => Ok(Line::Entry { path, key, value }),
        (None, None, None) if is_text => Ok(Line::Bucket { path, sequence: None }),
        (Some(sequence), None, None) => Ok(Line::Bucket { path, sequence: Some(sequence) }),
        _ => Err(r#"beside "path" there must be either "sequence", or "key" and "value""#.into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    path: Option<Vec<Text<'a>>>,
    bucket: Option<Text<'a>>,
    sequence: Option<u64>,
    key: Option<Text<'a>>,
    key64: Option<Text<'a>>,
    value: Option<Text<'a>>,
    value64: Option<Text<'a>>,
}

/// A string, which is not copied where the line has it as it is.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

/// What is wrong. The parser counts lines within what it was given, which is always one: only the column is news.
fn describe(error: &serde_json::Error) -> String {
    let column = error.column();
    match error.classify() {
        Category::Eof => "it is no JSON, or not all of it".into(),
        Category::Syntax => format!("it is no JSON, from column {column} on"),
        Category::Data | Category::Io => {
            let message = error.to_string();
            let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
            format!("column {column}: {what}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_text: bool, write: impl FnOnce(&mut JsonLines<Vec<u8>>) -> io::Result<()>) -> String {
        let mut lines = JsonLines::new(Vec::new(), is_text);
        write(&mut lines).unwrap();
        String::from_utf8(lines.out).unwrap()
    }

    fn some(lines: &mut JsonLines<Vec<u8>>) -> io::Result<()> {
        lines.enter(b"users", Some(7))?;
        lines.enter(b"e/u\"\xff", None)?;
        lines.entry(b"ada", b"love\nlace")?;
        lines.place.leave();
        lines.entry(b"\xff", b"")
    }

    #[test]
    fn a_line_names_its_bucket_from_the_top_down() {
        let expected = [
            r#"{"path":["dXNlcnM="],"sequence":7}"#,
            r#"{"path":["dXNlcnM=","ZS91Iv8="]}"#,
            r#"{"path":["dXNlcnM=","ZS91Iv8="],"key":"YWRh","value":"bG92ZQpsYWNl"}"#,
            r#"{"path":["dXNlcnM="],"key":"/w==","value":""}"#,
            "",
        ];
        assert_eq!(written(false, some), expected.join("\n"));
        let expected = [
            r#"{"bucket":"users","sequence":7}"#,
            r#"{"bucket":"users/e\\/u\"\\xff"}"#,
            r#"{"bucket":"users/e\\/u\"\\xff","key":"ada","value":"love\nlace"}"#,
            r#"{"bucket":"users","key64":"/w==","value":""}"#,
            "",
        ];
        assert_eq!(written(true, some), expected.join("\n"));
    }

    #[test]
    fn what_is_written_reads_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        for is_text in [false, true] {
            for bytes in [&every_byte[..], "jeder Größe \u{0}\u{7f}\u{2028}\"\\/".as_bytes()] {
                let text = written(is_text, |lines| {
                    lines.enter(bytes, Some(u64::MAX))?;
                    lines.enter(b"\"", Some(0))?;
                    lines.entry(bytes, bytes)
                });
                let read: Vec<Line> = text.lines().map(|line| parse(line.as_bytes()).unwrap()).collect();
                let path = vec![bytes.to_vec()];
                let bucket = Line::Bucket { path: path.clone(), sequence: Some(u64::MAX) };
                let within = vec![bytes.to_vec(), b"\"".to_vec()];
                let inner = Line::Bucket { path: within.clone(), sequence: Some(0) };
                let entry = Line::Entry { path: within, key: bytes.to_vec(), value: bytes.to_vec() };
                assert_eq!(read, [bucket, inner, entry], "{text}");
            }
        }
    }

    #[test]
    fn fields_may_stand_in_any_order_and_between_blanks() {
        let expected = || Ok(Line::Entry { path: vec![b"b".to_vec()], key: b"k".to_vec(), value: vec![] });
        assert_eq!(parse(b" { \"value\" : \"\", \"key\":\"aw==\", \"path\":[\"Yg==\"] }\r\n"), expected());
        assert_eq!(parse(b" { \"value64\" : \"\", \"key\":\"k\", \"bucket\":\"b/\" }"), expected());
    }

    #[test]
    fn what_is_no_line_of_an_export_is_refused_and_says_why() {
        let refused = |line: &str| parse(line.as_bytes()).unwrap_err();
        let cases = [
            ("", "it is no JSON, or not all of it"),
            ("hello", "it is no JSON, from column 1 on"),
            (r#"{"path":["Yg=="]}"#, "either"),
            (r#"{"sequence":1}"#, "either"),
            (r#"{"path":["Yg=="],"bucket":"b","sequence":1}"#, "either"),
            (r#"{"path":["Yg=="],"key":"aw=="}"#, "either"),
            (r#"{"path":["Yg=="],"key":"aw==","value":"","sequence":1}"#, "either"),
            (r#"{"bucket":"b","key":"k"}"#, "either"),
            (r#"{"bucket":"b","key":"k","key64":"aw==","value":""}"#, "in the place of"),
            (r#"{"path":["Yg=="],"key64":"aw==","value":""}"#, "in the place of"),
            (r#"{"path":[],"sequence":1}"#, "the path is empty"),
            (r#"{"bucket":"/","sequence":1}"#, "the path is empty"),
            (r#"{"bucket":"a//b","sequence":1}"#, "the bucket"),
            (r#"{"path":["Yg=="],"sequence":-1}"#, "invalid value"),
            (r#"{"path":["Yg=="],"sequence":1,"more":2}"#, "unknown field `more`"),
            (r#"{"path":["Yg"],"sequence":1}"#, "no base64"),
            (r#"{"path":["Yg=="],"key":"a?==","value":""}"#, "no base64"),
            (r#"{"bucket":"b","key":"k","value64":"?"}"#, "no base64"),
            (r#"{"path":["Yg=="],"sequence":1} x"#, "it is no JSON, from column 32 on"),
        ];
        for (line, why) in cases {
            let message = refused(line);
            assert!(message.contains(why), "{line}: {message}");
            assert!(!message.contains(" at line "), "{line}: {message}");
        }
    }
}
