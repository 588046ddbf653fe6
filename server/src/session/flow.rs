//! How much has passed on a connection in one direction, and when the last of it did.

use tokio::time::Instant;

/// What has passed in one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) bytes: u64,
    /// When the last of it passed; before the first, when the connection was opened.
    pub(super) last: Instant,
}

impl Flow {
    /// Nothing has passed on a connection that is opened now.
    pub(super) fn begun() -> Self {
        Self { bytes: 0, last: Instant::now() }
    }

    pub(super) fn and(self, bytes: usize) -> Self {
        Self { bytes: self.bytes + bytes as u64, last: Instant::now() }
    }
}
