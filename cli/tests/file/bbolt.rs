//! Called by bbolt's name: arguments, words and exit codes are those of bbolt's own command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::files::SMALL;
use crate::common::linked::{Both, Linked, both};
use crate::common::surgery::Table;
use crate::common::{Ran, boltkv};
use boltkv_storage::{Db, PageType};

#[test]
fn what_is_looked_at_is_printed_alike() {
    let Some(both) = both() else { return };
    // The large ones are compared command by command, in the tests of `boltkv file …`.
    for name in SMALL {
        let file = both.file(name);
        for command in ["check", "buckets", "info", "inspect", "pages", "stats"] {
            both.same(&args![command, &file]);
        }
        both.same(&args!["page", "--all", &file]);
        both.same(&args!["page", &file, "0", "1", "", "2", "999999", "--format-value=redacted"]);
        both.same(&args!["dump", &file, "0", "3"]);
        both.same(&args!["check", &file, "--from-page", "3"]);
    }
    assert_eq!(both.same(&args!["check", both.file("odd")]).done_text(), "OK\n");
    let (odd, nested) = (both.file("odd"), both.file("nested"));
    for format in ["auto", "ascii-encoded", "hex", "bytes", "redacted"] {
        both.same(&args!["keys", &odd, "bytes", "-f", format]);
        both.same(&args!["get", &odd, "texts", "größe", "--format", format]);
        both.same(&args!["page-item", &odd, "3", "0", "--format", format]);
    }
    both.same(&args!["get", "--parse-format", "hex", &odd, "bytes", "ff"]);
    both.same(&args!["stats", &nested, "a"]);
    both.same(&args!["page-item", "--key-only", &odd, "3", "0"]);
    both.same(&args!["page-item", "--value-only", &odd, "3", "0"]);
}

/// Command lines that fail, with names of files in capitals; EMPTY is an empty argument.
const FAILURES: &str = "
    check MISSING
    check
    check FILE FILE
    check FILE --from-page 1
    check FILE --from-page x
    check FILE --from-page
    check FILE --nonsense
    check FILE -x
    check TEXT
    check DAMAGED
    info DAMAGED
    buckets TEXT
    keys FILE
    keys FILE no-such-bucket
    keys FILE -f
    keys ODD texts plain
    keys ODD texts --format nonsense
    get FILE
    get ODD texts EMPTY
    get ODD texts no-such-key
    get ODD größe plain
    get ODD texts plain --parse-format nonsense
    get ODD texts 0 --parse-format hex
    get ODD texts 0g --parse-format hex
    page FILE
    page FILE 0 --all
    page FILE x
    page FILE --all=maybe
    page-item FILE 0
    page-item FILE x 0
    page-item ODD 3 99
    page-item ODD 0 0
    page-item ODD 99 0
    page-item ODD 3 0 --key-only --value-only
    pages
    pages DAMAGED
    stats FILE a b
    dump FILE
    dump FILE -1
    dump FILE EMPTY
    dump FILE 999999
    compact
    compact FILE
    compact FILE -o EMPTY
    compact FILE --output
    bench --count x
    bench --count 10 --batch-size 3
    bench --write-mode nonsense
    surgery copy-page FILE
    surgery copy-page FILE --from-page 3 --to-page 3 --output MISSING
    surgery clear-page FILE --pageId 1 --output MISSING
    surgery clear-page MISSING --pageId 3 --output MISSING
    surgery freelist rebuild FILE --output MISSING
    surgery meta update FILE --meta-page 2 --output MISSING
    surgery meta update FILE --fields root --output MISSING
    surgery meta update FILE --fields txid:1 --output MISSING
    surgery meta update FILE --fields root:x --output MISSING
    surgery meta validate
    nonsense";

#[test]
fn failures_have_bbolts_words_and_its_code() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let (missing, text, damaged) = (folder.join("missing"), folder.join("text"), folder.join("damaged"));
    fs::write(&text, "no database\n".repeat(1000)).unwrap();
    let mut bytes = fs::read(both.files.path("odd")).unwrap();
    bytes[72] ^= 1;
    bytes[4096 + 72] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    for line in FAILURES.lines().filter(|line| !line.is_empty()) {
        let words = line.split_whitespace().map(|word| match word {
            "FILE" => both.file("nested"),
            "ODD" => both.file("odd"),
            "MISSING" => missing.clone().into(),
            "TEXT" => text.clone().into(),
            "DAMAGED" => damaged.clone().into(),
            "EMPTY" => "".into(),
            word => word.into(),
        });
        assert_eq!(both.same(&words.collect::<Vec<_>>()).code, Some(1), "{line}");
    }
    assert!(!missing.exists());
}

