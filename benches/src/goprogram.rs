//! The program that measures Go's engines: built from `go/` when it is needed, with the `go` command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Builds the program into `folder`.
///
/// # Errors
/// There is no Go, a module cannot be fetched, or the program does not compile.
pub fn build(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("gopeers");
    let output = Command::new("go")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/go"))
        .env_remove("GOFLAGS")
        .env("GOWORK", "off")
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .output()
        .context("go does not run")?;
    if !output.status.success() {
        bail!("go build: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(program)
}

/// The versions of Go and of the engines that it was built with.
///
/// # Errors
/// The program does not run.
pub fn versions(program: &Path) -> Result<BTreeMap<String, String>> {
    let output = Command::new(program).arg("versions").output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::data::{Keys, Values};

    #[test]
    fn go_makes_the_same_keys_and_values() {
        let folder = tempfile::tempdir().unwrap();
        let program = match build(folder.path()) {
            Ok(program) => program,
            Err(why) => {
                let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
                assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but the Go program cannot be built: {why}");
                eprintln!("skipped: the Go program cannot be built: {why}");
                return;
            }
        };
        for (keys, name) in [(Keys::Sequential, "sequential"), (Keys::Random, "random"), (Keys::Random16, "random16")] {
            let told = Command::new(&program).args(["data", name, "37", "100"]).output().unwrap();
            let values = Values::new(37);
            let mut expected = String::new();
            for n in 0..100 {
                writeln!(expected, "{} {}", hex(keys.key(n).as_ref()), hex(values.value(n))).unwrap();
            }
            assert_eq!(String::from_utf8(told.stdout).unwrap(), expected, "{name}");
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }
}
