//! The text dialect, for `nc` and people: lines cut from a stream, commands read off lines, replies printed on one line each.
//!
//! It knows how things look and nothing of what they do. Every printed key and value can be pasted back into a command.

mod answer;
mod http;
mod line;
mod parse;
mod queued;
mod reads;
mod word;

pub use answer::{Answer, MissingBucket, NIL, write_end, write_error, write_help, write_ok, write_queued};
pub use line::{LineCodec, LineEnd, LineEvent, MAX_LINE};
pub use parse::{TextCommand, parse};
pub use queued::{Queued, QueuedAnswers};
pub use reads::Reads;
pub use word::{value_len, write_key, write_value};

use crate::Path;

/// The bucket in which a text connection starts; the first SET makes it.
#[must_use]
pub fn default_bucket() -> Path {
    Path::from_static_wire(b"\x01\x00\x07default")
}
