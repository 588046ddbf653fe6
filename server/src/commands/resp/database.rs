//! Databases by number, and the buckets that they are.

use std::sync::LazyLock;

use boltkv_protocol::{ErrorCode, Path, text};

use super::failure::Failure;
use super::number;

/// How many databases there are.
const MOST: u8 = 16;

/// A database by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Database(u8);

impl Database {
    /// The one of this number, if there is one.
    pub(crate) fn new(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number < MOST).map(Self)
    }

    /// The one that a word names.
    pub(crate) fn named(word: &[u8]) -> Result<Self, Failure> {
        let number = number::integer(word)?;
        i32::try_from(number).map_err(|_| Failure::not_between(i32::MIN.into(), i32::MAX.into()))?;
        Self::numbered(number)
    }

    /// The one of this number.
    pub(super) fn numbered(number: i64) -> Result<Self, Failure> {
        Self::new(number).ok_or_else(|| Failure::say(ErrorCode::Malformed, "ERR DB index is out of range"))
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// All there are.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..MOST).map(Self)
    }

    /// The bucket in which its keys are: `default`, in which lines of text start; `db1`; `db2` …
    pub(crate) fn path(self) -> &'static Path {
        static PATHS: LazyLock<Vec<Path>> = LazyLock::new(|| {
            let named = (1..MOST).map(|number| Path::from_names([format!("db{number}")]));
            // So short a name always makes a path.
            let named = named.map(Result::unwrap_or_default);
            std::iter::once(text::default_bucket()).chain(named).collect()
        });
        &PATHS[usize::from(self.0)]
    }
}
