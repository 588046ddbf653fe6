//! A server measured from the shell, on files of three sizes.

use anyhow::Result;

use super::bars::Bar;
use super::headed;
use super::page::Page;
use crate::goal::{digits, short};
use crate::shell::{PLAIN, Shell, Target, Timing};

const COMMANDS: [&str; 2] = ["SET", "GET"];

const ABOUT: &str = "\
What `echo 'SET hello world' | nc -N 127.0.0.1 7878` and `echo 'GET hello' | …` take from their start to their end, by
hyperfine, which takes off what its shell needs to start. The commands of all servers take turns in ten rounds.

- *boltkv* serves a file of distinct entries with 16-byte keys and 100-byte values, named by how much they take; a SET is
  on the disk before it is answered.
- *echo* sends back what it gets, and does nothing else: what a shell, two processes and a connection cost by themselves.
- *Redis* starts without entries, and has each SET on the disk before it answers (`appendonly yes`,
  `appendfsync always`).
- A start is over when the server says that it is ready: the median of five, with the file in the system's cache.
- Memory is looked at after all commands: what the process has for itself (`RssAnon`), and its pages of files
  (`RssFile`), which are its program's and those of the served file that it has looked at.";

const THEIRS: &str = "\
In the write-up that this repeats, a store with its index in memory took 1.5–1.6 ms a command whatever the size of the
file, but read all of it when it started, and had 1.9 GB of memory for a file of 1 GB. A log that is searched by `grep`
took 10 ms, and 9.1 s with the large file.";

pub(super) fn section(shell: &Shell, page: &mut Page) -> Result<()> {
    let command = format!("cargo build --release -p boltkv\n{}", shell.command);
    headed((&command, shell.quick), "## A server measured from the shell", ABOUT, page);
    page.paragraph("Milliseconds a command: the median; in brackets the mean, and the standard deviation.");
    let rows: Vec<_> = shell.targets.iter().map(row).collect();
    page.table(&["server", "entries", "length", "start", "SET", "GET", "memory of its own", "pages of files"], &rows);
    page.bars("shell", "what a command takes from the shell", "ms: median, standard deviation", &bars(shell))?;
    page.paragraph(&verdict(shell));
    page.paragraph(THEIRS);
    Ok(())
}

fn row(target: &Target) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let command = |name: &str| or_dash(target.timings.get(name).map(cell));
    let size = |bytes: Option<u64>| or_dash(bytes.map(mebibytes));
    vec![
        target.title(),
        or_dash(target.file.map(|file| file.entries.to_string())),
        size(target.file.map(|file| file.bytes)),
        or_dash(target.start.map(|start| format!("{} ms", milliseconds(start.median)))),
        command("SET"),
        command("GET"),
        size(target.resident.map(|resident| resident.anon)),
        size(target.resident.map(|resident| resident.file)),
    ]
}

fn cell(timing: &Timing) -> String {
    let [median, mean, deviation] = [timing.summary.median, timing.mean, timing.deviation].map(milliseconds);
    format!("{median} ({mean} ± {deviation})")
}

