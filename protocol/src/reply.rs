//! What the server says: one [`Reply`] for every dialect, and its binary form both ways.
//!
//! It is generic over how it holds bytes: the server replies with slices of the mapped file (`Reply<&[u8]>`), which go
//! straight into the connection's buffer; the client gets slices of what it received (`Reply<Bytes>`).

use bytes::{BufMut, Bytes, BytesMut};

use crate::changes::Changes;
use crate::entries::{Entry, decode_entries, put_entries};
use crate::error::{ErrorCode, ErrorReply};
use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};
use crate::figures::{decode_rows, decode_stats, encode_rows, encode_stats};
use crate::frame::{FLAG_MORE, FLAG_REPLY, Frame, HEADER_LEN, write_frame};
use crate::hello_reply::HelloReply;
use crate::results::TxnResults;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<B = Bytes> {
    /// To HELLO: what the server agrees to.
    Hello(HelloReply),
    /// To PING: its bytes.
    Pong(B),
    /// To GET: the value.
    Value(B),
    /// To SET and to BUCKET requests that write.
    Written {
        /// The transaction that wrote it.
        txid: u64,
    },
    /// To DELETE.
    Deleted {
        /// The transaction that did it.
        txid: u64,
        /// Whether the key was there.
        existed: bool,
    },
    /// To SCAN and BUCKET LIST: the entries of one frame.
    Entries(Vec<Entry<B>>),
    /// To SCAN and BUCKET LIST where only the count was asked for.
    Count(u64),
    /// To INCREMENT.
    Number {
        /// The transaction that did it.
        txid: u64,
        /// The number that the key's value is now.
        value: i64,
    },
    /// To BUCKET `NEXT_SEQUENCE`.
    Sequence {
        /// The transaction that did it.
        txid: u64,
        /// The bucket's sequence now.
        sequence: u64,
    },
    /// To `DELETE_RANGE`.
    DeletedRange {
        /// The transaction that did it.
        txid: u64,
        /// How many values were removed.
        deleted: u64,
        /// Whether a limit, the request's or the server's, stopped it: there are more.
        more: bool,
    },
    /// To EXPIRE.
    ExpirySet {
        /// The transaction that did it.
        txid: u64,
        /// Whether the key was there, and the condition held; to never: and it did expire before.
        changed: bool,
    },
    /// To EXPIRETIME.
    ExpiryTime {
        /// When the key expires, in milliseconds since 1970; [`NEVER`](crate::NEVER) if it does not.
        at: u64,
        /// What time it is for the server.
        now: u64,
    },
    /// To STATS: names and values, as text.
    Stats(Vec<(B, B)>),
    /// To CLIENT LIST and SLOWLOG GET: rows of names and values, as text.
    Rows(Vec<Vec<(B, B)>>),
    /// To TXN.
    Txn {
        /// The transaction that did it; for one that only reads, the one whose state it saw.
        txid: u64,
        /// What came of each request.
        results: TxnResults,
    },
    /// To BACKUP: the file's next bytes. Another frame always follows.
    Piece(B),
    /// To BACKUP, after the last piece.
    BackedUp {
        /// How many bytes the file has.
        total: u64,
        /// The CRC-32C of all of them.
        crc32c: u32,
    },
    /// To SNAPSHOT OPEN.
    Snapshot {
        /// The id by which requests name it; never used again.
        id: u64,
        /// The transaction whose state it is.
        txid: u64,
        /// How long it is kept without being used, in milliseconds.
        lease_ms: u32,
    },
    /// To SNAPSHOT CLOSE.
    Closed,
    /// To SHRINK: how far it is. Another frame always follows.
    Shrinking {
        /// Pages that were moved so far.
        moved: u64,
        /// Pages that are known to be left; more may be found.
        left: u64,
    },
    /// To SHRINK, at the end.
    Shrunk {
        /// Bytes that the file had before.
        before: u64,
        /// Bytes that it has now.
        after: u64,
        /// Pages that were moved.
        moved: u64,
    },
    /// To WATCH. Another frame always follows.
    Changes(Changes<B>),
    /// To anything.
    Error(ErrorReply),
}

