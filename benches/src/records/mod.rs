//! Experiment (c): a user's record, six ways to lay it out in a bolt file, and what is done with records. `go/record.go`
//! and `go/records.go` do the same.

mod layout;
mod record;
mod store;

use serde::{Deserialize, Serialize};

pub use record::Record;
pub use store::run;

/// How a record becomes entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One value: the fields in order.
    Binary,
    /// One value: names and fields in order.
    BinaryNamed,
    /// One value, as JSON.
    Json,
    /// One value, as `MessagePack` with names.
    MessagePack,
    /// An entry for each field, whose key is the record's number and the field's name.
    MultiKv,
    /// A bucket for each record, and an entry in it for each field.
    Nested,
}

impl Layout {
    /// All, with their names.
    pub const ALL: [(Self, &str); 6] = [
        (Self::Binary, "binary"),
        (Self::BinaryNamed, "binary-named"),
        (Self::Json, "json"),
        (Self::MessagePack, "message-pack"),
        (Self::MultiKv, "multi-kv"),
        (Self::Nested, "nested"),
    ];
}

/// What is done with so many records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Make them all, as keys and values, and store nothing: what the language has to do before the engine.
    Make,
    /// Store them all, one a transaction.
    WriteEach,
    /// Store them all in one transaction.
    WriteAll,
    /// Read half of them, at random, one a transaction.
    Read,
    /// Read a third of them, one after the other from the middle on, in one transaction.
    ReadMany,
    /// Sum one field up over all, in one transaction.
    FieldSum,
    /// Change one field of half of them, at random, one a transaction.
    Update,
}

impl Task {
    /// How many of `count` records it does something with.
    #[must_use]
    pub fn records(self, count: u64) -> u64 {
        match self {
            Self::Make | Self::WriteEach | Self::WriteAll | Self::FieldSum => count,
            Self::Read | Self::Update => count / 2,
            Self::ReadMany => count / 3,
        }
    }
}
