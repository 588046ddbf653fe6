//! The record: a user, whose fields follow from its number. Knows its fields' bytes, nothing of how they are stored.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::data::splitmix;

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the experiment's and say what they hold")]
pub struct Record {
    pub id: i64,
    pub username: String,
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub age: i32,
    pub height: f32,
    pub weight: f32,
    pub balance: f64,
    pub is_active: bool,
    pub created_at: i64,
    pub updated_at: i64,
    pub login_count: i32,
    pub score: f64,
    pub description: String,
}

impl Record {
    /// The record of that number.
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "all are below 1,000,000")]
    pub fn new(id: i64) -> Self {
        let below = |field: u64, limit: u64| splitmix(id.cast_unsigned() * 16 + field) % limit;
        let created_at = 1_700_000_000 + below(6, 10_000_000).cast_signed();
        Self {
            id,
            username: format!("user_{id}"),
            email: format!("user{id}@example.com"),
            first_name: format!("First_{id}"),
            last_name: format!("Last_{id}"),
            age: 18 + below(0, 60) as i32,
            height: 150.0 + below(1, 500) as f32 / 10.0,
            weight: 50.0 + below(2, 1000) as f32 / 10.0,
            balance: below(3, 1_000_000) as f64 / 100.0,
            is_active: below(4, 2) == 1,
            created_at,
            updated_at: created_at + below(5, 10_000_000).cast_signed(),
            login_count: below(7, 1_000) as i32,
            score: below(8, 10_000) as f64 / 100.0,
            description: format!(
                "This is the description of user number {id}, long enough to be a sentence that somebody wrote about \
                 herself."
            ),
        }
    }
}

/// A field of the record.
pub(super) struct Field {
    /// Its name.
    pub(super) name: &'static str,
    /// Appends its bytes.
    pub(super) put: fn(&Record, &mut Vec<u8>),
    /// Takes it from the front of some bytes.
    pub(super) take: fn(&mut Record, &mut &[u8]) -> Result<()>,
}

macro_rules! fields {
    ($($name:ident),*) => {
        [$(Field {
            name: stringify!($name),
            put: |record, out| record.$name.put(out),
            take: |record, from| {
                record.$name = Bytes::take(from)?;
                Ok(())
            },
        }),*]
    };
}

/// All fields, in order.
pub(super) static FIELDS: [Field; 15] = fields![
    id,
    username,
    email,
    first_name,
    last_name,
    age,
    height,
    weight,
    balance,
    is_active,
    created_at,
    updated_at,
    login_count,
    score,
    description
];

/// What is written and read as bytes.
pub(super) trait Bytes: Sized {
    /// Appends the bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes them from the front.
    fn take(from: &mut &[u8]) -> Result<Self>;
}

/// Numbers, little-endian.
macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Bytes for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Result<Self> {
                let (bytes, rest) = from.split_first_chunk().context("a record ends within a number")?;
                *from = rest;
                Ok(Self::from_le_bytes(*bytes))
            }
        })*
    };
}

numbers!(u8, u16, i32, i64, f32, f64);

impl Bytes for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }

    fn take(from: &mut &[u8]) -> Result<Self> {
        Ok(u8::take(from)? != 0)
    }
}

/// Their length in 2 bytes, then themselves.
impl Bytes for String {
    fn put(&self, out: &mut Vec<u8>) {
        u16::try_from(self.len()).unwrap_or(u16::MAX).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Result<Self> {
        let len = u16::take(from)?;
        let (bytes, rest) = from.split_at_checked(len.into()).context("a record ends within a string")?;
        *from = rest;
        Ok(std::str::from_utf8(bytes)?.to_owned())
    }
}
