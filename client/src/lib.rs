//! The async client of boltkv.
//!
//! ```no_run
//! # async fn example() -> Result<(), boltkv_client::Error> {
//! use boltkv_client::{Client, Cond};
//!
//! let client = Client::connect("127.0.0.1:7878").await?;
//! let users = client.bucket("users/eu")?;
//! users.create_if_missing().await?;
//!
//! users.set("ada", "Lovelace").await?;
//! assert_eq!(users.get("ada").await?.as_deref(), Some(b"Lovelace".as_slice()));
//! users.set_if("ada", "King", Cond::IfEquals("Lovelace".into())).await?;
//!
//! let mut entries = users.scan().prefix("a").stream().await?;
//! while let Some(entry) = entries.next().await {
//!     let entry = entry?;
//!     println!("{} = {}", entry.key.escape_ascii(), entry.value.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What to expect
//! - A [`Client`] is cheap to clone and to share. All clones send on one connection, with many requests in flight at once; ask
//!   concurrently to be fast. Each scan has a connection of its own while it runs, so that a slow reader holds back nobody.
//! - Every request ends: with an answer, or with an error when its [timeout](ClientBuilder::timeout) is over.
//! - A connection that is lost is made anew for the next request. A *read* that was under way is sent once more by itself. A
//!   *write* never is: it fails with [`Error::OutcomeUnknown`], because it may have been done. A condition makes it safe to
//!   send again: see [`Bucket::set_if`].
//! - Writes awaited one after the other are done in that order. Of requests in flight together nothing is promised but that the
//!   writes are applied in the order in which they were sent.
//!
//! # The rooms
//! `client`, `bucket`, `scan` are what a caller sees. Under them `link` knows which connection a request takes, `shared` is the
//! one that requests share, made anew when it is lost; `connection` is one connection: HELLO, a task that writes, a task that
//! reads, and what is in flight.

mod bucket;
mod builder;
mod client;
mod connection;
mod entries;
mod error;
mod link;
mod scan;
mod shared;

pub use boltkv_protocol::{Cond, Entry, EntryKind, ErrorCode, ErrorReply, Path, PathError};
pub use bucket::Bucket;
pub use builder::ClientBuilder;
pub use client::Client;
pub use entries::Entries;
pub use error::{Error, Loss};
pub use scan::Scan;
