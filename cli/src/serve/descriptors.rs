//! How many files the process may have open: every connection takes one, and the engine must not be the one that finds none.

use boltkv_server::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::failure::{Failure, Outcome};

/// What a server has open beside its clients' connections: standard streams, the file, its lock, the journal's folder and its
/// segments that are written, synced or made (32); what the runtimes wait with and the sockets that it listens on (32); the
/// admin address' connections (64); connections that wait for a place, and that are told that there is none (128).
const OTHERS: u64 = 256;

/// With fewer no server is of use.
const LEAST: u64 = 64;

/// Raises the limit as far as the process may, and lowers that of connections, with a warning, to what fits below it.
///
/// # Errors
/// There are so few that no server is of use.
pub(super) fn fit(limits: &mut Limits) -> Outcome {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let most = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            warn!(%error, "could not raise the limit of open files");
            limit.current
        }
    };
    let Some(most) = most else { return Ok(()) };
    let Some(connections) = connections(most, limits.max_watches) else {
        let why = format!("the process may have {most} files open, and takes {LEAST} at least: raise its hard limit");
        return Err(Failure::usage(format!("{why} (ulimit -Hn, LimitNOFILE=)")));
    };
    if connections < limits.max_connections {
        warn!(
            "--max-connections is {}, but the process may have {most} files open, so it is {connections}: the others are \
             for the file, its journal and watches. Raise its hard limit (ulimit -Hn, LimitNOFILE=), or lower \
             --max-connections",
            limits.max_connections
        );
        limits.max_connections = connections;
    }
    Ok(())
}

/// How many connections fit below a limit of open files, beside watches, which read a segment each, and what there is
/// besides; at least half of what there is.
fn connections(most: u64, watches: u32) -> Option<usize> {
    let others = (OTHERS + u64::from(watches)).min(most / 2);
    (most >= LEAST).then(|| usize::try_from(most - others).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_always_some_left_for_the_engine() {
        assert_eq!(connections(1_024, 128), Some(640));
        assert_eq!(connections(1_000_000, 128), Some(999_616));
        assert_eq!(connections(128, 128), Some(64));
        assert_eq!(connections(63, 0), None);
    }
}
