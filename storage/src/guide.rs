//! Small programs to begin with. Each is a test; what only makes it one, such as a folder for its file, is not shown.
//!
//! # Counting words
//!
//! Values are bytes. A number is kept as its own, big-endian where keys are to be in the order of the numbers.
//!
//! ```
//! use boltkv_storage::{Db, Result};
//!
//! fn count_words(db: &Db, text: &str) -> Result<()> {
//!     db.update(|tx| {
//!         let mut words = tx.create_bucket_if_not_exists("words")?;
//!         for word in text.split_whitespace() {
//!             let seen = words.get(word)?.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
//!             words.put(word, (seen + 1).to_be_bytes())?;
//!         }
//!         Ok(())
//!     })
//! }
//!
//! fn main() -> Result<()> {
//! #   let folder = tempfile::tempdir().unwrap();
//! #   let path = folder.path().join("words.db");
//!     let db = Db::open(path)?;
//!     count_words(&db, "one fish two fish")?;
//!
//!     let tx = db.begin()?;
//!     for entry in &tx.bucket("words")? {
//!         let (word, count) = entry?;
//!         println!("{}: {}", word.escape_ascii(), count.unwrap_or_default().escape_ascii());
//!     }
//! #   assert_eq!(tx.bucket("words")?.get("fish")?, Some(&2_u64.to_be_bytes()[..]));
//!     Ok(())
//! }
//! ```
//!
//! # Buckets in buckets
//!
//! ```
//! # fn main() -> boltkv_storage::Result<()> {
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! db.update(|tx| {
//!     let mut users = tx.create_bucket("users")?;
//!     let mut eu = users.create_bucket("eu")?;
//!     eu.put("ada", "Lovelace")?;
//!     eu.put("alan", "Turing")?;
//!     users.create_bucket("us")?.put("grace", "Hopper")
//! })?;
//!
//! let tx = db.begin()?;
//! for region in tx.bucket("users")?.buckets() {
//!     let (name, region) = region?;
//!     println!("{}: {} users", name.escape_ascii(), region.count()?);
//! }
//! let eu = tx.bucket_path(["users", "eu"])?;
//! for user in eu.prefix("a") {
//!     let (key, value) = user?;
//!     println!("{} {}", key.escape_ascii(), value.unwrap_or_default().escape_ascii());
//! }
//! # assert_eq!(eu.prefix("a").count(), 2);
//! # Ok(()) }
//! ```
//!
//! # Reading one bucket and writing another
//!
//! What was read of a transaction is in the way of writing to it, and two of its buckets are not lent for writing at once.
//! A [`BucketHandle`](crate::BucketHandle) lends nothing, and can be copied: with handles the buckets take turns, and
//! each shows what the transaction has changed so far. A [`Walk`](crate::Walk) goes through one of them meanwhile.
//!
//! ```
//! # fn main() -> boltkv_storage::Result<()> {
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! # db.update(|tx| { let mut b = tx.create_bucket("users")?; b.put("1", "ada")?; b.put("2", "alan") })?;
//! db.update(|tx| {
//!     let by_name = tx.create_bucket("users by name")?.handle();
//!     let users = tx.bucket_mut("users")?.handle();
//!     tx.at_mut(users)?.put("3", "grace")?;
//!
//!     let mut walk = users.walk(..);
//!     while let Some((id, name)) = walk.next(tx)? {
//!         if let Some(name) = name {
//!             tx.at_mut(by_name)?.put(name, id)?;
//!         }
//!     }
//!     Ok(())
//! })?;
//! # assert_eq!(db.begin()?.bucket("users by name")?.get("grace")?, Some(&b"3"[..]));
//! # Ok(()) }
//! ```
//!
//! A walk looks its place up again at each step. What is to be read as it was before the transaction is read faster, and
//! without a copy, from [`TxMut::snapshot`](crate::TxMut::snapshot):
//!
//! ```
//! # fn main() -> boltkv_storage::Result<()> {
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! # db.update(|tx| { let mut b = tx.create_bucket("users")?; b.put("1", "ada")?; b.put("2", "alan") })?;
//! db.update(|tx| {
//!     let before = tx.snapshot();
//!     let mut by_name = tx.create_bucket("users by name")?;
//!     for user in &before.bucket("users")? {
//!         if let (id, Some(name)) = user? {
//!             by_name.put(name, id)?;
//!         }
//!     }
//!     Ok(())
//! })?;
//! # assert_eq!(db.begin()?.bucket("users by name")?.get("alan")?, Some(&b"2"[..]));
//! # Ok(()) }
//! ```
//!
//! # Changing and deleting while going through
//!
//! ```
//! # fn main() -> boltkv_storage::Result<()> {
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! # db.update(|tx| { let mut b = tx.create_bucket("sessions")?; for (k, v) in [("a/1", "new"), ("a/2", "old"), ("b/1", "new")] { b.put(k, v)?; } Ok(()) })?;
//! db.update(|tx| {
//!     let before = tx.snapshot();
//!     let mut sessions = tx.bucket_mut("sessions")?;
//!
//!     // All that begin with the prefix get another value.
//!     for session in before.bucket("sessions")?.prefix("a/") {
//!         if let (key, Some(value)) = session? {
//!             sessions.put(key, value.to_ascii_uppercase())?;
//!         }
//!     }
//!
//!     // A cursor that can delete stands between the neighbours of what it has deleted.
//!     let mut cursor = sessions.cursor_mut();
//!     let mut entry = cursor.first()?;
//!     while let Some((_, value)) = entry {
//!         if value == Some(b"OLD") {
//!             cursor.delete()?;
//!         }
//!         entry = cursor.next()?;
//!     }
//!
//!     // Whole ranges go at once.
//!     let deleted = sessions.delete_range("b/".."b0", usize::MAX)?;
//!     assert_eq!(deleted.count, 1);
//!     Ok(())
//! })?;
//! # assert_eq!(db.begin()?.bucket("sessions")?.get("a/1")?, Some(&b"NEW"[..]));
//! # assert_eq!(db.begin()?.bucket("sessions")?.count()?, 1);
//! # Ok(()) }
//! ```
//!
//! # Errors of your own
//!
//! `update`, `view` and `batch` take closures that return this crate's [`Error`](crate::Error). With `try_` before their
//! names they take any error that one can become; an error rolls the transaction back.
//!
//! ```
//! use boltkv_storage::Db;
//!
//! fn load(db: &Db, text: &str) -> Result<u64, Box<dyn std::error::Error>> {
//!     db.try_update(|tx| {
//!         let mut prices = tx.create_bucket_if_not_exists("prices")?;
//!         let mut sum = 0;
//!         for line in text.lines() {
//!             let (name, price) = line.split_once('=').ok_or("a line without a price")?;
//!             let price: u64 = price.parse()?;
//!             prices.put(name, price.to_be_bytes())?;
//!             sum += price;
//!         }
//!         Ok(sum)
//!     })
//! }
//! # let db = boltkv_storage::Options::new().open_in_memory().unwrap();
//! # assert_eq!(load(&db, "tea=3\nmilk=2").unwrap(), 5);
//! # assert!(load(&db, "salt=much").is_err());
//! # assert!(db.begin().unwrap().bucket("prices").unwrap().get("salt").unwrap().is_none());
//! ```
//!
//! # Many threads
//!
//! A [`Db`](crate::Db) is a handle: clone it for each thread. Write transactions take turns;
//! [`Db::batch`](crate::Db::batch) puts the small ones of several threads into one commit.
//!
//! ```
//! use boltkv_storage::{Db, Result};
//!
//! fn record(db: &Db, sensor: u8) -> Result<()> {
//!     for event in 0..10_u8 {
//!         db.batch(move |tx| tx.bucket_mut("events")?.put([sensor, event], "seen"))?;
//!     }
//!     Ok(())
//! }
//!
//! # fn main() -> Result<()> {
//! # let db = boltkv_storage::Options::new().open_in_memory()?;
//! db.update(|tx| tx.create_bucket("events").map(drop))?;
//! let threads = (0..4_u8).map(|sensor| {
//!     let db = db.clone();
//!     std::thread::spawn(move || record(&db, sensor))
//! });
//! for thread in threads.collect::<Vec<_>>() {
//!     thread.join().expect("no thread panics")?;
//! }
//! # assert_eq!(db.begin()?.bucket("events")?.count()?, 40);
//! # Ok(()) }
//! ```
//!
//! # In an async program
//!
//! Reads of what is in memory take microseconds and can be done where you are; a commit waits for the disk, and belongs
//! on a thread that may wait. A [`Tx`](crate::Tx) borrows nothing and can be held over an `await`.
//!
//! ```
//! use boltkv_storage::{Db, Error, Options, Result};
//!
//! struct App {
//!     db: Db,
//! }
//!
//! impl App {
//!     async fn rename(&self, id: u64, name: String) -> Result<()> {
//!         let db = self.db.clone();
//!         let written = tokio::task::spawn_blocking(move || {
//!             db.batch(move |tx| tx.create_bucket_if_not_exists("names")?.put(id.to_be_bytes(), name))
//!         });
//!         written.await.expect("the change does not panic")
//!     }
//!
//!     fn name(&self, id: u64) -> Result<Option<String>> {
//!         self.db.view(|tx| match tx.bucket("names") {
//!             Ok(names) => Ok(names.get(id.to_be_bytes())?.map(|name| String::from_utf8_lossy(name).into_owned())),
//!             Err(Error::BucketNotFound { .. }) => Ok(None),
//!             Err(error) => Err(error),
//!         })
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//! #   fn is_send<T: Send>() {} is_send::<boltkv_storage::Tx>();
//!     let app = App { db: Options::new().open_in_memory()? };
//!     app.rename(7, "Ada".into()).await?;
//!     assert_eq!(app.name(7)?.as_deref(), Some("Ada"));
//!     Ok(())
//! }
//! ```
