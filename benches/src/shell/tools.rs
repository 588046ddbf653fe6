//! The programs that measuring from the shell needs. One that is missing is named, with how to get it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// The netcats that are looked at.
const NETCATS: [&str; 2] = ["nc.openbsd", "nc"];

/// What was found.
#[derive(Debug)]
pub(super) struct Tools {
    /// boltkv's program.
    pub(super) boltkv: PathBuf,
    /// OpenBSD's netcat.
    pub(super) nc: &'static str,
    /// All of them, with their versions.
    pub(super) versions: BTreeMap<String, String>,
}

impl Tools {
    /// Looks for all of them.
    ///
    /// # Errors
    /// One is missing.
    pub(super) fn find(server: Option<&Path>) -> Result<Self> {
        let boltkv = server_at(server)?;
        let hyperfine = said("hyperfine", "--version").context("hyperfine is missing: `apt-get install hyperfine`")?;
        let netcat = NETCATS.into_iter().find_map(|name| Some((name, openbsd(name)?)));
        let (nc, netcat) = netcat.context("OpenBSD's netcat is missing: `apt-get install netcat-openbsd`")?;
        let mut versions = BTreeMap::from([("hyperfine".to_owned(), hyperfine), ("netcat".to_owned(), netcat)]);
        if let Ok(redis) = said("redis-server", "--version") {
            versions.insert("Redis".to_owned(), redis);
        }
        Ok(Self { boltkv, nc, versions })
    }
}

/// boltkv's program: where it was said to be, or beside this one.
///
/// # Errors
/// It is not there.
pub(crate) fn server_at(path: Option<&Path>) -> Result<PathBuf> {
    let boltkv = path.map_or_else(beside, |path| Ok(path.to_owned()))?;
    if !boltkv.is_file() {
        let path = boltkv.display();
        bail!("there is no {path}: `cargo build --release -p boltkv` builds it, or --server says where it is");
    }
    Ok(boltkv)
}

/// The program beside this one: cargo puts both into one folder.
fn beside() -> Result<PathBuf> {
    let this = std::env::current_exe().context("this program cannot be found")?;
    Ok(this.with_file_name("boltkv"))
}

/// What a netcat says of itself, if it is OpenBSD's: only that one has the `-N` that is meant here.
fn openbsd(name: &str) -> Option<String> {
    said(name, "-h").ok().filter(|said| said.contains("OpenBSD"))
}

/// The first line that a program says when asked so.
fn said(program: &str, ask: &str) -> Result<String> {
    let output = process::output(Command::new(program).arg(ask), PATIENCE)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    // Redis goes on with how it was built.
    Ok(line.split(" sha=").next().unwrap_or(line).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_named_with_the_command_that_builds_it() {
        let error = Tools::find(Some(Path::new("nowhere/boltkv"))).unwrap_err().to_string();
        assert!(error.contains("nowhere/boltkv") && error.contains("cargo build --release -p boltkv"), "{error}");
    }
}
