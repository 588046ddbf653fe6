//! A file whose last process was killed, with transactions that only its journal has: every command on files sees them, or
//! says that a journal waits and what to do; none silently shows or changes the older state.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use crate::common::run;
use crate::killed::{Killed, copy};
use boltkv_storage::tools::FileJournal;
use boltkv_storage::{Db, JournalOptions, Options};

fn value(file: &Path, path: &[&str], key: &str) -> Option<Vec<u8>> {
    let db = Db::open(file).unwrap();
    let tx = db.begin().unwrap();
    tx.bucket_path(path).ok()?.get(key).unwrap().map(<[u8]>::to_vec)
}

/// A commit that the journal knows nothing of.
fn change_alone(killed: &Killed) {
    killed.run("file journal --discard FILE").done();
    Db::open(killed.file()).unwrap().update(|tx| tx.create_bucket("other").map(drop)).unwrap();
}

/// What becomes of a command.
#[derive(Clone, Copy)]
enum Does {
    /// Refuses, with this exit code and the way on.
    Refuses(i32),
    /// Shows the file as it lies, and warns.
    Warns,
    /// Has to do with the journal itself, or with no file that is there.
    Other,
}
use Does::{Other, Refuses, Warns};

const COMMANDS: [(&str, Does); 32] = [
    ("bench --count 10", Other),
    ("buckets FILE", Refuses(3)),
    ("check FILE", Refuses(3)),
    ("compact FILE --output OUT", Refuses(3)),
    ("diff FILE OTHER", Refuses(3)),
    ("dump FILE 0", Warns),
    ("export FILE", Refuses(3)),
    ("get FILE b old", Refuses(3)),
    ("import FILE", Refuses(3)),
    ("info FILE", Refuses(1)),
    ("inspect FILE", Refuses(3)),
    ("journal FILE", Other),
    ("keys FILE b", Refuses(3)),
    ("page FILE 0", Warns),
    ("page-item FILE 3 0", Warns),
    ("pages FILE", Refuses(3)),
    ("path FILE b old", Refuses(3)),
    ("peek FILE get b old", Warns),
    ("peek FILE scan b", Warns),
    ("peek FILE stats", Warns),
    ("peek FILE tree", Warns),
    ("repair FILE --output OUT", Other),
    ("stats FILE", Refuses(3)),
    ("surgery revert-meta-page FILE --output OUT", Refuses(3)),
    ("surgery copy-page FILE --output OUT --from-page 2 --to-page 3", Refuses(3)),
    ("surgery clear-page FILE --output OUT --pageId 3", Refuses(3)),
    ("surgery clear-page-elements FILE --output OUT --pageId 3 --from-index 0 --to-index 1", Refuses(3)),
    ("surgery freelist abandon FILE --output OUT", Refuses(3)),
    ("surgery freelist rebuild FILE --output OUT", Refuses(3)),
    ("surgery meta validate FILE", Warns),
    ("surgery meta update FILE --output OUT --fields freelist:none", Refuses(3)),
    ("tree FILE", Refuses(3)),
];

#[test]
fn no_command_silently_shows_or_changes_the_older_state() {
    let killed = Killed::new();
    drop(Db::open(killed.path("other.db")).unwrap());
    let before = killed.bytes();
    for (line, does) in COMMANDS {
        let ran = killed.run(&format!("file {line}"));
        match does {
            Other => drop(fs::remove_file(killed.path("out.db"))),
            Refuses(code) => {
                assert_eq!(ran.code, Some(code), "{line}: {}", ran.stderr);
                assert!(ran.stderr.contains("app.db-journal up to 5"), "{line}: {}", ran.stderr);
                assert!(ran.stderr.contains("`boltkv file journal --apply "), "{line}: {}", ran.stderr);
                assert!(!killed.path("out.db").exists(), "{line}");
            }
            Warns => {
                assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
                assert!(ran.stderr.starts_with("warning: "), "{line}: {}", ran.stderr);
                assert_eq!(ran.stderr.lines().count(), 1, "{line}: {}", ran.stderr);
                assert!(ran.stderr.contains("app.db-journal up to 5"), "{line}: {}", ran.stderr);
            }
        }
        assert!(killed.bytes() == before, "{line}: something was changed");
    }
}

