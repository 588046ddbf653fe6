//! The Redis dialect: requests as arrays of bulk strings or as inline lines, replies in RESP2 or RESP3.
//!
//! It knows how things look and nothing of what they do. Requests are flat arrays: nothing nests, so nothing recurses on what
//! a client sends.
//!
//! - [`RespCodec`]: requests, cut from a stream; [`Args`]: the words of one
//! - [`Writer`]: replies, in the version of the protocol that the client asked for
//! - [`RESP_COMMANDS`]: the commands as data

mod args;
mod command;
mod decode;
mod inline;
mod table;
mod writer;

pub use args::Args;
pub use command::{Flags, Group, Keys, Kind, RespCommand, Spec, find};
pub use decode::{MAX_ARGS, MAX_INLINE, ProtocolError, RespCodec};
pub use table::RESP_COMMANDS;
pub use writer::{Version, Writer, write_error_line};
