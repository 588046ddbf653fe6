//! The Redis dialect: arrays of words in, replies out, in order.
//!
//! Each request sees what those before it did. Writes that follow one another go to the writer without waiting, so that a
//! pipeline is committed in groups; any other request waits until they are answered.
//!
//! - `call`: the codec: what becomes of each request; `multi`: those between MULTI and EXEC
//! - `connection`: the commands that concern the connection; `server`: those that concern the server
//! - `give`: how what only this dialect asks for is answered by the session

mod call;
mod connection;
mod give;
mod multi;
mod server;

pub(crate) use call::RespCodec;
