//! The tokens of a server: read when it starts, and again at SIGHUP.

use std::path::{Path, PathBuf};

use boltkv_server::{AccessHandle, Grant};
use tracing::{error, warn};

use crate::failure::Outcome;
use crate::token::file::TokensFile;

/// The tokens in a file.
pub(super) fn read(file: &Path) -> Outcome<Vec<Grant>> {
    TokensFile::read(file).map(|tokens| tokens.grants)
}

/// What SIGHUP has done: a file with a mistake changes nothing.
pub(super) fn reload(file: Option<PathBuf>, access: AccessHandle) -> impl Fn() + Send + 'static {
    move || {
        let Some(file) = &file else {
            return warn!("SIGHUP: there is nothing to read again; the server goes on");
        };
        match read(file) {
            Ok(grants) => {
                let count = grants.len();
                let gone = access.replace(grants).unwrap_or(0);
                warn!("SIGHUP: {count} tokens in {}; {gone} are gone or changed", file.display());
            }
            Err(failure) => error!("SIGHUP: {failure}; the tokens stay as they were"),
        }
    }
}
