//! `boltkv file export`: what it writes, where, and what it refuses.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::server::Server;
use crate::common::{Ran, boltkv, peer, run};
use boltkv_storage::{Db, Error};

/// Two buckets, one within the other, with entries before and after it.
fn make(file: &Path) {
    let db = Db::open(file).unwrap();
    db.update(|tx| {
        let mut users = tx.create_bucket("users")?;
        users.set_sequence(7)?;
        users.put("ada", "lovelace")?;
        users.create_bucket("eu")?.put([0, 0xff], "")?;
        users.put("zoe", "z")
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
}

/// More than pipes hold.
fn make_large(file: &Path) {
    let db = Db::open(file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..20_000_u32).try_for_each(|i| bucket.put(i.to_be_bytes(), [7; 100]))
    })
    .unwrap_or_else(|error: Error| panic!("{error}"));
}

const EXPORTED: &str = r#"{"path":["dXNlcnM="],"sequence":7}
{"path":["dXNlcnM="],"key":"YWRh","value":"bG92ZWxhY2U="}
{"path":["dXNlcnM=","ZXU="],"sequence":0}
{"path":["dXNlcnM=","ZXU="],"key":"AP8=","value":""}
{"path":["dXNlcnM="],"key":"em9l","value":"eg=="}
"#;

#[test]
fn every_bucket_and_entry_is_a_line_depth_first_in_key_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.db");
    make(&file);
    assert_eq!(run(args!["file", "export", &file]).done_text(), EXPORTED);
    assert_eq!(run(args!["file", "export", "--json", &file]).done_text(), EXPORTED);
}

#[test]
fn an_empty_file_has_no_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.db");
    drop(Db::open(&file).unwrap());
    assert_eq!(run(args!["file", "export", &file]).done_text(), "");
}

#[test]
fn with_output_it_goes_to_a_file_which_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("some.db"), folder.path().join("some.jsonl"));
    make(&file);
    fs::write(&out, "what was there").unwrap();
    assert_eq!(run(args!["file", "export", &file, "--output", &out]).done_text(), "");
    assert_eq!(fs::read_to_string(&out).unwrap(), EXPORTED);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
}

#[test]
fn a_device_is_written_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.db");
    make(&file);
    assert_eq!(run(args!["file", "export", &file, "--output", "/dev/stdout"]).done_text(), EXPORTED);
}

#[test]
fn a_link_stays_one_and_what_it_leads_to_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let [file, there, to_there, missing, to_missing, out, to_out] =
        ["some.db", "there", "to_there", "missing", "to_missing", "out", "to_out"].map(|name| folder.path().join(name));
    make(&file);
    fs::write(&there, "what was there").unwrap();
    // Relative to where the link is, and a link to a link.
    symlink("there", folder.path().join("between")).unwrap();
    symlink("between", &to_there).unwrap();
    symlink(&missing, &to_missing).unwrap();
    symlink("/proc/self/fd/1", &to_out).unwrap();
    for output in [&to_there, &to_missing] {
        run(args!["file", "export", &file, "--output", output]).done();
    }
    let printed = fs::File::create(&out).unwrap();
    let ended = boltkv(args!["file", "export", &file, "--output", &to_out]).stdout(printed).status().unwrap();
    assert!(ended.success());
    for (written, link) in [(&there, &to_there), (&missing, &to_missing), (&out, &to_out)] {
        assert_eq!(fs::read_to_string(written).unwrap(), EXPORTED);
        assert!(link.is_symlink(), "{} is no link any more", link.display());
    }
    symlink("turn", folder.path().join("round")).unwrap();
    symlink("round", folder.path().join("turn")).unwrap();
    let said = run(args!["file", "export", &file, "--output", folder.path().join("turn")]).failed(1);
    assert!(said.contains("too many links"), "{said}");
    let (target, dangling) = (folder.path().join("none/there"), folder.path().join("dangling"));
    symlink(&target, &dangling).unwrap();
    let said = run(args!["file", "export", &file, "--output", &dangling]).failed(1);
    assert!(said.contains(&format!("it leads to {}: No such file", target.display())), "{said}");
}

#[test]
fn what_cannot_be_written_is_called_by_the_name_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("some.db"), folder.path().join("out"));
    make_large(&file);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 100; exec \"$0\" file export \"$1\" --output \"$2\""]);
    let said: Ran = limited.arg(env!("CARGO_BIN_EXE_boltkv")).args([&file, &out]).output().unwrap().into();
    let said = said.failed(1);
    assert!(said.ends_with("out: File too large (os error 27)\n"), "{said}");
}

