//! Replies as lines. Every reply, or every entry of one, is one line, whatever bytes it holds.

use bytes::{BufMut, BytesMut};

use super::word::{write_key, write_value};
use crate::command::COMMANDS;
use crate::{Entry, EntryKind, ErrorCode, ErrorReply, NEVER, Path, Reply};

/// How the reply to a text command is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// `OK`
    Done,
    /// The value, or `(nil)`.
    Value,
    /// `1` or `0`.
    Exists,
    /// `OK`, or `(nil)` where there was nothing.
    Deleted,
    /// Key and value a line, then `END`.
    Entries,
    /// A bucket's name a line, then `END`.
    Names,
    /// A number.
    Count,
    /// What a number is now.
    Number,
    /// How many were removed, and `MORE` where there are more.
    DeletedRange,
    /// `1` or `0`: whether it was changed when a key expires.
    ExpirySet,
    /// In how many seconds a key expires; `-1` if never, `-2` where it is not there.
    Seconds,
    /// The same, in milliseconds.
    Millis,
    /// A name and its value a line, then `END`.
    Figures,
    /// `name=value` for all of a row, a row a line, then `END`.
    Rows,
    /// `PONG`
    Pong,
}

/// What a bucket that is not there means to a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MissingBucket {
    /// An error, as everywhere else.
    Error,
    /// Emptiness: the connection's bucket is the default one, which the first SET makes.
    Empty,
}

impl Answer {
    /// Prints a whole reply with its line end. A stream is printed entry by entry with [`write_entry`](Self::write_entry) and
    /// closed with [`write_end`].
    pub fn write<B: AsRef<[u8]>>(self, reply: &Reply<B>, missing: MissingBucket, out: &mut BytesMut) {
        match reply {
            Reply::Error(error) => match self.emptiness(error.code, missing) {
                Some(line) => write_line(line, out),
                None => write_error(error, out),
            },
            Reply::Value(_) if self == Self::Exists => write_line("1", out),
            Reply::Value(value) => {
                write_value(value.as_ref(), out);
                out.put_u8(b'\n');
            }
            Reply::Deleted { existed: false, .. } => write_line(NIL, out),
            Reply::Hello(_) | Reply::Written { .. } | Reply::Deleted { .. } | Reply::Closed => write_ok(out),
            Reply::Entries(entries) => {
                for entry in entries {
                    self.write_entry(entry, out);
                }
                write_end(out);
            }
            Reply::Count(count) => write_line(&count.to_string(), out),
            Reply::Number { value, .. } => write_line(&value.to_string(), out),
            Reply::Sequence { sequence, .. } => write_line(&sequence.to_string(), out),
            Reply::DeletedRange { deleted, more, .. } => {
                let more = if *more { " MORE" } else { "" };
                write_line(&format!("{deleted}{more}"), out);
            }
            Reply::ExpirySet { changed, .. } => write_line(if *changed { "1" } else { "0" }, out),
            Reply::ExpiryTime { at, now } => self.write_time_left(*at, *now, out),
            Reply::Stats(figures) => write_stats(figures, out),
            Reply::Rows(rows) => write_rows(rows, out),
            Reply::Pong(_) => write_line("PONG", out),
            // Its results are printed one by one, by `QueuedAnswers`, which knows what each line asks for. Some have no line.
            Reply::Txn { .. }
            | Reply::Piece(_)
            | Reply::BackedUp { .. }
            | Reply::Snapshot { .. }
            | Reply::Shrinking { .. }
            | Reply::Changes(_)
            | Reply::Shrunk { .. } => {}
        }
    }

    /// Seconds are rounded to the nearest.
    fn write_time_left(self, at: u64, now: u64, out: &mut BytesMut) {
        let left = at.saturating_sub(now);
        match self {
            _ if at == NEVER => write_line("-1", out),
            Self::Seconds => write_line(&(left / 1_000 + left % 1_000 / 500).to_string(), out),
            _ => write_line(&left.to_string(), out),
        }
    }

