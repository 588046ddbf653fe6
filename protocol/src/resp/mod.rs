//! The Redis dialect: requests as arrays of bulk strings or as inline lines, replies in RESP2 or RESP3.
//!
//! It knows how things look and nothing of what they do. Requests are flat arrays: nothing nests, so nothing recurses on what
//! a client sends.
//!
//! - [`RespCodec`]: requests, cut from a stream; [`Args`]: the words of one
//! - [`Writer`]: replies, in the version of the protocol that the client asked for
//! - [`names`]: keys and fields of no bytes
//! - [`RESP_COMMANDS`], [`SUBCOMMANDS`]: the commands as data

mod args;
mod command;
mod decode;
mod inline;
pub mod names;
mod spec;
mod subcommands;
mod table;
mod writer;

pub use args::Args;
pub use command::{Group, Kind, RespCommand};
pub use decode::{MAX_ARGS, MAX_INLINE, ProtocolError, RespCodec};
pub use spec::{Flags, Keys, Spec, find};
pub use subcommands::{NoSubcommand, SUBCOMMANDS, Subcommand};
pub use table::RESP_COMMANDS;
pub use writer::{Version, Writer, write_error_line};
