//! Bucket paths: the names of nested buckets from the top down, on the wire and in their textual form `users/eu`.
//!
//! A path is kept as the wire has it, so that decoding a request takes one slice of its frame and no list of names.
//! It says nothing about which buckets exist or which names the engine takes.

use std::fmt;
use std::str::FromStr;

use bytes::{BufMut, Bytes, BytesMut};

use crate::escape;
use crate::field::{DecodeError, Fields};

/// A bucket path: up to 255 names of up to 65,535 bytes each. No names at all is the root, which holds buckets only.
///
/// The textual form separates names by `/`; within a name `\/` is a slash, `\\` a backslash and `\xNN` any byte. One slash at
/// the end is allowed (a scan prints buckets so). `/` alone, or nothing, is the root.
///
/// ```
/// use boltkv_protocol::Path;
/// let path: Path = r"users/a\/b".parse()?;
/// assert_eq!(path.names().collect::<Vec<_>>(), [b"users".as_slice(), b"a/b"]);
/// assert_eq!(path.to_string(), r"users/a\/b");
/// # Ok::<(), boltkv_protocol::PathError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// `count u8`, then `count` × `str16`; checked when made, so that walking it cannot fail.
    wire: Bytes,
}

/// Why names or a text are no bucket path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing between two slashes, or before the first.
    #[error("a bucket name in the path is empty")]
    EmptyName,
    /// A backslash that starts no known escape.
    #[error("unknown escape in the bucket path at byte {at}: only \\/, \\\\ and \\xNN are known")]
    BadEscape {
        /// Where the backslash stands, in bytes from the start.
        at: usize,
    },
    /// More names than the wire can count.
    #[error("a bucket path has at most 255 names")]
    TooDeep,
    /// A name longer than the wire can carry.
    #[error("a bucket name of {len} bytes is over the limit of 65535")]
    NameTooLong {
        /// The name's length in bytes.
        len: usize,
    },
}

impl Path {
    /// The root: it holds buckets, never values.
    pub const ROOT: Self = Self { wire: Bytes::from_static(&[0]) };

    /// So many names it has at most.
    pub const MOST_NAMES: usize = u8::MAX as usize;

    /// A path of these names, from the top down.
    ///
    /// # Errors
    /// Over 255 names, or one over 65,535 bytes. Empty names are the engine's to refuse.
    pub fn from_names<I>(names: I) -> Result<Self, PathError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u8]>,
    {
        let mut builder = Builder::new(0);
        for name in names {
            builder.push(name.as_ref())?;
        }
        Ok(builder.finish())
    }

    /// Reads the textual form. It may hold any bytes, also such as are not UTF-8.
    ///
    /// # Errors
    /// An empty name, an unknown escape, or more than the wire can carry.
    pub fn parse(text: &[u8]) -> Result<Self, PathError> {
        if text == b"/" {
            return Ok(Self::ROOT);
        }
        let mut builder = Builder::new(text.len());
        let mut name = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'/' if name.is_empty() => return Err(PathError::EmptyName),
                b'/' => {
                    builder.push(&name)?;
                    name.clear();
                    at += 1;
                }
                b'\\' => {
                    let (byte, len) =
                        unescape(text.get(at + 1..).unwrap_or_default()).ok_or(PathError::BadEscape { at })?;
                    name.push(byte);
                    at += 1 + len;
                }
                _ => {
                    name.push(byte);
                    at += 1;
                }
            }
        }
        if !name.is_empty() {
            builder.push(&name)?;
        }
        Ok(builder.finish())
    }

    /// The path of a bucket within this one.
    ///
    /// # Errors
    /// As for [`Path::from_names`].
    pub fn child(&self, name: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let name = name.as_ref();
        let mut builder = Builder::new(self.wire.len() + name.len());
        for own in self.names() {
            builder.push(own)?;
        }
        builder.push(name)?;
        Ok(builder.finish())
    }

    /// The names from the top down.
    #[must_use]
    pub fn names(&self) -> Names<'_> {
        Names { rest: self.wire.get(1..).unwrap_or_default(), left: self.depth() }
    }

    /// Its names, each as the wire has it: a `u16` and so many bytes. What begins with the names of another path lies within
    /// that one; nothing else does.
    #[must_use]
    pub fn names_on_the_wire(&self) -> &[u8] {
        self.wire.get(1..).unwrap_or_default()
    }

    /// How many names there are: 0 for the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.wire.first().copied().unwrap_or(0).into()
    }

    /// The path's bytes, to be moved elsewhere as they are.
    pub(crate) const fn wire_mut(&mut self) -> &mut Bytes {
        &mut self.wire
    }

    /// Whether this is `outer`, or a bucket somewhere within it. Everything is within the root.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        // Each name begins with its length, so that what begins alike has the same names.
        self.names().rest.starts_with(outer.names().rest)
    }

    /// Whether this is the root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.depth() == 0
    }

    /// A path that this crate wrote down itself, as the wire has it.
    pub(crate) const fn from_static_wire(wire: &'static [u8]) -> Self {
        Self { wire: Bytes::from_static(wire) }
    }

    /// The path as a frame carries it: a count and that many `str16`.
    pub(crate) fn as_wire(&self) -> &[u8] {
        &self.wire
    }

    /// Takes a path off a body.
    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        const FIELD: &str = "path";
        let short = DecodeError::Short { field: FIELD };
        let body = fields.peek();
        let count = *body.first().ok_or(short.clone())?;
        let mut end = 1;
        for _ in 0..count {
            let len = body.get(end..).and_then(<[u8]>::first_chunk).ok_or(short.clone())?;
            end += 2 + usize::from(u16::from_be_bytes(*len));
        }
        Ok(Self { wire: fields.take(end, FIELD)? })
    }

    /// Appends a name as it stands in a path, with only `/` and `\` escaped: what a text line quotes further.
    pub(crate) fn put_name(name: &[u8], out: &mut Vec<u8>) {
        for &byte in name {
            if matches!(byte, b'/' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
}

/// The byte an escape stands for and its length after the backslash.
fn unescape(after: &[u8]) -> Option<(u8, usize)> {
    match *after.first()? {
        byte @ (b'/' | b'\\') => Some((byte, 1)),
        b'x' => Some((escape::parse_hex(after.get(1..)?.first_chunk())?, 3)),
        _ => None,
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text.as_bytes())
    }
}

impl Default for Path {
    fn default() -> Self {
        Self::ROOT
    }
}

/// The textual form; bytes that are no printable UTF-8 are escaped.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str("/");
        }
        for (index, name) in self.names().enumerate() {
            if index > 0 {
                f.write_str("/")?;
            }
            for chunk in name.utf8_chunks() {
                write_printable(f, chunk.valid())?;
                chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
            }
        }
        Ok(())
    }
}

