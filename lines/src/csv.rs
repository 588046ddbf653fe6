//! Comma-separated values: a header, then a record for each bucket and each entry.
//!
//! ```text
//! bucket,sequence,key,value,base64
//! users,7,,,
//! users,,ada,lovelace,
//! users,,/w==,lovelace,key
//! ```
//! A record without a key is a bucket's. The last column says which of key and value are in base64: those that are no text.
//! A header names its columns in any order; `sequence` and `base64` may be missing.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use csv::{ByteRecord, Reader, ReaderBuilder, Writer};

use super::{Line, Place, from_base64, name_in_text, names};

const COLUMNS: [&str; 5] = ["bucket", "sequence", "key", "value", "base64"];

/// Writes records, and remembers the bucket in which it stands.
pub(super) struct CsvLines<W: Write> {
    out: Writer<W>,
    pub(super) place: Place,
}

impl<W: Write> CsvLines<W> {
    pub(super) fn new(out: W) -> io::Result<Self> {
        let mut lines = Self::behind_header(out);
        lines.out.write_record(COLUMNS).map_err(not_written)?;
        Ok(lines)
    }

    /// Without a header: there is one.
    pub(super) fn behind_header(out: W) -> Self {
        Self { out: Writer::from_writer(out), place: Place::default() }
    }

    pub(super) fn enter(&mut self, name: &[u8], sequence: Option<u64>) -> io::Result<()> {
        self.stand_in(name)?;
        let sequence = sequence.map(|sequence| sequence.to_string()).unwrap_or_default();
        self.out.write_record([&self.place.text, &sequence, "", "", ""]).map_err(not_written)
    }