fn milliseconds(seconds: f64) -> String {
    digits(seconds * 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", digits(bytes as f64 / f64::from(1 << 20)))
}

fn bars(shell: &Shell) -> Vec<Bar> {
    let bar = |target: &Target, (kind, name): (usize, &&str)| {
        let timing = target.timings.get(*name)?;
        let (value, spread) = (timing.summary.median * 1e3, timing.deviation * 1e3);
        Some(Bar { name: format!("{name}: {}", target.title()), value, spread, kind })
    };
    let of = |target| COMMANDS.iter().enumerate().filter_map(move |command| bar(target, command));
    shell.targets.iter().flat_map(of).collect()
}

/// What the figures come to, in sentences that hold whatever they are.
fn verdict(shell: &Shell) -> String {
    let mut files: Vec<_> = shell.targets.iter().filter(|target| target.file.is_some()).collect();
    files.sort_by_key(|target| target.file.map(|file| file.asked));
    let named = |name: &str| shell.targets.iter().find(|target| target.name == name);
    let (Some(smallest), Some(largest)) = (files.first(), files.last()) else { return String::new() };
    let mut lines = vec![growth(smallest, largest)];
    if let Some(times) = named("echo").and_then(|echo| times(echo, largest)) {
        lines.push(format!("The echo takes so many times what the largest file's commands take: {times}."));
    }
    if let Some(times) = named("Redis").and_then(|redis| times(largest, redis)) {
        lines.push(format!("With the largest file, commands take so many times as long as Redis': {times}."));
    }
    if let Some(plain) = files.iter().find_map(|target| median(target, PLAIN)) {
        let plain = milliseconds(plain);
        lines.push(format!(
            "A plain `nc`, without `-N`, waits until the server ends the connection, a while after its last answer\n\
             (`--text-linger`, 100 ms): a SET takes {plain} ms."
        ));
    }
    lines.join("\n")
}

fn growth(smallest: &Target, largest: &Target) -> String {
    let mut what: Vec<_> =
        COMMANDS.iter().filter_map(|name| from_to(name, median(smallest, name)?, median(largest, name)?)).collect();
    let start = |target: &Target| target.start.map(|start| start.median);
    what.extend(start(smallest).zip(start(largest)).and_then(|(from, to)| from_to("the start", from, to)));
    let own = |target: &Target| target.resident.map(|resident| mebibytes(resident.anon));
    what.extend(own(smallest).zip(own(largest)).map(|(from, to)| format!("memory of its own from {from} to {to}")));
    let size = |target: &Target| target.file.map(|file| file.size()).unwrap_or_default();
    format!(
        "From a file of {} to one of {}:\n{}.\nThe index is in the file, and is not read before it is asked for.",
        size(smallest),
        size(largest),
        what.join(",\n")
    )
}

fn from_to(what: &str, from: f64, to: f64) -> Option<String> {
    let [a, b] = [from, to].map(|seconds| short(seconds) + "s");
    (from > 0.0).then(|| format!("{what} from {a} to {b} ({} ×)", digits(to / from)))
}

/// The commands' medians of one as so many times those of another.
fn times(of: &Target, by: &Target) -> Option<String> {
    let ratio = |name: &&str| Some(format!("{name} {} ×", digits(median(of, name)? / median(by, name)?)));
    COMMANDS.iter().map(ratio).collect::<Option<Vec<_>>>().map(|ratios| ratios.join(", "))
}

fn median(target: &Target, command: &str) -> Option<f64> {
    target.timings.get(command).map(|timing| timing.summary.median)
}

#[cfg(test)]
pub(super) fn made_up() -> Shell {
    use crate::machine::Machine;
    use crate::process::Resident;
    use crate::shell::File;
    use crate::stats::Summary;

    let target = |name: &str, bytes: Option<u64>, seconds: f64| Target {
        name: name.to_owned(),
        file: bytes.map(|bytes| File { asked: bytes, entries: bytes / 132, bytes }),
        start: Summary::of([0.002]),
        resident: Some(Resident { anon: 3 << 20, file: 5 << 20 }),
        timings: COMMANDS.iter().map(|name| ((*name).to_owned(), Timing::of(&[seconds, seconds]).unwrap())).collect(),
    };
    let files = [1_000_000_000, 0].map(|bytes| target("boltkv", Some(bytes), 0.0015));
    let [echo, redis] = [("echo", 0.0012), ("Redis", 0.003)].map(|(name, seconds)| target(name, None, seconds));
    let targets = [vec![echo], files.into(), vec![redis]].concat();
    let (machine, command) = (Machine::default(), "cargo run".to_owned());
    let versions = std::iter::once(("hyperfine".to_owned(), "hyperfine 1.2.3".to_owned())).collect();
    Shell { machine, command, quick: false, versions, targets, left_out: vec![] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_goes_from_the_smallest_file_to_the_largest_and_to_the_others() {
        let text = verdict(&made_up());
        assert!(text.contains("From a file of 0 bytes to one of 1 GB:\nSET from 1.5ms to 1.5ms (1.00 ×)"), "{text}");
        assert!(text.contains("what the largest file's commands take: SET 0.80 ×, GET 0.80 ×"), "{text}");
        assert!(text.contains("as long as Redis': SET 0.50 ×, GET 0.50 ×"), "{text}");
    }

    #[test]
    fn nothing_measured_has_no_verdict() {
        assert_eq!(verdict(&Shell { targets: Vec::new(), ..made_up() }), "");
    }
}
