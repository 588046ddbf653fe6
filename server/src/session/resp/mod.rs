//! The Redis dialect: arrays of words in, replies out, in order.
//!
//! Each request sees what those before it did. Writes that follow one another go to the writer without waiting, so that a
//! pipeline is committed in groups; any other request waits until they are answered.
//!
//! - `call`: the codec: what becomes of each request; `own`: what it answers itself; `multi`: those between MULTI and EXEC
//! - `connection`, `client`: the commands that concern the connection, and CLIENT; `server`, `commands`, `config`, `info`:
//!   those that concern the server; `refusals`: what is said before anything is done
//! - `give`: how what only this dialect asks for is answered by the session

mod call;
mod client;
mod commands;
mod config;
mod connection;
mod give;
mod info;
mod multi;
mod own;
mod refusals;
mod server;

pub(crate) use call::RespCodec;
