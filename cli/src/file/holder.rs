//! Who has a file locked, as far as the system tells: Linux lists all locks in `/proc/locks`.
//!
//! What is found here is advice for people. It never fails: where nothing is known, nothing is said.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use boltkv_server::Config;

use super::listening;
use crate::arguments::{REDIS, UNIX};
use crate::failure::one_line;

/// As many holders are named: a file can have any number of readers.
const MOST_NAMED: usize = 3;
/// The variables that say where a server listens, and in which file it is told that.
const LISTEN: &str = "BOLTKV_LISTEN";
const CONFIG: &str = "BOLTKV_CONFIG";
/// So much of a command line is shown.
const MOST_SHOWN: usize = 160;
/// Stands for an address that is not known.
const SOMEWHERE: &str = "HOST:PORT";

/// A process that has a lock on the file.
struct Holder {
    pid: u32,
    /// Its command line; empty where that cannot be read, or where the process that took the lock has gone and left it to
    /// a child.
    command: Vec<String>,
    /// Its environment, `NAME=value`; `None` where that cannot be read.
    environment: Option<Vec<String>>,
}

/// What to say behind "is locked by another process": who that is, and what can be done. `ask` is the command that asks a
/// server the same, without `--addr`; `wait` is the option that waits for it longer.
pub(crate) fn advice(file: &Path, wait: &str, ask: Option<&str>) -> String {
    let holders = holders(file);
    let mut said = names(&holders);
    // A server has it until it ends, and leaves an ordinary file then, whatever was in its journal.
    let is_served = holders.iter().any(|holder| holder.serves().is_some());
    let first = if is_served { "stop it, after which the file has everything, or " } else { "" };
    let _ = write!(said, "; {first}wait for it longer with {wait} TIME");
    if let Some((ask, addr)) = ask.zip(server_to_ask(&holders)) {
        let _ = write!(said, ", or ask the server: {ask} --addr {addr}");
    }
    said
}

/// Who has the file, behind "is locked".
pub(crate) fn named(file: &Path) -> String {
    names(&holders(file))
}

/// Why a server's file is not open yet: somebody else has it, or the server has it itself and is not done with it.
pub(crate) fn keeps_closed(file: &Path) -> Option<String> {
    let holders = holders(file);
    if holders.iter().any(|holder| holder.pid == std::process::id()) {
        return Some(format!("it {}", Config::BUSY_OPENING));
    }
    let waits = || one_line(&format!("it waits for another process to let go of it{}", names(&holders)));
    (!holders.is_empty()).then(waits)
}

fn names(holders: &[Holder]) -> String {
    let mut said = String::new();
    for (index, holder) in holders.iter().take(MOST_NAMED).enumerate() {
        said.push_str(if index == 0 { ": " } else { ", " });
        said.push_str(&holder.describe());
    }
    if holders.len() > MOST_NAMED {
        let _ = write!(said, " and {} more", holders.len() - MOST_NAMED);
    }
    said
}

/// Where the server listens that has the file; nothing if it is known that none of ours has it.
fn server_to_ask(holders: &[Holder]) -> Option<String> {
    if holders.iter().all(|holder| holder.command.is_empty()) {
        return Some(SOMEWHERE.to_owned());
    }
    holders.iter().find_map(Holder::serves_on)
}

impl Holder {
    fn describe(&self) -> String {
        let command = self.command.join(" ");
        let mut said = format!("pid {}", self.pid);
        if !command.is_empty() {
            let shown: String = command.chars().take(MOST_SHOWN).collect();
            let more = if shown.len() < command.len() { "…" } else { "" };
            let _ = write!(said, " ({shown}{more})");
        }
        said
    }

    /// The arguments of `serve`, if it is a server of ours.
    fn serves(&self) -> Option<&[String]> {
        let (program, args) = self.command.split_first()?;
        let ours = Path::new(program).file_name().is_some_and(|name| name == "boltkv");
        args.split_first().filter(|(command, _)| ours && *command == "serve").map(|(_, args)| args)
    }

