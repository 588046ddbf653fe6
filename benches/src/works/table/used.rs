//! Writes on a used file: what a work did to a file that was only loaded, it does again after three times as many random
//! overwrites as there are entries. A file is to level off, and its writes to stay as fast.

use super::{Entry, Scale};
use crate::data::Keys;
use crate::goal::{Figure, Row, plainly, times};
use crate::work::{Picks, Step, Work};

/// Those who write in place of what was there and keep what is free for later, in every way to keep it.
const FIELD: [&str; 10] = [
    "boltkv",
    "boltkv+on-close",
    "boltkv+not-stored",
    JOURNAL,
    "bbolt",
    "bbolt+not-stored",
    "lmdb",
    "redb",
    "fjall",
    "bbolt-rs",
];

const JOURNAL: &str = "boltkv+journal";

/// For writes that say less about it.
const FEW: [&str; 3] = ["boltkv", "bbolt", "lmdb"];

/// Entries that a commit of those overwrites that make a file a used one.
const SMALL: u64 = 100;

/// Overwrites for each entry that there is.
const OVERWRITES: u64 = 3;

const FRESH: &str = "fresh";
const USED: &str = "used";

/// Loads keys at random, has `write` done with random ones of them, uses the file, and has it done again. What was
/// deleted is put again.
fn used(work: Work, loaded: u64, count: u64, write: impl Fn(Picks) -> Step) -> Work {
    let put = |picks, batch| Step::Put { picks, batch, nested: false };
    // Random picks that begin elsewhere are other ones, and put other values.
    let picks = |from: u64, count| Picks { from: from << 40, ..Picks::random(count, loaded) };
    let measured = |work: Work, figure: &str, from| {
        let step = write(picks(from, count));
        let deletes = matches!(step, Step::Delete { .. });
        let synced = work.synced;
        let mut work = work.timed(figure, step);
        if !synced {
            work = work.timed(figure, Step::Sync);
        }
        if deletes { work.then(put(picks(from, count), 1_000)) } else { work }
    };
    let work = measured(work.then(put(Picks::first(loaded), 10_000)), FRESH, 2);
    measured(work.then(put(picks(3, OVERWRITES * loaded), SMALL)), USED, 4)
}

/// Whether a used file is as fast, and as small, as a fresh one.
fn goals(ours: &'static str, [rate, size]: [&'static str; 2]) -> [Row; 2] {
    [
        Row::of(rate, Figure::Ratio(USED, FRESH)).ours(ours).bar(plainly(0.9)).aim(plainly(1.0)),
        Row::of(size, Figure::Sizes(USED, FRESH)).ours(ours).bar(plainly(2.1)),
    ]
}

/// One put a commit, by everyone, in every way to keep free pages.
fn one_put(work: Work) -> Entry {
    let mut rows = vec![
        Row::of("one put a commit, 300k loaded at random, freelist stored", Figure::Rate(FRESH)),
        Row::of("the same on a used file", Figure::Rate(USED)),
        Row::of("size of that file, fresh", Figure::Size(FRESH)),
        Row::of("size of that file, used", Figure::Size(USED)),
    ];
    for (title, figure) in
        [("one put a commit, 300k loaded at random, with a journal", FRESH), ("with a journal, on a used file", USED)]
    {
        let row = Row::of(title, Figure::Rate(figure)).ours(JOURNAL);
        rows.push(row.bar(times(1.5, "lmdb")).aim(times(0.8, "fjall")));
    }
    rows.extend(goals(JOURNAL, ["with a journal: rate, used over fresh", "with a journal: size, used over fresh"]));
    rows.extend(goals("boltkv", ["freelist stored: rate, used over fresh", "freelist stored: size, used over fresh"]));
    rows.extend(goals(
        "boltkv+on-close",
        ["stored on a clean close: rate, used over fresh", "stored on a clean close: size, used over fresh"],
    ));
    rows.extend(goals(
        "boltkv+not-stored",
        ["freelist never stored: rate, used over fresh", "freelist never stored: size, used over fresh"],
    ));
    Entry::new(work, rows).by(&FIELD)
}

/// A write of many entries a commit.
fn many(work: Work, title: &'static str, titles: [&'static str; 2]) -> Entry {
    let mut rows = vec![Row::of(title, Figure::Rate(USED))];
    rows.extend(goals("boltkv", titles));
    Entry::new(work, rows).by(&FEW)
}

pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    let large = scale == Scale::Large;
    let loaded = if large { 1_000_000 } else { scale.of(300_000) };
    let (ten, hundred) = (scale.of(10_000), scale.of(100_000));
    let synced = |name| Work::new(name, Keys::Random, 32);
    let unsynced = |name| Work::new(name, Keys::Random16, 100).unsynced();
    let put = |batch| move |picks| Step::Put { picks, batch, nested: false };
    let delete = |picks| Step::Delete { picks, batch: 1_000 };
    vec![
        one_put(used(synced("used-one-put"), loaded, scale.of(3_000), put(1))).once(large),
        many(
            used(synced("used-random-10k"), loaded, hundred, put(ten)),
            "random overwrite, 10k a commit, used file",
            ["random overwrite, 10k a commit: rate, used over fresh", "its file: size, used over fresh"],
        )
        .once(large),
        many(
            used(synced("used-random-100k"), loaded, loaded, put(hundred)),
            "random overwrite, 100k a commit, used file",
            ["random overwrite, 100k a commit: rate, used over fresh", "that file: size, used over fresh"],
        )
        .once(large),
        many(
            used(unsynced("used-values-100"), loaded, hundred, put(1_000)),
            "values of 100 bytes, no sync, 1k a commit, used file: overwrite",
            ["values of 100 bytes, overwrite: rate, used over fresh", "values of 100 bytes: size, used over fresh"],
        )
        .once(large),
        many(
            used(unsynced("used-deletes-100"), loaded, hundred, delete),
            "values of 100 bytes, no sync, 1k a commit, used file: delete",
            [
                "values of 100 bytes, delete: rate, used over fresh",
                "values of 100 bytes, deleted: size, used over fresh",
            ],
        )
        .once(large),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_used_between_the_two_that_are_compared() {
        for entry in entries(Scale::Quick) {
            let stages = &entry.work.stages;
            let at = |figure: &str| stages.iter().position(|stage| stage.figure.as_deref() == Some(figure)).unwrap();
            let overwrites = stages[at(FRESH)..at(USED)].iter().filter_map(|stage| match stage.step {
                Step::Put { picks, batch: SMALL, .. } if stage.figure.is_none() => Some(picks.count),
                _ => None,
            });
            let Step::Put { picks: loaded, .. } = stages[0].step else { panic!("it is loaded first") };
            assert_eq!(overwrites.sum::<u64>(), OVERWRITES * loaded.count, "{}", entry.work.name);
        }
    }
}
