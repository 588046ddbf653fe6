//! The wire protocol of boltkv: requests, replies, binary frames and text lines.
//!
//! Everything here is a pure codec: bytes in, values out, and back. No sockets, no clocks, no runtime, and nothing that
//! decides what a command *does*; that is the server's executor. Nothing a peer sends can make this crate panic or reserve
//! memory for bytes that have not arrived.
//!
//! # The rooms
//! | module | what it holds |
//! | --- | --- |
//! | [`Request`] | what a client can ask for, by what becomes of it, the same in every dialect; to and from a frame |
//! | [`Reply`] | what the server says, and [`EntriesWriter`], which writes a scan's frames in place |
//! | [`Watch`], [`Changes`] | what is watched, and what has changed of it |
//! | [`Txn`], [`TxnResults`] | several requests as one, and what came of each |
//! | [`ErrorReply`], [`ErrorCode`] | what the server says when it cannot |
//! | [`FrameCodec`], [`Frame`] | the binary dialect's frames, cut from a stream of bytes |
//! | [`text`] | the text dialect: lines, words, commands, and replies on one line |
//! | [`resp`] | the Redis dialect: arrays of words, replies in RESP2 and RESP3, its commands |
//! | [`command`] | the commands as data: feeds parsing, help, completion and documentation |
//! | [`Dialect`] | which dialect a connection speaks, told by its first byte |
//!
//! The wire itself is described in `docs/protocol.md`.

mod changes;
pub mod command;
mod detach;
mod dialect;
mod entries;
mod error;
mod escape;
mod field;
mod figures;
mod frame;
mod hello_reply;
mod op;
mod path;
mod range;
mod reply;
mod request;
pub mod resp;
mod results;
mod scan;
pub mod text;
mod token;
mod watch;

pub use changes::{Change, ChangeKind, Changes};
pub use dialect::Dialect;
pub use entries::{EntriesWriter, Entry, EntryKind, decode_entries};
pub use error::{ErrorCode, ErrorReply};
pub use field::{DecodeError, EncodeError};
pub use frame::{
    DEFAULT_MAX_FRAME, FLAG_MORE, FLAG_REPLY, FLAG_SNAPSHOT, Frame, FrameCodec, FrameError, FrameHeader, HEADER_LEN,
    INITIAL_CREDIT, MAX_FRAME_BEFORE_HELLO, MAX_FRAME_LIMIT,
};
pub use hello_reply::HelloReply;
pub use op::{BucketOp, Op};
pub use path::{Path, PathError};
pub use range::{KeyRange, LowBound};
pub use reply::{Expect, Reply};
pub use request::{
    Cond, ExpireCond, ExpireTo, Expiry, Hello, MAGIC, MAX_TXN_PARTS, OperatorRequest, ReadRequest, Request,
    SessionRequest, SnapshotRead, SnapshotRequest, StreamRequest, Txn, TxnBuilder, TxnCondition, TxnConditions,
    TxnError, TxnRequests, VERSION, WriteRequest,
};
pub use results::{TxnPart, TxnResults, TxnResultsWriter};
pub use scan::{Scan, ScanMode, ScanOptions};
pub use token::Token;
pub use watch::{Watch, WatchFrom, WatchPosition};

/// The time of what never expires, where the wire tells when something does.
pub const NEVER: u64 = u64::MAX;
