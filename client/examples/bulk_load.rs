//! Loads many entries with many requests in flight, into a server that listens on 127.0.0.1:7878, and says how fast.
//!
//! `cargo run --release --package boltkv-client --example bulk_load -- 100000`

use std::time::Instant;

use boltkv_client::{Client, Error};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

/// Requests in flight. The server commits together what waits together, so that this many share one sync of its disk.
const IN_FLIGHT: usize = 256;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let entries: u32 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(10_000);
    let client = Client::connect("127.0.0.1:7878").await?;
    let bucket = client.bucket("loaded")?;
    bucket.create_if_missing().await?;

    let bucket = &bucket;
    let began = Instant::now();
    stream::iter(0..entries)
        .map(|number| async move { bucket.set(number.to_be_bytes(), format!("value {number}")).await.map(drop) })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;

    let took = began.elapsed();
    println!("{entries} entries in {took:.2?}, {:.0} a second", f64::from(entries) / took.as_secs_f64());
    println!("{} are there", bucket.scan().count().await?);
    Ok(())
}
