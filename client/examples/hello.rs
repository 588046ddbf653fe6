//! Writes, reads and scans on a server that listens on 127.0.0.1:7878.

use boltkv_client::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect("127.0.0.1:7878").await?;
    let users = client.bucket("users/eu")?;
    users.create_if_missing().await?;
    users.set("ada", "Lovelace").await?; // on disk, once this returns

    let mut entries = users.scan().prefix("a").stream().await?;
    while let Some(entry) = entries.next().await {
        let entry = entry?;
        println!("{} = {}", entry.key.escape_ascii(), entry.value.escape_ascii());
    }
    Ok(())
}