    /// Prints one entry of a stream with its line end.
    pub fn write_entry<B: AsRef<[u8]>>(self, entry: &Entry<B>, out: &mut BytesMut) {
        let key = entry.key.as_ref();
        match entry.kind {
            EntryKind::Value => {
                write_key(key, out);
                out.put_u8(b' ');
                write_value(entry.value.as_ref(), out);
            }
            EntryKind::Bucket => self.write_bucket(key, out),
            // No value reads like this: one that starts with `ERR ` is quoted.
            EntryKind::TooLarge => {
                write_key(key, out);
                let size = entry.value_size().unwrap_or_default();
                out.put_slice(format!(" ERR {} {size} bytes", ErrorCode::ValueTooLarge).as_bytes());
            }
        }
        out.put_u8(b'\n');
    }

    /// A bucket's name, as it stands in a path. Among entries a slash tells it from a key.
    fn write_bucket(self, name: &[u8], out: &mut BytesMut) {
        let mut text = Vec::with_capacity(name.len() + 1);
        Path::put_name(name, &mut text);
        if self != Self::Names {
            text.push(b'/');
        }
        write_key(&text, out);
    }

    /// What is printed instead of an error that only says that nothing is there.
    fn emptiness(self, code: ErrorCode, missing: MissingBucket) -> Option<&'static str> {
        let absent = match code {
            ErrorCode::KeyNotFound => true,
            ErrorCode::BucketNotFound => missing == MissingBucket::Empty,
            // A value that is too large to send is there all the same.
            ErrorCode::ValueTooLarge if self == Self::Exists => return Some("1"),
            _ => false,
        };
        match self {
            Self::Value | Self::Deleted if absent => Some(NIL),
            Self::Exists | Self::Count | Self::DeletedRange | Self::ExpirySet if absent => Some("0"),
            Self::Seconds | Self::Millis if absent => Some("-2"),
            Self::Entries if absent => Some("END"),
            _ => None,
        }
    }
}

/// What stands for a value that is not there.
pub const NIL: &str = "(nil)";

fn write_line(line: &str, out: &mut BytesMut) {
    out.put_slice(line.as_bytes());
    out.put_u8(b'\n');
}

/// Prints `OK`.
pub fn write_ok(out: &mut BytesMut) {
    write_line("OK", out);
}

/// Prints `QUEUED`: the line will be done with its transaction.
pub fn write_queued(out: &mut BytesMut) {
    write_line("QUEUED", out);
}

/// Prints the `END` of a stream.
pub fn write_end(out: &mut BytesMut) {
    write_line("END", out);
}

/// Prints a name and its value a line, then `END`.
fn write_stats<B: AsRef<[u8]>>(figures: &[(B, B)], out: &mut BytesMut) {
    for (name, value) in figures {
        write_key(name.as_ref(), out);
        out.put_u8(b' ');
        write_value(value.as_ref(), out);
        out.put_u8(b'\n');
    }
    write_end(out);
}

/// Prints a row a line, then `END`.
fn write_rows<B: AsRef<[u8]>>(rows: &[Vec<(B, B)>], out: &mut BytesMut) {
    for row in rows {
        for (index, (name, value)) in row.iter().enumerate() {
            if index > 0 {
                out.put_u8(b' ');
            }
            write_key(name.as_ref(), out);
            out.put_u8(b'=');
            write_key(value.as_ref(), out);
        }
        out.put_u8(b'\n');
    }
    write_end(out);
}

/// Prints `ERR CODE_NAME what and why`, on one line whatever the message holds.
pub fn write_error(error: &ErrorReply, out: &mut BytesMut) {
    out.put_slice(format!("ERR {} ", error.code).as_bytes());
    for character in error.message.chars() {
        if character.is_control() {
            out.put_slice(character.escape_default().to_string().as_bytes());
        } else {
            out.put_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.put_u8(b'\n');
}

/// Prints the commands that this version has, one a line, then `END`.
pub fn write_help(out: &mut BytesMut) {
    let lines = COMMANDS.iter().filter_map(|command| {
        let usage = command.usage()?;
        let alias = command.text?.alias.map(|alias| format!(" ({alias})")).unwrap_or_default();
        Some(format!("{usage:<26} {}{alias}", command.summary))
    });
    for line in lines {
        write_line(&line, out);
    }
    write_end(out);
}