#[test]
fn every_command_is_among_them() {
    let listed = |args: &[&str]| -> Vec<String> {
        let help = run(args.iter().chain(&["--help"])).done_text();
        let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
    };
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(group) = groups.pop() {
        let words: Vec<&str> = std::iter::once("file").chain(group.iter().map(String::as_str)).collect();
        let names = listed(&words);
        let line = format!("{} ", group.join(" ")).replace("peek ", "peek FILE ");
        assert!(
            !names.is_empty() || COMMANDS.iter().any(|(command, _)| format!("{command} ").starts_with(&line)),
            "`{line}` is not in the table"
        );
        groups.extend(names.into_iter().map(|name| group.iter().cloned().chain([name]).collect()));
    }
}

#[test]
fn called_as_bbolt_it_says_so_too() {
    let killed = Killed::new();
    let before = killed.bytes();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_boltkv"), killed.path("bbolt")).unwrap();
    let lines =
        ["buckets FILE", "check FILE", "get FILE b old", "info FILE", "inspect FILE", "keys FILE b", "pages FILE"];
    let looks = ["page FILE 0", "dump FILE 0", "surgery freelist abandon FILE --output OUT"];
    for line in lines.iter().chain(&looks) {
        let args = line.split(' ').map(|word| match word {
            "FILE" => killed.file().into(),
            "OUT" => killed.path("out.db").into(),
            word => OsString::from(word),
        });
        let ran = std::process::Command::new(killed.path("bbolt")).args(args).output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert!(stderr.contains("app.db-journal up to 5"), "{line}: {stderr}");
        assert_eq!(ran.status.success(), looks.contains(line), "{line}: {stderr}");
    }
    assert!(killed.bytes() == before);
}

#[test]
fn what_waits_is_told_and_applied() {
    let killed = Killed::new();
    let told = killed.run("file journal FILE --effects").done_text();
    assert!(told.contains("State: the file holds transactions up to 3; 2 transactions up to 5 ("), "{told}");
    assert!(told.contains("  put b/ new = 2\n"), "{told}");
    assert!(told.contains("  create-bucket b2/ in\n") && told.contains("  put b2/in/ deep = 3\n"), "{told}");
    let json = killed.run("file journal FILE --effects --json").done_text();
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["journal"]["newest"], &lines[0]["journal"]["records"]), (&5.into(), &2.into()));
    assert!(lines.iter().any(|line| line["effect"]["value"] == "Mg=="), "{json}");

    let applied = killed.run("file journal --apply FILE").done_text();
    assert!(applied.ends_with("2 transactions applied, up to 5; the file holds everything\n"), "{applied}");
    assert_eq!(value(&killed.file(), &["b2", "in"], "deep").unwrap(), b"3");
    killed.run("file check FILE").done();
    let told = killed.run("file journal FILE").done_text();
    assert!(told.contains("State: the file holds everything, up to transaction "), "{told}");
    killed.run("file get FILE b new").done();
    // Page-level tools have nothing to warn of any more.
    assert_eq!(killed.run("file page FILE 0").stderr, "");
    let again = killed.run("file journal --apply FILE").done_text();
    assert!(again.contains("it held everything already"), "{again}");
}

#[test]
fn where_a_bucket_was_moved_is_told() {
    let killed = Killed::after(|db| {
        db.update(|tx| {
            tx.create_bucket("c")?.create_bucket("in")?;
            tx.move_bucket("in", &["c"], &["b"])?;
            tx.move_bucket_as("in", &["b"], &[], "out")
        })
        .unwrap();
    });
    let told = killed.run("file journal FILE --effects").done_text();
    assert!(told.contains("  move-bucket c/ in to b/in/\n  move-bucket b/ in to out/\n"), "{told}");
}

#[test]
fn what_waits_is_given_up_when_asked() {
    let killed = Killed::new();
    let before = killed.bytes();
    let ran = killed.run("file journal --discard FILE");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("its journal fits, with 2 transactions that the file lacks"), "{}", ran.stderr);
    assert!(killed.bytes() == before);
    let told = killed.run("file journal --discard --force FILE").done_text();
    assert!(told.ends_with("as transaction 3 left it; 2 transactions of its journal given up\n"), "{told}");
    assert_eq!(value(&killed.file(), &["b"], "new"), None);
    assert_eq!(value(&killed.file(), &["b"], "old").unwrap(), b"1");
}

