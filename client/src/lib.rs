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
//! users.set("ada", "Lovelace").await?; // on the server's disk, once this returns
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
//! # Many requests at once
//!
//! A request that is awaited before the next one is sent waits for the way to the server, and a write for its disk as well.
//! Requests that are in flight together share both: the server commits together what arrives together. So load much with a few
//! hundred in flight (`examples/bulk_load.rs` is the whole program):
//!
//! ```no_run
//! use boltkv_client::{Bucket, Error};
//! use futures_util::{StreamExt as _, TryStreamExt as _, stream};
//!
//! /// Stores all of it, or ends with the first error.
//! async fn load(bucket: &Bucket, entries: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
//!     stream::iter(entries)
//!         .map(|(key, value)| async move { bucket.set(key, value).await.map(drop) })
//!         .buffer_unordered(256)
//!         .try_collect()
//!         .await
//! }
//! ```
//!
//! # Buckets within buckets
//!
//! ```no_run
//! # async fn example(client: boltkv_client::Client) -> Result<(), boltkv_client::Error> {
//! let eu = client.bucket("users/eu")?; // `eu` within `users`
//! eu.create_if_missing().await?; // and `users`, if it is missing too
//! eu.set("ada", "Lovelace").await?;
//!
//! let mut within = client.bucket("users")?.buckets().stream().await?;
//! while let Some(bucket) = within.next().await {
//!     println!("{}", bucket?.key.escape_ascii());
//! }
//! client.bucket("users")?.delete_bucket().await?; // with all that is in it
//! # Ok(())
//! # }
//! ```
//!
//! # All or nothing
//!
//! ```no_run
//! # async fn example(client: boltkv_client::Client) -> Result<(), boltkv_client::Error> {
//! let (users, names) = (client.bucket("users")?, client.bucket("names")?);
//! let added = client
//!     .transaction()
//!     .if_absent(&names, "lovelace")
//!     .set(&names, "lovelace", "1815")
//!     .set(&users, "1815", "Ada Lovelace")
//!     .commit()
//!     .await;
//! match added {
//!     Ok(done) => println!("both are there, by transaction {}", done.txid),
//!     Err(error) => println!("nothing was done, because of {:?}: {error}", error.failed_part()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # One client for all tasks
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = boltkv_client::Client::connect("127.0.0.1:7878").await?;
//! let mut tasks = Vec::new();
//! for number in 0..8_u32 {
//!     let bucket = client.bucket("jobs")?; // a clone of the client is in it
//!     tasks.push(tokio::spawn(async move { bucket.set(number.to_string(), "done").await }));
//! }
//! for task in tasks {
//!     task.await??;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What can go wrong
//!
//! ```no_run
//! # async fn example(bucket: boltkv_client::Bucket) {
//! use boltkv_client::ErrorCode;
//!
//! match bucket.set("key", "value").await {
//!     Ok(written) => println!("stored by transaction {}", written.txid),
//!     Err(error) if error.code() == Some(ErrorCode::BucketNotFound) => println!("create the bucket first"),
//!     Err(error) if error.is_outcome_unknown() => println!("stored or not: read it to find out: {error}"),
//!     Err(error) if error.is_passing() => println!("not stored; try again later: {error}"),
//!     Err(error) => println!("not stored: {error}"),
//! }
//! # }
//! ```
//!
//! # What to expect
//! - A [`Client`] is cheap to clone and to share. All clones send on one connection, with many requests in flight at once; ask
//!   concurrently to be fast. Each scan has a connection of its own while it runs, so that a slow reader holds back nobody.
//! - Every request ends: with an answer, or with an error when its [timeout](ClientBuilder::timeout) is over. Every future may
//!   be dropped; each says what that leaves behind.
//! - A connection that is lost is made anew for the next request. A *read* that was under way is sent once more by itself. A
//!   *write* never is: it fails with [`Error::OutcomeUnknown`], because it may have been done. A condition makes it safe to
//!   send again: see [`Bucket::set_if`]. What was certainly not done is another matter: what was never sent, and what the
//!   server refused because it is stopping, is sent once more, also a write.
//! - While the server is away, one attempt at a time is made to reach it, with pauses that grow to a second, and everybody who
//!   waits is told why it failed: [`Error::Connect`], [`Error::NoAnswer`].
//! - Writes awaited one after the other are done in that order. Of requests in flight together nothing is promised but that the
//!   writes are applied in the order in which they were sent.
//!
//! # The rooms
//! `client`, `bucket`, `expiry`, `scan`, `delete_range`, `transaction`, `snapshot`, `backup`, `shrink`, `watch` are what a caller sees.
//! Under them `frames` is a stream as it arrives, `link` knows which connection a request takes, `shared` is the one that
//! requests share, made anew when it is lost; `connection` is one connection: HELLO, a task that writes, a task that reads, and what is in flight.

mod backup;
mod bucket;
mod bucket_stat;
mod builder;
mod client;
mod connection;
mod delete_range;
mod entries;
mod error;
mod expiry;
mod frames;
mod link;
mod scan;
mod shared;
mod shrink;
mod snapshot;
mod tls;
mod transaction;
mod watch;

pub use backup::Backup;
pub use boltkv_protocol::{
    Change, ChangeKind, Cond, Entry, EntryKind, ErrorCode, ErrorReply, ExpireCond, ExpireTo, Expiry, Path, PathError,
    Token, TxnError, TxnPart, WatchPosition,
};
pub use bucket::{Bucket, Deleted, Incremented, Sequence, Written};
pub use bucket_stat::BucketStat;
pub use builder::ClientBuilder;
pub use client::Client;
pub use delete_range::{DeleteRange, RangeDeleted};
pub use entries::Entries;
pub use error::{Error, Loss};
pub use expiry::{ExpirySet, Lifetime};
pub use scan::Scan;
pub use shrink::{Shrinking, Shrunk};
pub use snapshot::Snapshot;
pub use tls::{Tls, TlsBuilder, TlsError};
pub use transaction::{Committed, Transaction, TransactionResult};
pub use watch::{Watch, Watched, Watching};