    /// The address on which a server of ours listens for commands.
    fn serves_on(&self) -> Option<String> {
        let args = self.serves()?;
        let after = args.iter().zip(args.iter().skip(1)).filter(|(arg, _)| *arg == "--listen").map(|(_, next)| &**next);
        let typed: Vec<&str> = after.chain(args.iter().filter_map(|arg| arg.strip_prefix("--listen="))).collect();
        let configured = args.iter().any(|arg| arg == "--config" || arg.starts_with("--config="));
        let places = match (&self.environment, &typed[..]) {
            (Some(_), []) => match (self.variable(LISTEN), configured || self.variable(CONFIG).is_some()) {
                (Some(places), _) => places.split(',').map(str::trim).collect(),
                (None, true) => vec![SOMEWHERE],
                (None, false) => vec!["127.0.0.1:7878"],
            },
            (None, []) => vec![SOMEWHERE],
            (_, [..]) => typed,
        };
        let listens = places.into_iter().find(|place| !place.starts_with(REDIS))?;
        // Who may connect to a socket is said behind its path, and only to the server.
        if let Some(socket) = listens.strip_prefix(UNIX) {
            return Some(format!("{UNIX}{}", socket.rsplit_once("?mode=").map_or(socket, |(path, _)| path)));
        }
        let chosen = listens.rsplit_once(':').filter(|(_, port)| port.parse() == Ok(0_u16));
        Some(chosen.map_or_else(|| listens.to_owned(), |(host, _)| self.listens_at(host)))
    }

    /// The address where the system has chosen the port: it can be told where the process listens at no other one.
    fn listens_at(&self, host: &str) -> String {
        match listening::ports(self.pid)[..] {
            [port] => format!("{host}:{port}"),
            _ => SOMEWHERE.to_owned(),
        }
    }

    /// What a variable of its environment says, if anything.
    fn variable(&self, name: &str) -> Option<&str> {
        let said = self.environment.iter().flatten().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='));
        said.filter(|said| !said.is_empty())
    }
}

fn holders(file: &Path) -> Vec<Holder> {
    let (Ok(locks), Ok(metadata)) = (fs::read_to_string("/proc/locks"), file.metadata()) else { return Vec::new() };
    let place = place(metadata.dev(), metadata.ino());
    let mut pids: Vec<u32> = locks.lines().filter_map(|line| pid_of_lock(line, &place)).collect();
    pids.sort_unstable();
    pids.dedup();
    let holder = |pid| Holder {
        pid,
        command: texts_of(pid, "cmdline").unwrap_or_default(),
        environment: texts_of(pid, "environ"),
    };
    pids.into_iter().map(holder).collect()
}

/// A file as `/proc/locks` names it: device in hexadecimal, inode.
fn place(dev: u64, inode: u64) -> String {
    // The device's number as glibc and the kernel's newer calls put it together.
    let major = ((dev >> 32) & 0xffff_f000) | ((dev >> 8) & 0xfff);
    let minor = ((dev >> 12) & 0xffff_ff00) | (dev & 0xff);
    format!("{major:02x}:{minor:02x}:{inode}")
}

/// The process of a line such as `1: FLOCK  ADVISORY  WRITE 21494 fe:00:10724613 0 EOF`, if it is about this file. Those who
/// wait for a lock have an arrow before their kind.
fn pid_of_lock(line: &str, place: &str) -> Option<u32> {
    let mut fields = line.split_whitespace().skip(1);
    let kind = fields.next()?;
    let (pid, found) = (fields.nth(2)?, fields.next()?);
    (kind == "FLOCK" && found == place).then(|| pid.parse().ok()).flatten()
}

