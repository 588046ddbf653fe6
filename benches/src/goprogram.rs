//! The program that measures Go's engines: built from `go/` when it is needed, with the `go` command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The engines that are written in Go.
pub const ENGINES: [&str; 2] = ["bbolt", "bugfruit"];

/// Builds the program for an engine into `folder`: bugfruit's has a module that the other's does without.
///
/// # Errors
/// There is no Go, a module cannot be fetched, or the program does not compile.
pub fn build(engine: &str, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(format!("go-{engine}"));
    let mut build = go();
    build.args(["build", "-o"]).arg(&program);
    if engine == "bugfruit" {
        let modules = folder.join("bugfruit.mod");
        for (from, to) in [("go.mod", "mod"), ("go.sum", "sum")] {
            fs::copy(Path::new(SOURCE).join(from), modules.with_extension(to))?;
        }
        run(go().arg("get").arg("-modfile").arg(&modules).arg("github.com/reesporte/bugfruit@latest"))?;
        build.args(["-tags", engine, "-modfile"]).arg(&modules);
    }
    run(build.arg("."))?;
    Ok(program)
}

/// Where the program's source is.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");

/// Go's command, at the program's source.
fn go() -> Command {
    let mut go = Command::new("go");
    go.current_dir(SOURCE).env_remove("GOFLAGS").env("GOWORK", "off");
    go
}

fn run(go: &mut Command) -> Result<()> {
    let output = go.output().context("go does not run")?;
    if !output.status.success() {
        let asked = go.get_args().next().unwrap_or_default().display().to_string();
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("go {asked}: {}", said.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Ok(())
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

    #[boltkv_needs::program("go")]
    #[test]
    fn go_makes_the_same_keys_and_values() {
        let folder = tempfile::tempdir().unwrap();
        let program = match build("bbolt", folder.path()) {
            Ok(program) => program,
            Err(why) => {
                let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
                assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but the Go program cannot be built: {why}");
                // What `eprintln!` prints of a test that passes is swallowed.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("skipped: the Go program cannot be built: {why}\n"),
                );
                return;
            }
        };
        for (keys, name) in [
            (Keys::Sequential, "sequential"),
            (Keys::Random, "random"),
            (Keys::Random16, "random16"),
            (Keys::Clumped, "clumped"),
        ] {
            // More than an owner of keys in clumps has.
            let told = Command::new(&program).args(["data", name, "37", "250"]).output().unwrap();
            let values = Values::new(37);
            let mut expected = String::new();
            for n in 0..250 {
                writeln!(expected, "{} {}", hex(keys.key(n).as_ref()), hex(values.value(n))).unwrap();
            }
            assert_eq!(String::from_utf8(told.stdout).unwrap(), expected, "{name}");
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }
}