/// Which shape a successful reply has; told by the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expect {
    /// [`Reply::Hello`]
    Hello,
    /// [`Reply::Pong`]
    Pong,
    /// [`Reply::Value`]
    Value,
    /// [`Reply::Written`]
    Written,
    /// [`Reply::Deleted`]
    Deleted,
    /// [`Reply::Entries`], in any number of frames
    Entries,
    /// [`Reply::Count`]
    Count,
    /// [`Reply::Number`]
    Number,
    /// [`Reply::Sequence`]
    Sequence,
    /// [`Reply::DeletedRange`]
    DeletedRange,
    /// [`Reply::ExpirySet`]
    ExpirySet,
    /// [`Reply::ExpiryTime`]
    ExpiryTime,
    /// [`Reply::Stats`]
    Stats,
    /// [`Reply::Rows`]
    Rows,
    /// [`Reply::Txn`]
    Txn,
    /// [`Reply::Piece`] in any number of frames, then [`Reply::BackedUp`]
    Backup,
    /// [`Reply::Snapshot`]
    Snapshot,
    /// [`Reply::Closed`]
    Closed,
    /// [`Reply::Shrinking`] in any number of frames, then [`Reply::Shrunk`]
    Shrink,
    /// [`Reply::Changes`] in any number of frames
    Watch,
}

impl Reply<Bytes> {
    /// Reads a reply off a frame. Bytes after the fields it knows are ignored.
    ///
    /// # Errors
    /// A frame that is no reply, or whose body does not have the shape that is due.
    pub fn decode(expect: Expect, frame: Frame) -> Result<Self, DecodeError> {
        if !frame.is_reply() {
            return Err(DecodeError::NotAReply);
        }
        if frame.has_more() && ErrorCode::from_u8(frame.op).is_none() {
            let mut fields = Fields::new(frame.body.clone());
            match expect {
                Expect::Backup => return Ok(Self::Piece(fields.bytes32("piece")?)),
                Expect::Shrink => {
                    return Ok(Self::Shrinking { moved: fields.u64("moved")?, left: fields.u64("left")? });
                }
                _ => {}
            }
        }
        decode_body(expect, frame.op, frame.body)
    }
}

/// Reads a reply of this status off its body.
pub(crate) fn decode_body(expect: Expect, status: u8, body: Bytes) -> Result<Reply, DecodeError> {
    if let Some(code) = ErrorCode::from_u8(status) {
        return decode_error(code, body).map(Reply::Error);
    }
    let mut fields = Fields::new(body);
    Ok(match expect {
        Expect::Hello => Reply::Hello(HelloReply::decode(&mut fields)?),
        Expect::Pong => Reply::Pong(fields.into_rest()),
        Expect::Value => Reply::Value(fields.bytes32("value")?),
        Expect::Written => Reply::Written { txid: fields.u64("txid")? },
        Expect::Deleted => Reply::Deleted { txid: fields.u64("txid")?, existed: fields.bool("existed")? },
        Expect::Entries => Reply::Entries(decode_entries(fields.into_rest())?),
        Expect::Count => Reply::Count(fields.u64("count")?),
        Expect::Number => Reply::Number { txid: fields.u64("txid")?, value: fields.i64("value")? },
        Expect::Sequence => Reply::Sequence { txid: fields.u64("txid")?, sequence: fields.u64("sequence")? },
        Expect::DeletedRange => Reply::DeletedRange {
            txid: fields.u64("txid")?,
            deleted: fields.u64("deleted")?,
            more: fields.bool("more")?,
        },
        Expect::ExpirySet => Reply::ExpirySet { txid: fields.u64("txid")?, changed: fields.bool("changed")? },
        Expect::ExpiryTime => Reply::ExpiryTime { at: fields.u64("at")?, now: fields.u64("now")? },
        Expect::Stats => Reply::Stats(decode_stats(&mut fields)?),
        Expect::Rows => Reply::Rows(decode_rows(&mut fields)?),
        Expect::Txn => Reply::Txn { txid: fields.u64("txid")?, results: TxnResults::decode(&mut fields)? },
        Expect::Backup => Reply::BackedUp { total: fields.u64("total")?, crc32c: fields.u32("crc32c")? },
        Expect::Snapshot => {
            Reply::Snapshot { id: fields.u64("snapshot")?, txid: fields.u64("txid")?, lease_ms: fields.u32("lease")? }
        }
        Expect::Closed => Reply::Closed,
        Expect::Watch => Reply::Changes(Changes::decode(&mut fields)?),
        Expect::Shrink => {
            Reply::Shrunk { before: fields.u64("before")?, after: fields.u64("after")?, moved: fields.u64("moved")? }
        }
    })
}

impl<B: AsRef<[u8]>> Reply<B> {
    /// Appends the reply to request `id` as one frame, the last one unless [`is_followed`](Self::is_followed). After an
    /// error `out` is as it was before. Entries of several frames are written by [`EntriesWriter`](crate::EntriesWriter).
    ///
    /// # Errors
    /// A field longer than the wire can carry.
    pub fn encode(&self, id: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        let more = if self.is_followed() { FLAG_MORE } else { 0 };
        let room = match self {
            Self::Value(bytes) | Self::Piece(bytes) => Self::value_frame_len(bytes.as_ref().len()),
            // What is not short makes its own.
            _ => HEADER_LEN + 32,
        };
        write_frame(out, id, self.status(), FLAG_REPLY | more, room, |out| self.encode_body(out))
    }

