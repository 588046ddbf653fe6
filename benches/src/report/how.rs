//! How everything on the page was measured, and on what.

use std::collections::BTreeMap;

use super::Measured;
use super::page::Page;

const HOW: &str = "\
- Each engine does each work in a process of its own, from an empty folder on; the engines take turns, round by round,
  and each round begins with another one. A cell is the median of the rounds; in brackets the smallest and the largest.
- All get the same keys and values, byte for byte, from one generator (`benches/src/data.rs`, `benches/go/data.go`).
  What they read is summed up, and who has read something else than the others is named below.
- Loading is not timed. Works without syncs end with one, within what is timed. Those that always sync (Sanakirja,
  jammdb) pay for it in these works; nut never syncs, and sits the others out.
- Keys that are read are consecutive integers, loaded in order, where a row says nothing else; they suit best a search
  that guesses where a key stands. Those of the rows with 100-byte and 100,000-byte values are 16 random bytes. Keys in
  clumps are 16 bytes, too: an owner's, scattered, then a number; a hundred entries of an owner lie together.
- Memory is what a process has for itself (`RssAnon`), looked at every 10 ms. Pages in use are those that hold something
  at the end; the size of a file is that of all in its folder, once its process has ended.
- Every engine runs with its defaults, but for what a row says. LMDB gets a map that is large enough. Integer keys are
  kept as such by Sanakirja, as bytes by all others.
- A work that an engine cannot do, does not end within the time limit, or fails in is left out of its row, and named
  below.";

/// How, then the machine of one result, and the versions of all.
pub(super) fn section(any: &Measured, measured: &[Measured], page: &mut Page) {
    page.heading("## How it is measured");
    page.paragraph(HOW);
    let (machine, _) = any.on();
    let versions: BTreeMap<_, _> = measured.iter().flat_map(|measured| measured.on().1).collect();
    let memory = format!("{} GiB", machine.memory >> 30);
    let mut commits: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in measured {
        commits.entry(&one.on().0.commit).or_default().push(one.name());
    }
    let commits: Vec<_> = commits.iter().map(|(commit, of)| format!("{commit} ({})", of.join(", "))).collect();
    let commits = commits.join("; ");
    let threads = machine.threads.to_string();
    let mut rows = vec![
        vec!["processor", &machine.processor],
        vec!["threads", &threads],
        vec!["memory", &memory],
        vec!["kernel", &machine.kernel],
        vec!["boltkv", &commits],
        vec!["Rust", &machine.rust],
        vec!["day", &machine.day],
    ];
    rows.extend(versions.iter().map(|(name, version)| vec![name.as_str(), version.as_str()]));
    page.heading("## Machine and versions");
    page.table(&["", ""], &rows);
}
