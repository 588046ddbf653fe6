//! What is said where a command cannot be done.

use std::borrow::Cow;

use boltkv_protocol::{ErrorCode, ErrorReply};
use boltkv_storage::Error;

use super::super::refusal::refusal;

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What it is counted as.
    pub(crate) code: ErrorCode,
    /// What the client is told: a word in capitals, by which programs know what it is, and the rest for people.
    pub(crate) line: Cow<'static, str>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, line: impl Into<Cow<'static, str>>) -> Self {
        Self { code, line: line.into() }
    }

    pub(super) const fn say(code: ErrorCode, line: &'static str) -> Self {
        Self { code, line: Cow::Borrowed(line) }
    }

    pub(crate) const fn wrong_type() -> Self {
        let line = "WRONGTYPE Operation against a key holding the wrong kind of value";
        Self::say(ErrorCode::IncompatibleValue, line)
    }

    pub(crate) const fn syntax() -> Self {
        Self::say(ErrorCode::Malformed, "ERR syntax error")
    }

    pub(crate) const fn not_an_integer() -> Self {
        Self::say(ErrorCode::IncompatibleValue, "ERR value is not an integer or out of range")
    }

    pub(super) const fn not_a_float() -> Self {
        Self::say(ErrorCode::IncompatibleValue, "ERR value is not a valid float")
    }

    pub(super) const fn out_of_range() -> Self {
        Self::say(ErrorCode::NumberOutOfRange, "ERR value is out of range")
    }

    /// A whole number is none of those that can be.
    pub(super) fn not_between(least: i64, most: i64) -> Self {
        let line = format!("ERR value is out of range, value must between {least} and {most}");
        Self::new(ErrorCode::NumberOutOfRange, line)
    }

    pub(super) const fn overflow() -> Self {
        Self::say(ErrorCode::NumberOutOfRange, "ERR increment or decrement would overflow")
    }

    pub(super) const fn string_too_long() -> Self {
        Self::say(ErrorCode::ValueTooLarge, "ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    }

    pub(super) const fn no_such_key() -> Self {
        Self::say(ErrorCode::KeyNotFound, "ERR no such key")
    }

    /// A command that is in the table, and not in the file that has those of its kind.
    pub(super) fn unsupported(name: &str) -> Self {
        Self::new(ErrorCode::Unsupported, format!("ERR {name} is not supported"))
    }

    pub(crate) fn wrong_number_of_arguments(name: &str) -> Self {
        let line = format!("ERR wrong number of arguments for '{}' command", name.to_lowercase());
        Self::new(ErrorCode::Malformed, line)
    }
}

/// In the words of this dialect, whatever it was that refused.
impl From<ErrorReply> for Failure {
    fn from(error: ErrorReply) -> Self {
        let ErrorReply { code, message, .. } = error;
        let line = match code {
            ErrorCode::IncompatibleValue => return Self::wrong_type(),
            ErrorCode::Unauthenticated => format!("NOAUTH {message}"),
            ErrorCode::Forbidden => format!("NOPERM {message}"),
            ErrorCode::ReadOnly => format!("READONLY {message}"),
            code => format!("ERR {} {message}", code.name()),
        };
        Self::new(code, line)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        refusal(error).into()
    }
}