#[test]
fn a_damaged_file_is_told_of_and_fails() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let damaged = folder.join("damaged");
    let mut bytes = fs::read(both.files.path("odd")).unwrap();
    // The type of the page that holds the names of the buckets: of no kind.
    let root = Db::open(both.files.path("odd")).unwrap().begin().unwrap().bucket("bytes").unwrap().root_page().unwrap();
    let at = usize::try_from(root * 4096).unwrap();
    bytes[at..at + 8].fill(0xee);
    fs::write(&damaged, bytes).unwrap();
    let ran = both.linked.run(&args!["check", &damaged]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.text().contains("errors found\n"), "{}", ran.text());
    assert!(ran.stderr.starts_with("Error: invalid value\nUsage:\n"), "{}", ran.stderr);
    // As in bbolt, what cannot be printed is no failure.
    let ran = both.linked.run(&args!["page", &damaged, root.to_string(), "0"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert!(ran.text().contains(&format!("Prining page {root} failed: ")), "{}", ran.text());
}

#[test]
fn pages_that_are_counted_wrong_are_called_as_bbolt_calls_them() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let table = Table::new();
    let source = &table.source;
    let file = boltkv_storage::tools::RawFile::open(source, None).unwrap();
    let list = usize::try_from(file.newest_meta().unwrap().freelist * u64::from(file.page_size())).unwrap();
    let in_use = Db::open(source).unwrap().begin().unwrap().bucket("data").unwrap().root_page().unwrap();
    let bytes = fs::read(source).unwrap();
    let ids = |bytes: &mut Vec<u8>, index: usize, id: u64| {
        let at = list + 16 + 8 * (index + 1);
        bytes[at..at + 8].copy_from_slice(&id.to_le_bytes());
    };
    let second = u64::from_le_bytes(bytes[list + 32..list + 40].try_into().unwrap());
    for (name, id, word) in [("twice", second, "already freed"), ("used", in_use, "reachable freed")] {
        let damaged = folder.join(name);
        let mut bytes = bytes.clone();
        // In place of the first that is listed, which then is nowhere.
        ids(&mut bytes, 0, id);
        fs::write(&damaged, bytes).unwrap();
        let (theirs, ours) =
            (both.files.bbolt.run(args!["check", &damaged]), both.linked.run(&args!["check", &damaged]));
        let sorted = |ran: &Ran| {
            let mut lines: Vec<_> = ran.text().lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!((ours.code, sorted(&ours)), (theirs.code, sorted(&theirs)), "{name}");
        assert!(ours.text().contains(word) && ours.text().contains("unreachable unfreed"), "{}", ours.text());
    }
}

#[test]
fn one_damaged_meta_is_passed_over_as_bbolt_does_but_people_hear_of_it() {
    let Some(both) = both() else { return };
    let damaged = both.files.folder.path().join("damaged");
    let mut bytes = fs::read(both.files.path("odd")).unwrap();
    bytes[4096 + 72] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let (theirs, ours) = (both.files.bbolt.run(args!["check", &damaged]), both.linked.run(&args!["check", &damaged]));
    assert_eq!((ours.code, ours.text()), (theirs.code, theirs.text()));
    assert!(ours.stderr.starts_with("warning: ") && ours.stderr.lines().count() == 1, "{}", ours.stderr);
}

#[test]
fn compact_makes_a_new_file_and_writes_into_one_that_is_there() {
    let Some(both) = both() else { return };
    let folder = both.files.folder.path();
    let empty = |name: &str| {
        let path = folder.join(name);
        drop(Db::open(&path).unwrap());
        path
    };
    for (theirs, ours) in [("theirs", "ours"), ("their empty", "our empty")] {
        let (theirs, ours) =
            if theirs == "theirs" { (folder.join(theirs), folder.join(ours)) } else { (empty(theirs), empty(ours)) };
        let file = both.file("odd");
        let their = both.files.bbolt.run(args!["compact", "-o", &theirs, &file]);
        let our = both.linked.run(&args!["compact", "-o", &ours, &file]);
        // How much room to grow is left at the end of the new file is another matter.
        let before = |ran: &Ran| ran.text().split(" -> ").next().map(str::to_owned);
        assert_eq!((our.code, before(&our)), (their.code, before(&their)), "{}", our.stderr);
        assert!(our.text().contains(" bytes (gain="), "{}", our.text());
        assert_eq!(both.linked.run(&args!["check", &ours]).done_text(), "OK\n");
        let dumped = |file: &Path| crate::common::run(args!["file", "export", file]).done();
        assert!(dumped(&ours) == dumped(&both.files.path("odd")));
        // What is there already stays, for both.
        Both::compare(
            &args!["compact again"],
            &both.files.bbolt.run(args!["compact", "-o", &theirs, &file]),
            &both.linked.run(&args!["compact", "-o", &ours, &file]),
        );
        assert!(dumped(&ours) == dumped(&both.files.path("odd")));
    }
    let file = both.file("nested");
    let before = fs::read(&file).unwrap();
    assert_eq!(both.linked.run(&args!["compact", "-o", &file, &file]).code, Some(1));
    assert!(fs::read(&file).unwrap() == before);
}

#[test]
fn surgery_says_and_makes_the_same_also_of_a_file_in_use_and_not_over_a_file_that_is_there() {
    let Some(both) = both() else { return };
    let table = Table::new();
    let _in_use = Db::open(&table.source).unwrap();
    let (leaf, _) = table.page(PageType::Leaf, 5);
    let (branch, _) = table.page(PageType::Branch, 2);
    let operations: [&[&str]; 9] = [
        &["revert-meta-page"],
        &["copy-page", "--from-page", &leaf, "--to-page", "2"],
        &["clear-page", "--pageId", &leaf],
        &["clear-page-elements", "--pageId", &leaf, "--from-index", "0", "--to-index", "2"],
        &["clear-page-elements", "--pageId", &branch, "--from-index", "1", "--to-index=-1"],
        &["freelist", "abandon"],
        &["meta", "update", "--fields", "root:5,pgid:0x20"],
        &["meta", "update", "--meta-page", "1", "--fields", "root:5", "--fields", "pgid:32,freelist:4"],
        &["meta", "update", "--meta-page", "1"],
    ];
    let (theirs, ours) = (table.folder.path().join("theirs"), &table.output);
    for operation in operations {
        let line = |output: &Path| -> Vec<OsString> {
            let words = ["surgery"].iter().chain(operation).map(OsString::from);
            words.chain([table.source.clone().into(), "--output".into(), output.into()]).collect()
        };
        let (their, our) = (both.files.bbolt.run(line(&theirs)), both.linked.run(&line(ours)));
        Both::compare(&line(ours), &their, &our);
        if our.code == Some(0) {
            assert!(fs::read(&theirs).unwrap() == fs::read(ours).unwrap(), "{operation:?}: the copies differ");
        }
        fs::write(&theirs, "there").unwrap();
        assert_eq!(both.same(&line(&theirs)).code, Some(1));
        assert_eq!(fs::read(&theirs).unwrap(), b"there");
        fs::remove_file(&theirs).unwrap();
        let _ = fs::remove_file(ours);
    }
    both.same(&args!["surgery", "meta", "validate", &table.source]);
}

#[test]
fn a_locked_file_is_waited_for_as_long_as_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, linked) = (folder.path().join("a.db"), Linked::new(folder.path()));
    let held = Db::open(&file).unwrap();
    let child =
        Command::new(&linked.0).args(["info".as_ref(), file.as_os_str()]).stdout(Stdio::piped()).spawn().unwrap();
    drop(held);
    let ran: Ran = child.wait_with_output().unwrap().into();
    assert_eq!((ran.code, &*ran.text()), (Some(0), "Page Size: 4096\n"));
}

#[test]
fn bench_and_version_have_the_same_shape() {
    let Some(both) = both() else { return };
    let path = both.files.folder.path().join("bench");
    let ran = both.linked.run(&args!["bench", "--count", "10", "--path", &path]);
    assert_eq!((ran.code, path.exists()), (Some(0), false), "{}", ran.stderr);
    assert_eq!(ran.stderr, "starting write benchmark.\nstarting read benchmark.\n");
    assert!(ran.text().starts_with("# Write\t10(ops)\t") && ran.text().contains("\n# Read\t"), "{}", ran.text());
    let names =
        |ran: Ran| ran.text().lines().map(|line| line.split(": ").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(both.linked.run(&args!["version"])), names(both.files.bbolt.run(args!["version"])));
    both.same(&args!["--version"]);
}

#[test]
fn by_its_own_name_it_is_itself() {
    let ran: Ran = boltkv(args!["check", "a.db"]).output().unwrap().into();
    assert_eq!(ran.code, Some(2));
}
