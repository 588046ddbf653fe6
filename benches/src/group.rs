//! A control group whose processes have so much memory together, the pages of files that they read among it. It is there
//! as long as its value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Where control groups are, in either version, and what their limit of memory is called there.
const PLACES: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup", "memory.max", "cgroup.controllers"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "tasks"),
];

/// A control group.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

impl Group {
    /// Makes one with so many bytes.
    ///
    /// # Errors
    /// There are none here, or this process may not make one.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let here = |&&(root, _, mark): &&(&str, &str, &str)| Path::new(root).join(mark).is_file();
        let Some((root, limit, _)) = PLACES.iter().find(here) else { bail!("there are no control groups of memory") };
        let folder = Path::new(root).join(format!("boltkv-benches-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let group = Self { folder };
        let file = group.folder.join(limit);
        fs::write(&file, bytes.to_string()).with_context(|| format!("{} cannot be written", file.display()))?;
        // Without it, what does not fit would go to swap, and something else would be measured. Not everywhere is there any.
        let _ = fs::write(group.folder.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// The same command, run in this group.
    pub(super) fn within(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.folder.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args());
        within
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed when its last process has gone; one that stays, empty, takes nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}
