//! When a write is to be done: the conditions of `set` and `delete` as options.

use boltkv_client::Cond;
use bytes::Bytes;
use clap::Args;

use crate::remote::bytes_parser;

/// The condition of a `set`; without one it is done always.
#[derive(Debug, Args)]
#[group(id = "set_condition", multiple = false)]
pub(crate) struct SetCondition {
    /// Only if the key is not there
    #[arg(long = "if-absent")]
    absent: bool,
    /// Only if the key is there
    #[arg(long = "if-present")]
    present: bool,
    /// Only if the key's value is this, byte for byte
    #[arg(long = "if-equals", value_name = "VALUE", value_parser = bytes_parser(), allow_hyphen_values = true)]
    equals: Option<Bytes>,
}

/// The condition of a `delete`. That the key be absent is none: there would be nothing to delete.
#[derive(Debug, Args)]
#[group(id = "delete_condition", multiple = false)]
pub(crate) struct DeleteCondition {
    /// Only if the key is there: another way to say what `delete` says anyhow, for scripts that name their conditions
    #[arg(long = "if-present")]
    present: bool,
    /// Only if the key's value is this, byte for byte
    #[arg(long = "if-equals", value_name = "VALUE", value_parser = bytes_parser(), allow_hyphen_values = true)]
    equals: Option<Bytes>,
}

impl SetCondition {
    pub(crate) fn cond(&self) -> Cond {
        if self.absent { Cond::IfAbsent } else { cond(self.present, self.equals.as_ref()) }
    }
}

impl DeleteCondition {
    pub(crate) fn cond(&self) -> Cond {
        cond(self.present, self.equals.as_ref())
    }
}

fn cond(present: bool, equals: Option<&Bytes>) -> Cond {
    match equals {
        Some(value) => Cond::IfEquals(value.clone()),
        None if present => Cond::IfPresent,
        None => Cond::Always,
    }
}
