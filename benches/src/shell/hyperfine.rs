//! hyperfine: runs a command of the shell over and over, and tells how long each run took.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::process;

/// Runs before those that count.
const WARM_UP: &str = "3";

/// How long it may take for itself, and for each run.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(1));

#[derive(Debug, Deserialize)]
struct Export {
    results: Vec<Timed>,
}

#[derive(Debug, Deserialize)]
struct Timed {
    times: Vec<f64>,
}

/// Runs a command so often. Gives the seconds of each run, without those that its shell takes to start.
///
/// # Errors
/// hyperfine's; a run that failed; a result that cannot be read.
pub(super) fn times(command: &str, runs: u64, folder: &Path) -> Result<Vec<f64>> {
    let export = folder.join("hyperfine.json");
    let mut hyperfine = Command::new("hyperfine");
    hyperfine.args(["--style", "none", "--warmup", WARM_UP, "--runs", &runs.to_string(), "--export-json"]);
    hyperfine.arg(&export).arg(command);
    let limit = PATIENCE.0 + PATIENCE.1 * u32::try_from(runs)?;
    let output = process::output(&mut hyperfine, limit)?;
    if !output.status.success() {
        bail!("hyperfine, with {command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let Export { results } = serde_json::from_slice(&std::fs::read(&export)?).context("hyperfine's result")?;
    Ok(results.into_iter().flat_map(|timed| timed.times).collect())
}
