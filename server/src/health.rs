//! Whether the server can still write. Once it cannot, it never can again: after a write or a sync that failed, nobody knows
//! what is on the disk, and only opening the file anew tells.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;
use tracing::error;

/// Whether the server can still write.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failure: OnceLock<String>,
    failed: CancellationToken,
}

impl Health {
    /// There will be no more writes, for this reason. The first reason is the one that counts.
    pub(crate) fn fail(&self, reason: String) {
        if self.failure.set(reason).is_ok() {
            error!(reason = self.failure(), "no more writes can be done");
            self.failed.cancel();
        }
    }

    /// Why there will be no more writes.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Ready once there will be no more writes.
    pub(crate) async fn failed(&self) {
        self.failed.cancelled().await;
    }
}