    /// Goes into a bucket whose record is there.
    pub(super) fn stand_in(&mut self, name: &[u8]) -> io::Result<()> {
        self.place.enter("/", &name_in_text(name, self.place.lengths.len())?);
        Ok(())
    }

    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let [key_text, value_text] = [key, value].map(|bytes| std::str::from_utf8(bytes).is_ok());
        let base64 = match (key_text, value_text) {
            (true, true) => "",
            (false, true) => "key",
            (true, false) => "value",
            (false, false) => "key value",
        };
        self.fields(&[(key, key_text), (value, value_text)], base64).map_err(not_written)
    }

    fn fields(&mut self, fields: &[(&[u8], bool)], base64: &str) -> csv::Result<()> {
        self.out.write_field(&self.place.text)?;
        self.out.write_field("")?;
        for &(bytes, is_text) in fields {
            self.field(bytes, is_text)?;
        }
        self.out.write_field(base64)?;
        self.out.write_record(None::<&[u8]>)
    }

    fn field(&mut self, bytes: &[u8], is_text: bool) -> csv::Result<()> {
        if is_text { self.out.write_field(bytes) } else { self.out.write_field(STANDARD.encode(bytes)) }
    }

    pub(super) fn into_inner(self) -> io::Result<W> {
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// What kept a record from being written, of the kind that it is: who reads no further ends the one who writes, and is no failure.
fn not_written(error: csv::Error) -> io::Error {
    let kind = match error.kind() {
        csv::ErrorKind::Io(error) => error.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Where each of the columns stands, and how many fields there are.
#[derive(Clone, Copy, Default)]
struct Header {
    columns: [Option<usize>; COLUMNS.len()],
    fields: usize,
}

/// Reads records.
pub(super) struct CsvInput<R> {
    reader: Reader<Watched<R>>,
    record: ByteRecord,
    /// What the header says; empty before the first record.
    header: Header,
}

impl<R: Read> CsvInput<R> {
    pub(super) fn new(from: R) -> Self {
        let from = Watched { from, place: InText::LineStart, read: 0, ended: false };
        let reader = ReaderBuilder::new().flexible(true).from_reader(from);
        Self { reader, record: ByteRecord::new(), header: Header::default() }
    }

    /// How many bytes were taken so far.
    pub(super) fn position(&self) -> u64 {
        self.reader.position().byte()
    }

    /// Reads the next record, whatever is in it; whether there is one.
    ///
    /// # Errors
    /// What is wrong with the header, or with what is read from, for people.
    pub(super) fn read(&mut self) -> Result<bool, String> {
        if self.header.fields == 0 {
            let header = self.reader.byte_headers().map_err(|error| error.to_string())?;
            self.header = Header { columns: columns(header)?, fields: header.len() };
        }
        self.reader.read_byte_record(&mut self.record).map_err(|error| error.to_string())
    }

    /// What the record says that was read.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn parse(&self) -> Result<Line, String> {
        self.expect_whole()?;
        let Header { columns, fields } = self.header;
        if self.record.len() != fields {
            return Err(format!("it has {} fields, and the header {fields}", self.record.len()));
        }
        let [bucket, sequence, key, value, base64] =
            columns.map(|column| column.and_then(|column| self.record.get(column)).unwrap_or_default());
        let no_text = |_| format!("the bucket {:?} is not in UTF-8", String::from_utf8_lossy(bucket));
        let path = names(std::str::from_utf8(bucket).map_err(no_text)?)?;
        if key.is_empty() {
            if !value.is_empty() {
                return Err("there is a value and no key".into());
            }
            let text = String::from_utf8_lossy(sequence);
            let sequence = if text.is_empty() { None } else { Some(text.parse().map_err(|_| no_sequence(&text))?) };
            return Ok(Line::Bucket { path, sequence });
        }
        if !sequence.is_empty() {
            return Err("a sequence is a bucket's, which has no key".into());
        }
        let in_base64 = |column: &str| base64.split(|&byte| byte == b' ').any(|word| word == column.as_bytes());
        if let Some(word) = base64.split(|&byte| byte == b' ').find(|word| ![&b""[..], b"key", b"value"].contains(word))
        {
            return Err(format!("base64 is {:?}, and not of key and value", String::from_utf8_lossy(word)));
        }
        let bytes =
            |column, field: &[u8]| if in_base64(column) { from_base64(column, field) } else { Ok(field.to_vec()) };
        Ok(Line::Entry { path, key: bytes("key", key)?, value: bytes("value", value)? })
    }

    /// A file that was cut short may end in something that looks like a record.
    fn expect_whole(&self) -> Result<(), String> {
        let from = self.reader.get_ref();
        let is_last = from.ended && self.reader.position().byte() >= from.read;
        match from.place {
            InText::Quotes if is_last => {
                Err("a quote is opened in it and never closed: the file may be cut off".into())
            }
            InText::LineStart => Ok(()),
            _ if is_last => {
                Err("it is the last record and has no line end: the file may be cut off; if not, add one".into())
            }
            _ => Ok(()),
        }
    }
}

/// Where a text stands, by the rules of comma-separated values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InText {
    LineStart,
    FieldStart,
    Field,
    /// In a field that has begun with a quote.
    Quotes,
    /// Behind a quote in such a field: its end, unless another quote follows.
    Quote,
}

/// What is read from, and where it stands: at its end only that tells whether it is whole.
struct Watched<R> {
    from: R,
    place: InText,
    /// Bytes.
    read: u64,
    ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buf)?;
        self.ended = read == 0;
        self.read += read as u64;
        for byte in &buf[..read] {
            self.place = match (self.place, byte) {
                (InText::Quotes, b'"') => InText::Quote,
                (InText::Quotes, _) | (InText::Quote | InText::FieldStart | InText::LineStart, b'"') => InText::Quotes,
                (_, b'\n' | b'\r') => InText::LineStart,
                (_, b',') => InText::FieldStart,
                _ => InText::Field,
            };
        }
        Ok(read)
    }
}

fn no_sequence(text: &str) -> String {
    format!("the sequence {text:?} is no number from 0 to 2^64 - 1")
}

/// Whether a line is a header that names the columns.
pub(super) fn is_header(line: &[u8]) -> bool {
    columns(&line.trim_ascii().split(|byte| *byte == b',').collect()).is_ok()
}

