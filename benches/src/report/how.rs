//! How everything on the page was measured, and on what.

use std::collections::{BTreeMap, BTreeSet};

use super::Measured;
use super::page::Page;
use crate::machine::Machine;

const HOW: &str = "\
- Each engine does each work in a process of its own, from an empty folder on; the engines take turns, round by round,
  and each round begins with another one. A cell is the median of the rounds; in brackets the smallest and the
  largest.
- All get the same keys and values, byte for byte, from one generator (`benches/src/data.rs`, `benches/go/data.go`).
  A scan reads every byte of every key and value and sums them up, eight at a time; of what a get finds the first byte
  is summed up, so that the rest of a large value costs an engine nothing that only lends it, as all do but fjall. An
  engine that comes to another sum is named; so is one that holds other keys or values than the others when the work
  is done.
- What a row says is timed, and nothing else: a load before it is not. Works without syncs end with one, within what
  is timed.
- The keys that the table's reads and those of experiment (a) ask for, and those of a one-put commit, are consecutive
  integers, loaded in order, where a row says nothing else: the best case for boltkv's interpolation
  search. Those of the rows with 100-byte and 100,000-byte values are 16 random bytes; those of the other experiments
  and of the growth are what they say. Keys in clumps are 16 bytes, too: an owner's, scattered, then a number; a
  hundred entries of an owner lie together.
- Memory is the most that a process has for itself (`RssAnon`, looked at every 10 ms) while it does all of its work;
  not what it maps of its file, which Sanakirja writes in place. Pages in use are those that hold something at the
  end; the size of a file is that of all in its folder, once its process has ended.
- Every engine runs with its defaults, but for what a row says. LMDB gets a map that is large enough, and neither
  `MDB_APPEND` nor `MDB_INTEGERKEY`; fjall has a block cache of 32 MiB. Integer keys are kept as such by Sanakirja, as
  bytes by all others.
- A *used file* is one whose entries, loaded at random, were overwritten three times as often as there are entries, at
  random too, a hundred a commit. The same is measured before and after that, in one process; the size is that of all
  in its folder right after what is measured.
- All files fit into memory, and are read from the system's cache: how an engine does on a cold file, beside other
  load, or for the slowest one of a hundred operations, is not measured here.
- Sections were measured on different machines, and some on different commits, as the table below says: what is
  compared is compared within a section. A ratio is that of two medians; in brackets the least and the most of the
  rounds, each with the other's of the same round.
- A work that an engine does not end within the time limit, or fails in, is left out, all of it, and named. Others do
  not take part in all works: nut in none that syncs, as it never does; Sanakirja in none that puts a key twice, as it
  keeps both values; Go's bbolt, bbolt-rs and nut in none with a million random inserts in one transaction, which
  takes them time with the square of their number, and jammdb neither;
  bugfruit in none but its own. In gets of random keys and of keys in clumps only boltkv, bbolt and LMDB are compared.";

const UNSYNCED: &str = "\
\"Without syncs\" is not the same promise everywhere. What is left of what was committed since the last sync:";

/// Engines, what a commit without sync writes, and what two kinds of death leave of it.
const PROMISES: [[&str; 4]; 5] = [
    ["boltkv", "pages, no meta page", "the last synced state", "the last synced state"],
    ["bbolt, bbolt-rs, nut, LMDB", "pages and meta page", "all", "perhaps a broken file"],
    ["redb", "nothing that counts yet", "the last synced state", "the last synced state"],
    ["fjall", "its journal, buffered in the process", "what was written out", "what reached the disk, whole commits"],
    ["Sanakirja, jammdb", "as ever: they always sync", "all", "all"],
];

/// How, then the machines and the versions of all.
pub(super) fn section(measured: &[Measured], page: &mut Page) {
    // Servers elsewhere have their own table, which says where.
    let last = measured.iter().rposition(|measured| measured.servers().is_some());
    let counted =
        |(at, measured): (usize, _)| (Measured::servers(measured).is_none() || Some(at) == last).then_some(measured);
    let measured: Vec<_> = measured.iter().enumerate().filter_map(counted).collect();
    page.heading("## How it is measured");
    page.paragraph(HOW);
    page.paragraph(UNSYNCED);
    page.table(&["engine", "a commit writes", "after `kill -9`", "after a power cut"], &PROMISES.map(Vec::from));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (what, of) in MACHINE {
        rows.push(vec![what.to_owned(), each(&measured, |measured| of(measured.on().0))]);
    }
    let names: BTreeSet<_> = measured.iter().flat_map(|measured| measured.on().1.keys()).collect();
    for name in names {
        rows.push(vec![
            name.clone(),
            each(&measured, |measured| measured.on().1.get(name).cloned().unwrap_or_default()),
        ]);
    }
    page.heading("## Machine and versions");
    page.table(&["", ""], &rows);
}

type Tell = fn(&Machine) -> String;

/// What is told of a machine.
const MACHINE: [(&str, Tell); 9] = [
    ("processor", |machine| machine.processor.clone()),
    ("threads", |machine| machine.threads.to_string()),
    ("memory", |machine| format!("{} GiB", machine.memory >> 30)),
    ("kernel", |machine| machine.kernel.clone()),
    // `findmnt` may put the two into columns.
    ("file system", |machine| machine.files.split_whitespace().collect::<Vec<_>>().join(" ")),
    (
        "synced writes of 4 KiB a second",
        |machine| if machine.syncs == 0 { String::new() } else { machine.syncs.to_string() },
    ),
    ("boltkv", |machine| machine.commit.clone()),
    ("Rust", |machine| machine.rust.clone()),
    ("day", |machine| machine.day.clone()),
];

/// What is said of all that was measured: once where it is the same, else with what it is said of. Nothing is said of
/// what is not known.
fn each(measured: &[&Measured], of: impl Fn(&Measured) -> String) -> String {
    let mut by_value: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in measured {
        by_value.entry(of(one)).or_default().push(one.name());
    }
    by_value.remove("");
    if by_value.len() == 1 {
        return by_value.into_keys().collect();
    }
    let said: Vec<_> = by_value.iter().map(|(value, of)| format!("{value} ({})", of.join(", "))).collect();
    said.join("; ")
}
