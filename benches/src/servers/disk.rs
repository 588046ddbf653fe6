//! A disk that does no more than so many writes a second, as clouds rent them out: Linux' control groups hold the servers to
//! it while they are measured, not while they are loaded. What waits for a sync waits longer there than on a disk of one's own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{major, minor};

/// A way to hold processes to it: the folder of all groups, the file of a group that has the limit, and what stands before the
/// number there.
struct Way {
    groups: &'static str,
    limit: &'static str,
    unit: &'static str,
}

/// Version 2 of control groups, and version 1.
const WAYS: [Way; 2] = [
    Way { groups: "/sys/fs/cgroup", limit: "io.max", unit: "wiops=" },
    Way { groups: "/sys/fs/cgroup/blkio", limit: "blkio.throttle.write_iops_device", unit: "" },
];

/// A group whose processes write so seldom. It goes when it is dropped.
pub(super) struct SlowDisk {
    group: PathBuf,
}

/// A process that is held to it, until this is dropped.
pub(super) struct Held {
    process: u32,
    /// The processes that are in no group, among which it is after that.
    free: PathBuf,
}

impl SlowDisk {
    /// For the disk that this folder is on.
    ///
    /// # Errors
    /// Control groups that are not there, or cannot be made by who asks; a file system that is on no disk.
    pub(super) fn new(folder: &Path, writes: u32) -> Result<Self> {
        let disk = disk_of(folder)?;
        for way in WAYS {
            let slow = Self { group: Path::new(way.groups).join(format!("boltkv-benches-{}", process::id())) };
            if fs::create_dir(&slow.group).is_err() {
                continue;
            }
            let limit = slow.group.join(way.limit);
            let told = format!("{disk} {}{writes}", way.unit);
            if write(&limit, &told).is_ok() && fs::read_to_string(&limit)?.contains(&told) {
                return Ok(slow);
            }
        }
        bail!(
            "to limit the writes of a disk takes root, and a control group of version 2 with `io`, or of 1 with `blkio`"
        )
    }

    /// Holds a process to it.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn hold(&self, process: u32) -> Result<Held> {
        let free = self.group.with_file_name("cgroup.procs");
        let to = self.group.join("cgroup.procs");
        write(&to, &process.to_string()).with_context(|| format!("{} does not take it", to.display()))?;
        Ok(Held { process, free })
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // An empty one costs nothing, and nobody else uses its name.
        let _ = fs::remove_dir(&self.group);
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
        let disk = match SlowDisk::new(folder.path(), 500) {
            Ok(disk) => disk,
            Err(why) => return eprintln!("skipped: {why:#}"),
        };
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        let name = disk.group.file_name().unwrap().to_str().unwrap().to_owned();
        let its_groups = || fs::read_to_string(format!("/proc/{}/cgroup", sleeper.id())).unwrap();
        let held = disk.hold(sleeper.id()).unwrap();
        let before = its_groups();
        drop(held);
        let after = its_groups();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(before.contains(&name) && !after.contains(&name), "{before}{after}");
        let group = disk.group.clone();
        drop(disk);
        assert!(!group.exists());
    }
}
