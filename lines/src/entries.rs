//! How entries are printed: as the text dialect prints them, or as lines of JSON.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use boltkv_protocol::text::{self, Answer};
use boltkv_protocol::{Entry, EntryKind, Path};
use bytes::{BufMut as _, BytesMut};
use serde::Serialize;

/// What is printed of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `key value`; a bucket is `name/`.
    Entries,
    /// `key`; a bucket is `name/`.
    Keys,
    /// `name` as an argument that is a path has it, of buckets only.
    Names,
    /// An object, everything binary in base64.
    Json {
        /// Without values.
        keys_only: bool,
    },
}

impl Style {
    /// Appends one entry, on one line.
    ///
    /// # Errors
    /// A bucket's name that no path can have.
    pub fn print(self, entry: &Entry, out: &mut BytesMut) -> io::Result<()> {
        match self {
            Self::Json { keys_only } => print_json(entry, keys_only, &mut out.writer())?,
            Self::Names => print_name(&entry.key, out)?,
            Self::Keys if entry.kind != EntryKind::Bucket => {
                text::write_key(&entry.key, out);
                out.put_u8(b'\n');
            }
            Self::Keys | Self::Entries => Answer::Entries.write_entry(entry, out),
        }
        Ok(())
    }
}

/// A bucket's name as the command line takes it: not quoted once more, as the text dialect has to.
fn print_name(name: &[u8], out: &mut BytesMut) -> io::Result<()> {
    let path = Path::from_names([name]).map_err(io::Error::other)?;
    writeln!(out.writer(), "{path}")
}

/// An entry as JSON: `{"key","value"}`, `{"key"}`, `{"key","size"}` for a value that does not fit a frame, or `{"bucket"}`.
#[derive(Default, Serialize)]
pub struct Object {
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Object {
    /// An entry's; with `keys_only` its value is left out.
    #[must_use]
    pub fn of(entry: &Entry, keys_only: bool) -> Self {
        let name = Some(STANDARD.encode(&entry.key));
        match entry.kind {
            EntryKind::Bucket => Self { bucket: name, ..Self::default() },
            EntryKind::Value if keys_only => Self { key: name, ..Self::default() },
            EntryKind::Value => Self { key: name, value: Some(STANDARD.encode(&entry.value)), ..Self::default() },
            EntryKind::TooLarge => Self { key: name, size: entry.value_size(), ..Self::default() },
        }
    }
}

fn print_json(entry: &Entry, keys_only: bool, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Object::of(entry, keys_only))?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(style: Style, kind: EntryKind, key: &'static [u8], value: &'static [u8]) -> String {
        let mut out = BytesMut::new();
        style.print(&Entry { kind, key: key.into(), value: value.into() }, &mut out).unwrap();
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn entries_are_printed_as_the_text_dialect_does() {
        assert_eq!(printed(Style::Entries, EntryKind::Value, b"a b", b"c d"), "\"a b\" c d\n");
        assert_eq!(printed(Style::Entries, EntryKind::Bucket, b"users", b""), "users/\n");
        assert_eq!(printed(Style::Keys, EntryKind::Value, b"a\n", b""), "\"a\\n\"\n");
        assert_eq!(printed(Style::Keys, EntryKind::Bucket, b"users", b""), "users/\n");
    }

    #[test]
    fn a_bucket_is_listed_as_the_command_line_takes_it() {
        for (name, shown) in [
            (b"users".as_slice(), "users\n"),
            (b"a/b\\c", "a\\/b\\\\c\n"),
            (b" a \"b\"", " a \"b\"\n"),
            (b"\xff\n", "\\xff\\x0a\n"),
        ] {
            assert_eq!(printed(Style::Names, EntryKind::Bucket, name, b""), shown);
            let path: Path = shown.trim_end_matches('\n').parse().unwrap();
            assert_eq!(path.names().collect::<Vec<_>>(), [name]);
        }
    }

    #[test]
    fn json_tells_buckets_keys_and_large_values_apart() {
        let (all, keys) = (Style::Json { keys_only: false }, Style::Json { keys_only: true });
        assert_eq!(printed(all, EntryKind::Value, b"k", b"v"), "{\"key\":\"aw==\",\"value\":\"dg==\"}\n");
        assert_eq!(printed(keys, EntryKind::Value, b"k", b""), "{\"key\":\"aw==\"}\n");
        assert_eq!(printed(all, EntryKind::Bucket, b"k", b""), "{\"bucket\":\"aw==\"}\n");
        let size = &[0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(printed(all, EntryKind::TooLarge, b"k", size), "{\"key\":\"aw==\",\"size\":16777216}\n");
    }
}
