//! Linux' control groups: processes that have so much memory together, the pages of files that they read among it, or whose
//! disk does no more than so many writes a second. A group is there as long as its value.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{major, minor};

/// Where control groups are, in either version: the folder of all, what a limit is called there, and what is only there.
type Places = [(&'static str, &'static str, &'static str); 2];

const OF_MEMORY: Places = [
    ("/sys/fs/cgroup", "memory.max", "cgroup.controllers"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "tasks"),
];
const OF_DISKS: Places = [
    ("/sys/fs/cgroup", "io.max", "cgroup.controllers"),
    ("/sys/fs/cgroup/blkio", "blkio.throttle.write_iops_device", "tasks"),
];

/// A control group.
#[derive(Debug)]
pub(crate) struct Group {
    folder: PathBuf,
}

/// A process that is held in a group, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    process: u32,
    /// The processes that are in no group, among which it is after that.
    free: PathBuf,
}

impl Group {
    /// Makes one with so many bytes of memory.
    ///
    /// # Errors
    /// There are none here, or this process may not make one.
    pub(crate) fn of_memory(bytes: u64) -> Result<Self> {
        let group = Self::limited("memory", OF_MEMORY, |_| bytes.to_string())?;
        // Without it, what does not fit would go to swap, and something else would be measured. Not everywhere is there any.
        let _ = write(&group.folder.join("memory.swap.max"), "0");
        Ok(group)
    }

    /// Makes one for which the disk that this folder is on does so many writes a second at most, as clouds rent them out.
    ///
    /// # Errors
    /// There are none here, or this process may not make one; a file system that is on no disk.
    pub(crate) fn of_slow_disk(folder: &Path, writes: u32) -> Result<Self> {
        let disk = disk_of(folder)?;
        Self::limited("disks", OF_DISKS, |limit| {
            let unit = if limit == "io.max" { "wiops=" } else { "" };
            format!("{disk} {unit}{writes}")
        })
    }

    /// Makes one with a limit of something, which is told so in the file of this name.
    fn limited(of: &str, places: Places, told: impl Fn(&str) -> String) -> Result<Self> {
        let here = |(root, _, mark): &&(&str, &str, &str)| Path::new(root).join(mark).is_file();
        let Some((root, limit, _)) = places.iter().find(here) else { bail!("there are no control groups of {of}") };
        let folder = Path::new(root).join(format!("boltkv-benches-{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let group = Self { folder };
        let file = group.folder.join(limit);
        write(&file, &told(limit)).with_context(|| format!("{} cannot be written", file.display()))?;
        Ok(group)
    }

    /// The same command, run in this group.
    pub(crate) fn within(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.processes());
        within.arg(command.get_program()).args(command.get_args());
        within
    }

    /// Holds a process in it that runs.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn hold(&self, process: u32) -> Result<Held> {
        let to = self.processes();
        write(&to, &process.to_string()).with_context(|| format!("{} does not take it", to.display()))?;
        Ok(Held { process, free: self.folder.with_file_name("cgroup.procs") })
    }

    fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed when its last process has gone; one that stays, empty, takes nothing.
        let _ = fs::remove_dir(&self.folder);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // One that has ended meanwhile is in no group.
        let _ = write(&self.free, &self.process.to_string());
    }
}

/// Writes to a file of the system's; one that is not there is not made.
fn write(file: &Path, told: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(told.as_bytes())
}

/// The number of the disk that a folder is on; of all of it, where that is a part of one.
fn disk_of(folder: &Path) -> Result<String> {
    let device = fs::metadata(folder)?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let known = fs::canonicalize(format!("/sys/dev/block/{number}"))
        .with_context(|| format!("{} is on no disk", folder.display()))?;
    if !known.join("partition").exists() {
        return Ok(number);
    }
    Ok(fs::read_to_string(known.join("../dev"))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_held_to_it_and_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let disk = match Group::of_slow_disk(folder.path(), 500) {
            Ok(disk) => disk,
            Err(why) => return eprintln!("skipped: {why:#}"),
        };
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        let name = disk.folder.file_name().unwrap().to_str().unwrap().to_owned();
        let its_groups = || fs::read_to_string(format!("/proc/{}/cgroup", sleeper.id())).unwrap();
        let held = disk.hold(sleeper.id()).unwrap();
        let before = its_groups();
        drop(held);
        let after = its_groups();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(before.contains(&name) && !after.contains(&name), "{before}{after}");
        let group = disk.folder.clone();
        drop(disk);
        assert!(!group.exists());
    }
}