#[test]
fn a_journal_that_does_not_fit_is_refused_with_the_way_on() {
    let killed = Killed::new();
    let other = Killed::new();
    fs::copy(other.file(), killed.file()).unwrap();
    // A commit that the journal knows nothing of, as a program that knows of no journals makes it.
    fs::rename(killed.path("app.db-journal"), killed.path("away")).unwrap();
    change_alone(&killed);
    fs::remove_dir_all(killed.path("app.db-journal")).unwrap();
    fs::rename(killed.path("away"), killed.path("app.db-journal")).unwrap();
    let before = killed.bytes();
    let ran = killed.run("file journal FILE");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(": its journal does not fit; "), "{}", ran.stderr);
    for way_on in ["--effects", "--discard"] {
        assert!(ran.stderr.contains(&format!("`boltkv file journal {way_on} ")), "{}", ran.stderr);
    }
    assert!(
        ran.text().contains("State: the journal in ") && ran.text().contains("does not fit the file"),
        "{}",
        ran.text()
    );
    assert!(ran.text().contains(" not known\n") && !ran.text().contains(" kept\n"), "{}", ran.text());
    for line in ["file get FILE b old", "file journal --apply FILE"] {
        let ran = killed.run(line);
        assert_eq!(ran.code, Some(3), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("does not fit the file"), "{line}: {}", ran.stderr);
    }
    assert!(killed.bytes() == before);
    let told = killed.run("file journal --discard FILE").done_text();
    assert!(told.ends_with("its journal is given up, with 3 transactions that can be read in it\n"), "{told}");
    killed.run("file get FILE b old").done();
}

#[test]
fn of_a_newest_record_that_is_not_whole_no_more_is_said_than_is_known() {
    let killed = Killed::new();
    killed.damage_from_the_end(1);
    let torn = "is not whole, and nothing shows that it was synced";
    let told = killed.run("file journal FILE").done_text();
    assert!(told.contains("1 transaction up to 4") && told.contains("\nTorn: ") && told.contains(torn), "{told}");
    let folder = tempfile::tempdir().unwrap();
    copy(killed.0.path(), folder.path());
    let options = || Options::new().journal(JournalOptions::new());
    let db = options().open(folder.path().join("app.db")).unwrap();
    assert!(db.stats().journal.unwrap().torn);
    drop(db);
    assert!(
        !options().open(folder.path().join("app.db")).unwrap().stats().journal.unwrap().torn,
        "the next journal has no such end"
    );
    let told = killed.run("file journal --apply FILE").done_text();
    assert!(told.contains("1 transaction applied, up to 4") && told.contains(torn), "{told}");
}

#[test]
fn a_torn_end_below_a_folder_whose_name_is_no_text_is_json_all_the_same() {
    let killed = Killed::new();
    killed.damage_from_the_end(1);
    let folder = killed.0.path().join(OsString::from_vec(b"n\xff".to_vec()));
    fs::create_dir(&folder).unwrap();
    copy(killed.0.path(), &folder);
    let told = run(args!["file", "journal", "--json", folder.join("app.db")]).done_text();
    let head: serde_json::Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let file = head["journal"]["torn"]["file"].as_str().unwrap();
    assert!(file.contains("/n\u{fffd}/app.db-journal/"), "{file}");
}

