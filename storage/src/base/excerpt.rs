//! What of a database's content an error names: buckets by their paths, keys by their beginnings.

use std::fmt;

/// How much of a key an error keeps.
const EXCERPT: usize = 64;

pub(super) fn cut(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(EXCERPT)].to_vec()
}

/// The names that lead to a bucket, from the outermost in, as an error tells them; none for the root.
///
/// It is what the call that failed knew: a [`Bucket`](crate::Bucket) that was opened to be read knows
/// its own name only, a [`BucketMut`](crate::BucketMut) and a path that is being followed know all.
/// Names are cut to what a message bears, and of many the outermost are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BucketPath {
    names: Vec<Vec<u8>>,
    /// Names further out were left out.
    cut: bool,
}

impl BucketPath {
    /// How many names an error keeps.
    const LONGEST: usize = 8;

    /// The names, from the outermost in.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(Vec::as_slice)
    }

    /// Whether it is that of the root bucket, or not known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Puts the name of the bucket around all others before them.
    pub(crate) fn wrap(&mut self, outer: &[u8]) {
        if self.names.len() < Self::LONGEST {
            self.names.insert(0, cut(outer));
        } else {
            self.cut = true;
        }
    }
}

impl fmt::Display for BucketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cut {
            f.write_str("…/")?;
        }
        for (number, name) in self.names.iter().enumerate() {
            let slash = if number == 0 { "" } else { "/" };
            write!(f, "{slash}{}", Excerpt(name))?;
        }
        Ok(())
    }
}

/// ` in bucket "a"/"b"`, or nothing.
pub(super) struct In<'a>(pub(super) &'a BucketPath);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " in bucket {}", self.0) }
    }
}

/// Bytes for a message: quoted, escaped, cut.
pub(crate) struct Excerpt<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(EXCERPT)];
        let more = if self.0.len() >= EXCERPT { "…" } else { "" };
        write!(f, "\"{}\"{more}", shown.escape_ascii())
    }
}
