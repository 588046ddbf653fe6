//! Small libraries that are loaded before the others (`LD_PRELOAD`), and lie to a server about what the system says. They take
//! a C compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds one in this folder. `None` (said on standard error) where there is no C compiler; with `BOLTKV_REQUIRE_TOOLS=1` that
/// is a failure.
pub fn build(folder: &Path, source: &str) -> Option<PathBuf> {
    let (file, shim) = (folder.join("shim.c"), folder.join("shim.so"));
    fs::write(&file, source).unwrap();
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&file).output() {
        Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
        Err(error) => {
            let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but cc does not run: {error}");
            eprintln!("skipped: cc does not run: {error}");
            return None;
        }
    }
    Some(shim)
}
