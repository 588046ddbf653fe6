//! Called by bbolt's name: too few arguments, too many, and flags in every spelling are taken as bbolt's own command takes them.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;

use crate::common::linked::{Both, both};
use boltkv_storage::{Db, FreelistStored, Options};

/// Every command that runs, but for `bench` and `version`, which take whatever comes.
const COMMANDS: [&[&str]; 20] = [
    &["buckets"],
    &["check"],
    &["compact"],
    &["dump"],
    &["get"],
    &["info"],
    &["inspect"],
    &["keys"],
    &["page"],
    &["page-item"],
    &["pages"],
    &["stats"],
    &["surgery", "clear-page"],
    &["surgery", "clear-page-elements"],
    &["surgery", "copy-page"],
    &["surgery", "revert-meta-page"],
    &["surgery", "freelist", "abandon"],
    &["surgery", "freelist", "rebuild"],
    &["surgery", "meta", "update"],
    &["surgery", "meta", "validate"],
];

#[test]
fn every_command_counts_its_arguments_and_misses_its_flags_alike() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let (missing, no) = (folder.join("missing"), folder.join("no"));
    for command in COMMANDS {
        for count in 0..6 {
            let words = command.iter().map(Into::into);
            let line: Vec<_> = words.chain((0..count).map(|_| missing.clone().into())).collect();
            let ran = both.same(&line);
            assert_eq!(ran.code, Some(1), "{line:?}");
        }
        for flag in
            ["--nonsense", "--output", "--output=", "-q", "-", "--", "-o", "-fo", "--format", "--all", "--all=x"]
        {
            let words = command.iter().map(Into::into);
            let line: Vec<_> = words.chain([missing.clone().into(), flag.into(), no.clone().into()]).collect();
            both.same(&line);
        }
    }
    assert!(!missing.exists() && !no.exists());
}

/// Command lines with names of files in capitals.
const SPELLINGS: &str = "
    keys -fhex ODD bytes
    keys -f=hex ODD bytes
    keys --format=hex ODD bytes
    keys --format hex -- ODD bytes
    keys ODD bytes -fhex -fbytes
    get ODD texts plain --format=hex --parse-format=ascii-encoded
    page --all ODD
    page --all=true ODD
    page --all=false ODD 3
    page --all=T ODD
    page ODD --format-value hex 3 0x3 03
    page ODD 2 1 0 2
    page-item ODD 3 0 --key-only=false --value-only
    page-item ODD 3 0 --key-only=1
    page-item ODD 0x3 0
    check ODD --from-page 0
    check ODD --from-page 0x3
    check ODD --from-page=3
    check ODD --from-page -1
    check --from-page 18446744073709551616 ODD
    stats ODD t
    stats ODD no-such-bucket
    dump ODD 0x3
    dump ODD 1 1
    buckets -h
    --nonsense
    -x
    --version check
    check --version
    surgery --nonsense
    surgery meta
    surgery freelist nonsense";

#[test]
fn flags_and_numbers_are_spelt_alike() {
    let Some(both) = both() else { return };
    for line in SPELLINGS.lines().filter(|line| !line.is_empty()) {
        let words = line.split_whitespace().map(|word| if word == "ODD" { both.file("odd") } else { word.into() });
        let args: Vec<_> = words.collect();
        let (theirs, ours) = (both.files.bbolt.run(&args), both.linked.run(&args));
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!((ours.code, first(&ours.stderr)), (theirs.code, first(&theirs.stderr)), "{line}");
        // Help is worded by each for itself.
        if !theirs.text().contains("Usage:") {
            assert_eq!(ours.text(), theirs.text(), "{line}");
        }
    }
}

#[test]
fn a_freelist_is_rebuilt_alike() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let source = folder.join("without a list");
    let db = Options::new().freelist(FreelistStored::Never).open(&source).unwrap();
    for round in 0..5_u8 {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put("key", vec![round; 20_000])).unwrap();
    }
    db.close().unwrap();
    let (theirs, ours) = (folder.join("theirs"), folder.join("ours"));
    let line = |output: &Path| args!["surgery", "freelist", "rebuild", &source, "--output", output].to_vec();
    let (their, our) = (both.files.bbolt.run(line(&theirs)), both.linked.run(&line(&ours)));
    Both::compare(&line(&ours), &their, &our);
    assert_eq!(our.code, Some(0));
    for file in [&theirs, &ours] {
        assert_eq!(both.same(&args!["check", file]).done_text(), "OK\n");
        assert_eq!(
            Db::open(file).unwrap().begin().unwrap().bucket("b").unwrap().get("key").unwrap().unwrap().len(),
            20_000
        );
    }
    let list = |file: &Path| both.files.bbolt.run(args!["pages", file]).done_text().matches(" free ").count();
    assert_eq!(list(&ours), list(&theirs));
    // One that has a list needs none.
    fs::remove_file(&ours).unwrap();
    both.same(&args!["surgery", "freelist", "rebuild", &theirs, "--output", &ours]);
}
