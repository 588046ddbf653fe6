//! How many files the process may have open: every connection takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// What a server opens beside its connections: the file, the port, what the runtime needs.
const OTHERS: u64 = 32;

/// Raises the limit as far as the process may, and warns where `connections` do not fit below it.
pub(super) fn raise(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            warn!(%error, "could not raise the limit of open files");
            limit.current
        }
    };
    let needed = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHERS);
    if let Some(current) = current
        && current < needed
    {
        warn!(
            "--max-connections is {connections}, but the process may have {current} files open: connections beyond \
             that wait to be accepted. Raise its hard limit (ulimit -Hn, LimitNOFILE=), or lower --max-connections"
        );
    }
}
