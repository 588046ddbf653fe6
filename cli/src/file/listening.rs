//! At which ports a process listens, as far as the system tells: Linux lists a process's sockets as its descriptors, and
//! those that listen in `/proc/PID/net/tcp`.
//!
//! As what is said of a file's holder it is advice for people, and never fails: where nothing is known, there are none.

use std::fs;

/// The state of a socket that listens, in the lists.
const LISTENS: &str = "0A";

/// The ports at which a process listens, each once.
pub(super) fn ports(pid: u32) -> Vec<u16> {
    let sockets = sockets(pid);
    let mut ports = Vec::new();
    for list in ["tcp", "tcp6"] {
        // The process's own list: it may be in another network than this one.
        let lines = fs::read_to_string(format!("/proc/{pid}/net/{list}")).unwrap_or_default();
        let listening = lines.lines().filter_map(listening);
        ports.extend(listening.filter(|(_, inode)| sockets.contains(inode)).map(|(port, _)| port));
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The inodes of a process's sockets; none where its descriptors may not be seen.
fn sockets(pid: u32) -> Vec<u64> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
    let inode = |target: std::path::PathBuf| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    targets.filter_map(inode).collect()
}

/// Port and inode of a line such as `0: 0100007F:1EC6 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 …`,
/// if that socket listens.
fn listening(line: &str) -> Option<(u16, u64)> {
    let mut fields = line.split_whitespace();
    let (own, state) = (fields.nth(1)?, fields.nth(1)?);
    let inode = fields.nth(5)?.parse().ok()?;
    let (_, port) = own.rsplit_once(':')?;
    (state == LISTENS).then_some(())?;
    Some((u16::from_str_radix(port, 16).ok()?, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_is_told_from_one_that_is_connected() {
        let rest = "00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0";
        let line = |state| format!("   0: 0100007F:1EC6 00000000:0000 {state} {rest}");
        assert_eq!(listening(&line("0A")), Some((7878, 4711)));
        assert_eq!(listening(&line("01")), None);
        let six =
            format!("   1: 00000000000000000000000001000000:1EC7 00000000000000000000000000000000:0000 0A {rest}");
        assert_eq!(listening(&six), Some((7879, 4711)));
        for other in
            ["", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
        {
            assert_eq!(listening(other), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_ports_of_this_process_are_found_and_those_of_none_are_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(ports(std::process::id()).contains(&listener.local_addr().unwrap().port()));
        assert!(ports(u32::MAX).is_empty());
    }
}