#[test]
fn a_journal_on_a_disk_that_is_read_only_is_looked_at() {
    let killed = Killed::new();
    for (path, mode) in [(killed.file(), 0o400), (killed.path("app.db-journal"), 0o500)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let told = killed.run("file journal FILE").done_text();
    assert!(told.contains("2 transactions up to 5"), "{told}");
    fs::set_permissions(killed.path("app.db-journal"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_file_without_a_journal_has_none() {
    let killed = Killed::new();
    drop(Db::open(killed.path("other.db")).unwrap());
    assert!(killed.run("file journal OTHER").done_text().contains("other.db: no journal beside it"));
    let json: serde_json::Value = killed.run("file journal --json OTHER").done_text().parse().unwrap();
    assert!(json["nothing"]["file"].as_str().unwrap().ends_with("other.db"), "{json}");
    assert_eq!(killed.run("file journal OUT").code, Some(3));
}

#[test]
fn repair_does_again_what_the_journal_records() {
    let killed = Killed::new();
    let before = killed.bytes();
    let told = killed.run("file repair FILE --output OUT").done_text();
    assert!(told.contains("of its journal: 2 transactions up to 5\n"), "{told}");
    // What it holds in the end is counted.
    assert!(told.contains("3 buckets, 3 values, of transaction 3\n"), "{told}");
    assert_eq!(value(&killed.path("out.db"), &["b"], "new").unwrap(), b"2");
    assert_eq!(value(&killed.path("out.db"), &["b2", "in"], "deep").unwrap(), b"3");
    assert!(killed.bytes() == before);
}

#[test]
fn repair_goes_on_over_a_damaged_journal_and_says_what_is_lost() {
    let killed = Killed::new();
    killed.damage_the_second_record();
    let ran = killed.run("file journal FILE");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(": its journal is damaged; "), "{}", ran.stderr);
    let ran = killed.run("file repair FILE --output OUT");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let told = String::from_utf8(ran.stdout).unwrap();
    assert!(told.contains("lost: of the journal: all after transaction 3: the journal is damaged: "), "{told}");
    assert_eq!(value(&killed.path("out.db"), &["b"], "old").unwrap(), b"1");
    killed.run("file journal --discard FILE").done();
    killed.run("file check FILE").done();
}

#[test]
fn a_damaged_header_of_the_only_segment_is_told_and_nothing_is_called_whole() {
    let killed = Killed::new();
    let used = FileJournal::find(killed.file(), None).unwrap().unwrap();
    let names: Vec<_> = used.segments().map(|segment| killed.path("app.db-journal").join(segment.file)).collect();
    for name in names {
        fs::File::options().write(true).open(name).unwrap().write_all_at(b"damage", 60).unwrap();
    }
    for (line, code) in [("file journal FILE", 1), ("file repair FILE --output OUT", 1), ("file check FILE", 3)] {
        let ran = killed.run(line);
        let told = String::from_utf8(ran.stdout).unwrap() + &ran.stderr;
        assert_eq!(ran.code, Some(code), "{line}: {told}");
        assert!(told.contains("the header of segment 1 was synced, and is damaged"), "{line}: {told}");
    }
}

#[test]
fn a_mistyped_folder_gives_up_no_other_journal() {
    let killed = Killed::new();
    let before = killed.bytes();
    let typo = killed.path("typo");
    for flag in ["", "--discard ", "--apply "] {
        let ran = killed.run(&format!("file journal {flag}FILE --folder {}", typo.display()));
        assert!(ran.code == Some(3) && ran.stderr.contains("not there, or no folder"), "{flag}: {}", ran.stderr);
    }
    fs::create_dir(&typo).unwrap();
    let ran = killed.run(&format!("file journal --discard FILE --folder {}", typo.display()));
    assert!(ran.code == Some(3) && ran.stderr.contains("open it with the journal first"), "{}", ran.stderr);
    assert!(killed.bytes() == before);
}

#[test]
fn repair_tells_that_a_journal_is_not_there() {
    let killed = Killed::new();
    fs::remove_dir_all(killed.path("app.db-journal")).unwrap();
    let ran = killed.run("file repair FILE --output OUT");
    assert!(ran.code == Some(1) && ran.text().contains("lost: of the journal: all of it: "), "{}", ran.text());
    assert_eq!(value(&killed.path("out.db"), &["b"], "old").unwrap(), b"1");
}

#[test]
fn what_is_advised_of_a_journal_elsewhere_names_its_folder() {
    let killed = Killed::new();
    fs::rename(killed.path("app.db-journal"), killed.path("away")).unwrap();
    change_alone(&killed);
    let folder = killed.path("away");
    let ran = killed.run(&format!("file journal FILE --folder {}", folder.display()));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for flag in ["--effects", "--discard"] {
        let command = format!("`boltkv file journal {flag} --folder {} ", folder.display());
        assert!(ran.stderr.contains(&command), "{}", ran.stderr);
    }
}

#[test]
fn surgery_makes_a_copy_of_the_file_alone_when_told() {
    let killed = Killed::new();
    let ran = killed.run("file surgery freelist abandon FILE --output OUT --without-journal");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(value(&killed.path("out.db"), &["b"], "new"), None);
}
