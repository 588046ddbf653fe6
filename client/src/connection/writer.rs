//! The task that writes: whatever has gathered since the last write goes out in one.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::flight::Flight;
use super::stream::Output;
use crate::Loss;

/// Buffers up to this many bytes are used again.
const KEPT_CAPACITY: usize = 1024 * 1024;

pub(super) async fn run(mut output: Output, flight: Arc<Flight>) {
    let mut buffer = BytesMut::new();
    while let Some(out) = flight.take_out(buffer) {
        buffer = out;
        if buffer.is_empty() {
            flight.to_write.notified().await;
            continue;
        }
        if let Err(loss) = write(&mut output, &buffer, flight.timeout).await {
            return flight.lose(&loss);
        }
        buffer.clear();
        if buffer.capacity() > KEPT_CAPACITY {
            buffer = BytesMut::new();
        }
    }
    // The connection ends; that the server may have ended it first is no news.
    drop(output.shutdown().await);
}

/// Writes it all, or finds within the time of a request that the server does not take it.
async fn write(output: &mut Output, bytes: &[u8], limit: Duration) -> Result<(), Loss> {
    let sending = async {
        output.write_all(bytes).await?;
        // What encrypts keeps some back until it is told that this is all.
        output.flush().await
    };
    match timeout(limit, sending).await {
        Ok(written) => Ok(written?),
        Err(_) => Err(Loss::Timeout(limit)),
    }
}
