//! How much memory this process may use: the machine's, or less where its control groups (containers) say so.

use std::fs;
use std::path::Path;

/// In bytes; `None` where the system does not say.
pub(super) fn memory() -> Option<u64> {
    memory_below(Path::new("/"))
}

/// What the files of a system say whose root is here.
fn memory_below(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    machine.into_iter().chain(groups.lines().filter_map(|line| group_limit(root, line))).min()
}

/// `MemTotal:       24682500 kB`
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest limit of a group, named by a line of `/proc/self/cgroup`, and of those it lies in. Within a container the
/// group's own folder may be missing: what it may use is then said at the mount's root.
fn group_limit(root: &Path, line: &str) -> Option<u64> {
    let (_, named) = line.split_once(':')?;
    let (controllers, path) = named.split_once(':')?;
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let group = Path::new(path.trim_start_matches('/'));
    let limits = group.ancestors().filter_map(|group| {
        // Without a limit the first kind says `max`, the second one a number larger than any machine.
        fs::read_to_string(root.join(mount).join(group).join(file)).ok()?.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a system with these files says.
    fn memory_with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_below(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        4000 kB\nMemFree:  1 kB\n");

    #[test]
    fn it_is_the_machines_where_no_group_has_a_limit() {
        assert_eq!(memory_with(&[]), None);
        assert_eq!(memory_with(&[MEMINFO]), Some(4_096_000));
        let unlimited = [MEMINFO, ("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(memory_with(&unlimited), Some(4_096_000));
        assert!(memory().is_some_and(|memory| memory > 1 << 20), "this machine's");
    }

    #[test]
    fn the_lowest_limit_of_the_groups_counts_in_both_versions() {
        let second = [
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "2000000\n"),
        ];
        assert_eq!(memory_with(&second), Some(1_000_000));
        let first = [
            MEMINFO,
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/gone\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n"),
        ];
        assert_eq!(memory_with(&first), Some(3_000_000));
    }
}