fn write_printable(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    use fmt::Write as _;
    for character in text.chars() {
        match character {
            '/' | '\\' => write!(f, "\\{character}")?,
            _ if character.is_control() => {
                let mut buffer = [0; 4];
                for byte in character.encode_utf8(&mut buffer).bytes() {
                    write!(f, "\\x{byte:02x}")?;
                }
            }
            _ => f.write_char(character)?,
        }
    }
    Ok(())
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({self})")
    }
}

/// The names of a [`Path`], from the top down.
#[derive(Debug, Clone)]
pub struct Names<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let (len, rest) = self.rest.split_first_chunk()?;
        let (name, rest) = rest.split_at_checked(u16::from_be_bytes(*len).into())?;
        self.rest = rest;
        Some(name)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Names<'_> {}

/// Gathers names into the wire's form.
struct Builder {
    wire: BytesMut,
    count: u8,
}

impl Builder {
    fn new(capacity: usize) -> Self {
        let mut wire = BytesMut::with_capacity(capacity + 8);
        wire.put_u8(0);
        Self { wire, count: 0 }
    }

    fn push(&mut self, name: &[u8]) -> Result<(), PathError> {
        self.count = self.count.checked_add(1).ok_or(PathError::TooDeep)?;
        let len = u16::try_from(name.len()).map_err(|_| PathError::NameTooLong { len: name.len() })?;
        self.wire.put_u16(len);
        self.wire.put_slice(name);
        Ok(())
    }

    fn finish(mut self) -> Path {
        if let Some(count) = self.wire.first_mut() {
            *count = self.count;
        }
        Path { wire: self.wire.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<Vec<u8>>, PathError> {
        Path::parse(text.as_bytes()).map(|path| path.names().map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn slashes_separate_and_escapes_do_not() {
        assert_eq!(names("users").unwrap(), [b"users"]);
        assert_eq!(names("users/eu").unwrap(), [&b"users"[..], b"eu"]);
        assert_eq!(names(r"a\/b/c\\\x2F\xff").unwrap(), [&b"a/b"[..], b"c\\/\xff"]);
        assert_eq!(names("users/eu/").unwrap(), names("users/eu").unwrap());
    }

    #[test]
    fn nothing_or_one_slash_is_the_root() {
        for text in ["", "/"] {
            let path: Path = text.parse().unwrap();
            assert!(path.is_root());
            assert_eq!(path, Path::ROOT);
            assert_eq!(path.to_string(), "/");
        }
    }

    #[test]
    fn empty_names_and_unknown_escapes_are_refused() {
        for text in ["/a", "a//b", "//", "a//"] {
            assert_eq!(names(text), Err(PathError::EmptyName), "{text}");
        }
        for (text, at) in [(r"a\", 1), (r"ab\n", 2), (r"\x4", 0), (r"a/\xg0", 2)] {
            assert_eq!(names(text), Err(PathError::BadEscape { at }), "{text}");
        }
    }

    #[test]
    fn a_path_holds_255_names_of_65535_bytes_and_no_more() {
        assert_eq!(Path::from_names(vec!["a"; 255]).unwrap().depth(), 255);
        assert_eq!(Path::from_names(vec!["a"; 256]), Err(PathError::TooDeep));
        assert!(Path::from_names([vec![0; 65_535]]).is_ok());
        assert_eq!(Path::from_names([vec![0; 65_536]]), Err(PathError::NameTooLong { len: 65_536 }));
    }

    #[test]
    fn a_bucket_is_within_itself_and_all_above_it_and_not_within_one_whose_name_begins_alike() {
        let path = |text: &str| -> Path { text.parse().unwrap() };
        for (inner, outer) in
            [("a", "a"), ("a/b", "a"), ("a/b/c", "a/b"), ("a", "/"), ("/", "/"), (r"a\x00/b", r"a\x00")]
        {
            assert!(path(inner).is_within(&path(outer)), "{inner} in {outer}");
        }
        for (inner, outer) in [("ab", "a"), ("a", "a/b"), ("/", "a"), ("b/a", "a"), ("a/bc", "a/b"), (r"a\/b", "a")] {
            assert!(!path(inner).is_within(&path(outer)), "{inner} in {outer}");
        }
    }

    #[test]
    fn a_child_is_one_name_deeper() {
        let eu = Path::ROOT.child("users").unwrap().child("e/u").unwrap();
        assert_eq!(eu.to_string(), r"users/e\/u");
        assert_eq!(eu.names().len(), 2);
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        let path = Path::from_names([&b"gr\xc3\xb6\xc3\x9fe\n\xff"[..]]).unwrap();
        assert_eq!(path.to_string(), r"größe\x0a\xff");
        assert_eq!(format!("{path:?}"), format!("Path({path})"));
    }
}