/// Where the columns stand that a header names.
fn columns(header: &ByteRecord) -> Result<[Option<usize>; COLUMNS.len()], String> {
    if let Some(unknown) = header.iter().find(|name| !COLUMNS.iter().any(|column| column.as_bytes() == *name)) {
        let unknown = String::from_utf8_lossy(unknown);
        return Err(format!("the header names a column {unknown:?}: they are {}", COLUMNS.join(", ")));
    }
    if let Some(twice) =
        COLUMNS.iter().find(|column| header.iter().filter(|name| *name == column.as_bytes()).count() > 1)
    {
        return Err(format!("the header names the column {twice} twice"));
    }
    let columns = COLUMNS.map(|column| header.iter().position(|name| name == column.as_bytes()));
    match columns {
        [Some(_), _, Some(_), Some(_), _] => Ok(columns),
        _ => Err("the header must name the columns bucket, key and value".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Line>, String> {
        let mut input = CsvInput::new(text.as_bytes());
        let mut lines = Vec::new();
        while input.read()? {
            lines.push(input.parse()?);
        }
        Ok(lines)
    }

    #[test]
    fn records_look_as_documented_and_read_back() {
        let mut lines = CsvLines::new(Vec::new()).unwrap();
        lines.enter(b"users", Some(7)).unwrap();
        lines.entry(b"ada", b"lovelace").unwrap();
        lines.entry(b"\xff", b"a,\"b\"\r\nc").unwrap();
        lines.enter(b"e,u", None).unwrap();
        lines.entry(b" k ", b"\xff\x00").unwrap();
        lines.place.leave();
        lines.entry(b"z", b"").unwrap();
        let text = String::from_utf8(lines.into_inner().unwrap()).unwrap();
        let expected = concat!(
            "bucket,sequence,key,value,base64\n",
            "users,7,,,\n",
            "users,,ada,lovelace,\n",
            "users,,/w==,\"a,\"\"b\"\"\r\nc\",key\n",
            "\"users/e,u\",,,,\n",
            "\"users/e,u\",, k ,/wA=,value\n",
            "users,,z,,\n",
        );
        assert_eq!(text, expected);
        let (users, inner) = (vec![b"users".to_vec()], vec![b"users".to_vec(), b"e,u".to_vec()]);
        let entry = |path: &Vec<Vec<u8>>, key: &[u8], value: &[u8]| Line::Entry {
            path: path.clone(),
            key: key.to_vec(),
            value: value.to_vec(),
        };
        let expected = [
            Line::Bucket { path: users.clone(), sequence: Some(7) },
            entry(&users, b"ada", b"lovelace"),
            entry(&users, b"\xff", b"a,\"b\"\r\nc"),
            Line::Bucket { path: inner.clone(), sequence: None },
            entry(&inner, b" k ", b"\xff\x00"),
            entry(&users, b"z", b""),
        ];
        assert_eq!(read(&text).unwrap(), expected);
    }

    #[test]
    fn who_reads_no_further_is_told_from_what_fails() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut lines = CsvLines::new(Closed).unwrap();
        let failed = lines.entry(b"key", &[b'v'; 10_000]).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_header_of_other_programs_may_leave_columns_out() {
        let expected = [Line::Entry { path: vec![b"b".to_vec()], key: b"k".to_vec(), value: b"v".to_vec() }];
        assert_eq!(read("\u{feff}value,key,bucket\r\nv,k,b\r\n").unwrap(), expected);
        assert_eq!(read("bucket,key,value").unwrap(), []);
    }

    #[test]
    fn what_is_no_record_is_refused_and_says_why() {
        for (text, why) in [
            ("key,value\nk,v\n", "must name the columns"),
            ("bucket,key,value,color\nb,k,v,red\n", "column \"color\""),
            ("bucket,key,value\nb,k\n", "it has 2 fields, and the header 3"),
            ("bucket,key,value\nb,,v\n", "no key"),
            ("bucket,key,value\n,k,v\n", "the path is empty"),
            ("bucket,key,value\na//b,k,v\n", "the bucket"),
            ("bucket,key,value,sequence\nb,k,v,1\n", "a bucket's"),
            ("bucket,key,value,sequence\nb,,,-1\n", "no number"),
            ("bucket,key,value,base64\nb,k,v,both\n", "\"both\""),
            ("bucket,key,value,base64\nb,k,v,value\n", "no base64"),
            ("bucket,key,key,value\nb,k,k,v\n", "key twice"),
            // Cut off.
            ("bucket,key,value,base64\nb,/w==,/w==,key value\nb,/w==,/w==,", "no line end"),
            ("bucket,key,value\nb,k,v", "no line end"),
            ("\u{feff}bucket,key,value\r\nb,k,\"v\"", "no line end"),
            ("bucket,key,value\nb,k,\"v\nb,k,\"\"v\n", "never closed"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
        let latin = b"bucket,key,value\nz\xe9,k,v\n";
        let mut input = CsvInput::new(&latin[..]);
        assert!(input.read().unwrap());
        let message = input.parse().unwrap_err();
        assert!(message.contains("not in UTF-8"), "{message}");
    }
}
