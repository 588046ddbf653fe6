//! Why nothing, or not all, could be measured.

use std::io;

/// Why a run could not be begun, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nobody, or nobody who answers. Nothing was asked.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// Where to.
        addr: String,
        /// What the system says.
        source: io::Error,
    },
    /// What answers is not the server that was meant, or does not keep to its protocol.
    #[error("{addr} is no {target} server, or breaks its protocol: {what}")]
    Protocol {
        /// Who.
        addr: String,
        /// What it was taken for.
        target: &'static str,
        /// What it did.
        what: String,
    },
    /// The server said no.
    #[error("the server refused {what}: {why}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// What it said.
        why: String,
    },
    /// There are data where the run wanted a place of its own.
    #[error("{0}")]
    Occupied(String),
    /// There is no such place, where the run wanted to use what another has left.
    #[error("{0}")]
    Missing(String),
    /// What is asked for cannot be done: by this server, in this memory, or at all.
    #[error("{0}")]
    Impossible(String),
    /// A connection that had been made was lost, or the system refused what a run needs.
    #[error("{doing}: {source}")]
    Io {
        /// What was under way.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was under way when the system said no.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Io { doing, source: source.into() }
    }
}