/// What a process was started with: its arguments, or its environment.
fn texts_of(pid: u32, what: &str) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{pid}/{what}")).ok()?;
    let texts = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|&byte| byte == 0);
    Some(texts.map(|text| String::from_utf8_lossy(text).into_owned()).filter(|text| !text.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has this number: of one that has, the ports could be found.
    const NOBODY: u32 = u32::MAX;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn holder(command: &[&str]) -> Holder {
        Holder { pid: NOBODY, command: texts(command), environment: Some(Vec::new()) }
    }

    #[test]
    fn a_lock_is_found_by_device_and_inode_and_those_who_wait_are_passed_over() {
        let place = place(0xfe00, 42);
        assert_eq!(place, "fe:00:42");
        assert_eq!(pid_of_lock("1: FLOCK  ADVISORY  WRITE 21494 fe:00:42 0 EOF", &place), Some(21494));
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 21494 fe:00:42 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 21494 fe:01:42 0 EOF",
            "1: POSIX  ADVISORY  WRITE 21494 fe:00:42 0 EOF",
            "nonsense",
        ] {
            assert_eq!(pid_of_lock(other, &place), None, "{other}");
        }
    }

    #[test]
    fn only_a_server_of_ours_or_one_of_which_nothing_is_known_can_be_asked() {
        let served = |command: &[&str]| server_to_ask(&[holder(command)]);
        assert_eq!(served(&["etcd", "--data-dir", "serve"]), None);
        assert_eq!(served(&["boltkv", "file", "check", "a.db"]), None);
        assert_eq!(served(&["/usr/bin/boltkv", "serve"]).as_deref(), Some("127.0.0.1:7878"));
        assert_eq!(served(&["boltkv", "serve", "--listen", "[::1]:1"]).as_deref(), Some("[::1]:1"));
        assert_eq!(served(&["boltkv", "serve", "--listen=0.0.0.0:2"]).as_deref(), Some("0.0.0.0:2"));
        let socket = served(&["boltkv", "serve", "--listen", "unix:/run/a.sock?mode=0660"]);
        assert_eq!(socket.as_deref(), Some("unix:/run/a.sock"));
        assert_eq!(served(&["boltkv", "serve", "--listen", "unix:/run/a:0"]).as_deref(), Some("unix:/run/a:0"));
        assert_eq!(served(&["boltkv", "serve", "--config", "a.toml"]).as_deref(), Some("HOST:PORT"));
        assert_eq!(served(&[]).as_deref(), Some("HOST:PORT"));
        assert_eq!(server_to_ask(&[]).as_deref(), Some("HOST:PORT"));
    }

    #[test]
    fn a_port_that_the_system_has_chosen_is_told_or_none_is() {
        let served = |pid, listen: &str| {
            let command = texts(&["boltkv", "serve", "--listen", listen]);
            server_to_ask(&[Holder { pid, command, environment: None }]).unwrap()
        };
        for listen in ["127.0.0.1:0", "[::1]:0", "localhost:00"] {
            assert_eq!(served(NOBODY, listen), SOMEWHERE, "{listen}");
        }
        assert_eq!(served(NOBODY, "127.0.0.1:10"), "127.0.0.1:10");
    }

    #[test]
    fn a_port_for_clients_of_redis_is_not_where_commands_are_answered() {
        let served = |command: &[&str]| server_to_ask(&[holder(command)]);
        let both = ["boltkv", "serve", "--listen", "redis://127.0.0.1:1", "--listen", "127.0.0.1:2"];
        assert_eq!(served(&both).as_deref(), Some("127.0.0.1:2"));
        assert_eq!(served(&both[..4]), None);
        assert!(holder(&both[..4]).serves().is_some());
    }

    #[test]
    fn what_is_not_typed_the_environment_says() {
        let on = |environment: Option<&[&str]>, typed: &[&str]| {
            let command = texts(&[&["boltkv", "serve"], typed].concat());
            let holder = Holder { pid: NOBODY, command, environment: environment.map(texts) };
            server_to_ask(&[holder])
        };
        let listens = "BOLTKV_LISTEN=redis://0.0.0.0:1, 0.0.0.0:7000";
        assert_eq!(on(Some(&["A=b", listens]), &[]).as_deref(), Some("0.0.0.0:7000"));
        assert_eq!(on(Some(&[listens]), &["--listen", "[::1]:1"]).as_deref(), Some("[::1]:1"));
        assert_eq!(on(Some(&["BOLTKV_LISTEN=", "BOLTKV_LISTENS=a"]), &[]).as_deref(), Some("127.0.0.1:7878"));
        assert_eq!(on(Some(&["BOLTKV_CONFIG=a.toml"]), &[]).as_deref(), Some("HOST:PORT"));
        assert_eq!(on(None, &[]).as_deref(), Some("HOST:PORT"));
    }
}
