//! A load generator for boltkv and its peers: the same requests, at the same pace, over each server's own protocol.
//!
//! It drives a connection with as little as it can, so that the server is measured and not the generator: a thread has
//! one `epoll` and many sockets, requests are written in batches, and of replies only as much is looked at as tells what
//! they are. There is no runtime and no future a request.
//!
//! Latencies are those of a caller who does not wait for others. In an open loop ([`Work::rate`]) they count from when a
//! request was *due*, not from when it could be sent, so that a server which stalls is charged with all whom it kept
//! waiting.
//!
//! # The rooms
//! | module | what it holds |
//! | --- | --- |
//! | [`Work`], [`Mix`], [`Op`] | what is to be asked, how often, of which keys |
//! | [`Server`], [`Target`], [`Dialect`] | who is asked, and a place there of our own: made, and removed again |
//! | [`run`] | asks, and says what it took: [`Measured`] |
//! | [`plot`] | draws what was measured |
//! | `wire` | the protocols, a file each; they know nothing of sockets or time |
//! | `steal` | what the host of a virtual machine has withheld meanwhile |
//! | `connection`, `worker`, `pace` | sockets, the loop over them, and when a request is due |

mod connection;
mod error;
mod input;
mod keys;
mod measured;
mod mix;
mod pace;
mod plot;
mod run;
mod series;
mod server;
mod steal;
mod wire;
mod work;
mod worker;

pub use error::Error;
pub use keys::Order;
pub use measured::{Measured, OfOp};
pub use mix::{Mix, MixError, Op};
pub use plot::plot;
pub use run::{Live, run};
pub use series::{Series, Slice};
pub use server::{Dialect, Server, Target};
pub use steal::NOTABLE_STEAL;
pub use work::{Limit, MOST_MEMORY, Work};