    /// Whether another reply to the same request always comes after one of this kind. Of [`Entries`](Self::Entries) only
    /// who writes them knows.
    #[must_use]
    pub const fn is_followed(&self) -> bool {
        matches!(self, Self::Piece(_) | Self::Shrinking { .. } | Self::Changes(_))
    }

    /// The number that stands for success, or for the error.
    pub(crate) const fn status(&self) -> u8 {
        match self {
            Self::Error(error) => error.code.to_u8(),
            _ => 0,
        }
    }

    /// The number of the transaction that did it, with which the replies to writes begin.
    pub(crate) const fn txid(&self) -> Option<u64> {
        match self {
            Self::Written { txid }
            | Self::Deleted { txid, .. }
            | Self::Number { txid, .. }
            | Self::Sequence { txid, .. }
            | Self::DeletedRange { txid, .. }
            | Self::ExpirySet { txid, .. }
            | Self::Txn { txid, .. } => Some(*txid),
            Self::Hello(_)
            | Self::Pong(_)
            | Self::Value(_)
            | Self::Entries(_)
            | Self::Count(_)
            | Self::ExpiryTime { .. }
            | Self::Stats(_)
            | Self::Rows(_)
            | Self::Piece(_)
            | Self::BackedUp { .. }
            | Self::Snapshot { .. }
            | Self::Closed
            | Self::Shrinking { .. }
            | Self::Shrunk { .. }
            | Self::Changes(_)
            | Self::Error(_) => None,
        }
    }

    /// The length of the frame that [`encode`](Self::encode) makes of a value or piece of `len` bytes, header included.
    #[must_use]
    pub const fn value_frame_len(len: usize) -> usize {
        HEADER_LEN + 4 + len
    }

    pub(crate) fn encode_body(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        match self {
            Self::Hello(hello) => hello.encode(out)?,
            Self::Pong(bytes) => out.put_slice(bytes.as_ref()),
            Self::Value(value) => put_bytes32(out, "value", value.as_ref())?,
            Self::Written { txid } | Self::Count(txid) => out.put_u64(*txid),
            Self::Deleted { txid, existed: flag } | Self::ExpirySet { txid, changed: flag } => {
                out.put_u64(*txid);
                out.put_u8((*flag).into());
            }
            Self::Entries(entries) => put_entries(out, entries)?,
            Self::Number { txid, value } => {
                out.put_u64(*txid);
                out.put_i64(*value);
            }
            Self::Sequence { txid: one, sequence: other } | Self::ExpiryTime { at: one, now: other } => {
                out.put_u64(*one);
                out.put_u64(*other);
            }
            Self::DeletedRange { txid, deleted, more } => {
                out.put_u64(*txid);
                out.put_u64(*deleted);
                out.put_u8((*more).into());
            }
            Self::Stats(figures) => encode_stats(figures, out)?,
            Self::Rows(rows) => encode_rows(rows, out)?,
            Self::Txn { txid, results } => {
                out.put_u64(*txid);
                results.encode(out);
            }
            Self::Piece(piece) => put_bytes32(out, "piece", piece.as_ref())?,
            Self::BackedUp { total, crc32c } => {
                out.put_u64(*total);
                out.put_u32(*crc32c);
            }
            Self::Snapshot { id, txid, lease_ms } => {
                out.put_u64(*id);
                out.put_u64(*txid);
                out.put_u32(*lease_ms);
            }
            Self::Closed => {}
            Self::Shrinking { moved, left } => {
                out.put_u64(*moved);
                out.put_u64(*left);
            }
            Self::Shrunk { before, after, moved } => {
                out.put_u64(*before);
                out.put_u64(*after);
                out.put_u64(*moved);
            }
            Self::Changes(changes) => changes.encode(out)?,
            Self::Error(error) => encode_error(error, out)?,
        }
        Ok(())
    }
}

fn decode_error(code: ErrorCode, body: Bytes) -> Result<ErrorReply, DecodeError> {
    let mut fields = Fields::new(body);
    let message = fields.str16("message")?;
    let detail = fields.bytes32("detail")?;
    Ok(ErrorReply { code, message: String::from_utf8_lossy(&message).into_owned().into(), detail })
}

fn encode_error(error: &ErrorReply, out: &mut BytesMut) -> Result<(), EncodeError> {
    let message = error.message.as_bytes();
    // Cutting a character in two is mended by the reader, who takes the message as lossy UTF-8.
    put_str16(out, "message", message.get(..usize::from(u16::MAX)).unwrap_or(message))?;
    put_bytes32(out, "detail", &error.detail)
}