#[test]
fn what_stands_in_what_a_process_has_open_stays_before_the_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("some.db"), folder.path().join("out"));
    make(&file);
    for output in ["/dev/stdout", "/dev/fd/2"] {
        fs::write(&out, "before\n").unwrap();
        let open: Stdio = fs::File::options().append(true).open(&out).unwrap().into();
        let mut export = boltkv(args!["file", "export", &file, "--output", output]);
        let export =
            if output == "/dev/stdout" { export.stdout(open) } else { export.stdout(Stdio::piped()).stderr(open) };
        assert!(export.status().unwrap().success());
        assert_eq!(fs::read_to_string(&out).unwrap(), format!("before\n{EXPORTED}"), "{output}");
    }
}

#[test]
fn a_dash_is_standard_output_and_no_name_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("some.db"));
    let output = boltkv(["file", "export", "some.db", "-o", "-"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), EXPORTED);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is made");
}

#[test]
fn a_new_file_may_be_read_by_whom_the_umask_says_and_an_old_one_by_whom_it_could_be_before() {
    let folder = tempfile::tempdir().unwrap();
    let [file, usual, new, old] = ["some.db", "usual", "new", "old"].map(|name| folder.path().join(name));
    make(&file);
    for made in [&usual, &old] {
        fs::write(made, "").unwrap();
    }
    fs::set_permissions(&old, fs::Permissions::from_mode(0o614)).unwrap();
    for output in [&new, &old] {
        run(args!["file", "export", &file, "--output", output]).done();
    }
    let mode = |file: &Path| file.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&new), mode(&old)), (mode(&usual), 0o614));
}

/// The reader waits until the export has taken long enough for a progress line, which is no part of its lines.
#[boltkv_needs::program("script")]
#[test]
fn on_a_terminal_there_is_nothing_but_lines() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.db");
    make_large(&file);
    make(&folder.path().join("some.db"));
    for command in ["file export large.db", "file diff some.db large.db"] {
        let line = format!("'{}' {command}", env!("CARGO_BIN_EXE_boltkv"));
        let mut terminal = Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &line, "typescript"]).current_dir(folder.path());
        let mut child = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1_500));
        let mut shown = String::new();
        child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
        child.wait().unwrap();
        let odd =
            shown.lines().find(|line| !["{", "+", "-", "boltkv: only"].iter().any(|begin| line.starts_with(begin)));
        assert_eq!(odd, None, "{command}");
    }
}

#[test]
fn no_database_is_a_place_to_export_to_neither_the_file_itself_nor_another() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, other] = ["some.db", "link.db", "other.db"].map(|name| folder.path().join(name));
    make(&file);
    fs::hard_link(&file, &link).unwrap();
    let before = fs::read(&file).unwrap();
    let server = Server::start(&other);
    server.run(["set", "a", "1"]).done();
    for output in [&file, &link, &other] {
        let refused = [
            run(args!["file", "export", &file, "--output", output]),
            server.run(args!["export", "--output", output]),
            server.run(args!["export", "--resume", "--output", output]),
        ];
        for said in refused.map(|ran| ran.failed(2)) {
            assert!(said.contains("it is a bolt file"), "{said}");
        }
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(!folder.path().join("other.db.partial").exists());
    assert_eq!(server.stop().code, Some(0));
    assert_eq!(run(args!["file", "get", &other, "default", "a"]).done(), b"1\n");
}

#[test]
fn a_damaged_file_is_not_exported_by_halves() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("some.db"), folder.path().join("some.jsonl"));
    make(&file);
    let mut bytes = fs::read(&file).unwrap();
    // Whatever stands where the pages with the buckets are: nonsense now.
    bytes[4 * 4096..].fill(0xee);
    fs::write(&file, bytes).unwrap();
    let ran = run(args!["file", "export", &file, "--output", &out]);
    let said = ran.failed(1);
    assert!(said.contains("not exported, for it is damaged: page "), "{said}");
    assert!(!out.exists());
}

#[test]
fn whoever_has_read_enough_may_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.db");
    make_large(&file);
    let mut child =
        boltkv(args!["file", "export", &file]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn a_missing_file_and_a_missing_folder_are_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, file) = (folder.path().join("missing.db"), folder.path().join("some.db"));
    let said = run(args!["file", "export", &missing]).failed(3);
    assert!(said.contains("missing.db") && said.contains("No such file"), "{said}");
    assert!(!missing.exists());
    make(&file);
    let said = run(args!["file", "export", &file, "--output", folder.path().join("no/such/out")]).failed(1);
    assert!(said.contains("no/such/out"), "{said}");
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_that_go_made_is_exported_as_bbolt_sees_it() {
    let Some(peer) = peer::peer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = crate::common::files::made_by_both(&peer, folder.path());
    assert!(peer.dump(&theirs) == peer.dump(&ours), "the dumps differ");
    peer.assert_check_clean(&ours);
}
