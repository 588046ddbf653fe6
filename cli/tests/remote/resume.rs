//! `boltkv export --resume`: an export that was interrupted goes on, and nothing else is taken for one.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::Command;

use crate::common::server::Server;
use crate::import_export::make;

// Promises: ops-export-live.
#[test]
fn an_export_that_was_cut_anywhere_goes_on_to_the_same_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (folder.path().join("app.db"), folder.path().join("out"));
    make(&file);
    let server = Server::start(&file);
    let partial = folder.path().join("out.partial");
    for args in [&["--csv"][..], &[], &["--bucket", "users/eu"]] {
        let export = |more: &[&str]| server.run([&["export"], args, more].concat());
        let whole = export(&[]).done();
        let ends = (0..400).chain((400..whole.len()).step_by(whole.len() / 5)).chain([whole.len()]);
        for end in ends.step_by(31) {
            fs::write(&partial, &whole[..end]).unwrap();
            let ran = export(&["--resume", "--output", output.to_str().unwrap()]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(fs::read(&output).unwrap() == whole, "{args:?}, cut after {end} of {} bytes", whole.len());
            assert!(!partial.exists() && !folder.path().join("out.partial.server").exists());
        }
    }
    fs::write(&partial, "{\"bucket\":\"empty\"}\n".repeat(3)).unwrap();
    let refused = server.run(args!["export", "-b", "users/eu", "--resume", "--output", &output]).failed(2);
    assert!(refused.contains("out.partial: it is of another bucket"), "{refused}");
    assert_eq!(server.run(["export", "--resume"]).code, Some(2));
}

#[test]
fn what_is_no_unfinished_export_is_not_gone_on_with_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [file, output, partial, other] = ["app.db", "out", "out.partial", "other"].map(|name| folder.path().join(name));
    make(&file);
    let server = Server::start(&file);
    let resume = |more: &[&str]| {
        let args = args!["export", "--resume", "--output", &output].into_iter();
        server.run(args.chain(more.iter().map(Into::into)))
    };
    let database = folder.path().join("kept.db");
    make(&database);
    let database = fs::read(database).unwrap();
    for kept in
        [&database[..], b"notes\n", b"{\"path\":[\"Yg==\"],\"sequence\":1}\n", b"bucket,sequence,key,value,base64\n"]
    {
        fs::write(&partial, kept).unwrap();
        let said = resume(&[]).failed(2);
        assert!(said.contains("out.partial: it is no unfinished export"), "{said}");
        assert!(fs::read(&partial).unwrap() == kept && !output.exists());
    }
    fs::write(&partial, "{\"bucket\":\"users\"}\n").unwrap();
    resume(&["--csv"]).failed(2);
    // What is somebody else's is not led to.
    fs::rename(&partial, &other).unwrap();
    symlink(&other, &partial).unwrap();
    resume(&[]).failed(2);
    assert_eq!(fs::read_to_string(&other).unwrap(), "{\"bucket\":\"users\"}\n");
    fs::remove_file(&partial).unwrap();
    fs::write(&partial, "").unwrap();
    resume(&[]).done();
    assert!(fs::read(&output).unwrap() == server.run(["export"]).done());
}

#[test]
fn only_an_export_to_a_file_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let [file, pipe, link, target] = ["app.db", "pipe", "link", "target"].map(|name| folder.path().join(name));
    make(&file);
    let server = Server::start(&file);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for output in [pipe.as_os_str(), "-".as_ref(), "/dev/stdout".as_ref(), folder.path().as_os_str()] {
        let said = server.run(args!["export", "--resume", "--output", output]).failed(2);
        assert!(said.contains("it is no file, and --resume goes on with one"), "{said}");
    }
    assert!(!folder.path().join("pipe.partial").exists());
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
    // What a link leads to is written.
    symlink(&target, &link).unwrap();
    fs::write(folder.path().join("target.partial"), "{\"buck").unwrap();
    server.run(args!["export", "--resume", "--output", &link]).done();
    assert!(link.is_symlink() && fs::read(&target).unwrap() == server.run(["export"]).done());
}

#[test]
fn an_export_of_one_server_is_not_gone_on_with_from_another_and_what_is_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other, output, partial, origin] =
        ["one.db", "other.db", "out", "out.partial", "out.partial.server"].map(|name| folder.path().join(name));
    make(&one);
    let (one, other) = (Server::start(&one), Server::start(&other));
    let resume = |server: &Server| server.run(args!["export", "--resume", "--output", &output]);
    // Interrupted: the first lines are there, and where they are from.
    let kept = "{\"bucket\":\"empty\",\"sequence\":0}\n".repeat(2);
    fs::write(&partial, &kept).unwrap();
    fs::write(&origin, one.addr()).unwrap();
    let said = resume(&other).failed(2);
    assert!(said.contains(&format!("begun from {}, and this is {}", one.addr(), other.addr())), "{said}");
    assert!(fs::read_to_string(&partial).unwrap() == kept && !output.exists());

    let ran = resume(&one);
    assert!(ran.stderr.contains("goes on behind 1 line of 20"), "{}", ran.stderr);
    assert!(ran.stderr.contains("remove ") && ran.stderr.contains("out.partial to begin anew"), "{}", ran.stderr);
    assert!(ran.code == Some(0) && !origin.exists());
    // Where nothing was written yet, nothing is mixed.
    fs::write(&partial, "{\"buck").unwrap();
    fs::write(&origin, one.addr()).unwrap();
    resume(&other).done();
}

#[test]
fn an_export_that_is_interrupted_keeps_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (folder.path().join("app.db"), folder.path().join("out"));
    make(&file);
    let server = Server::start_with(&file, ["--max-frame", "64KiB"]);
    // A value of it does not fit a frame.
    server.run(args!["export", "--resume", "--output", &output]).failed(1);
    assert_eq!(fs::read_to_string(folder.path().join("out.partial.server")).unwrap(), server.addr());
}

// Promises: ops-export-live.
#[test]
fn an_unfinished_export_that_another_one_is_writing_is_left_to_that() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (folder.path().join("app.db"), folder.path().join("out"));
    make(&file);
    let server = Server::start(&file);
    let partial = output.with_file_name("out.partial");
    let kept = "{\"bucket\":\"empty\"}\n{\"bucket\":\"use";
    fs::write(&partial, kept).unwrap();
    let other = fs::File::open(&partial).unwrap();
    other.lock().unwrap();
    let refused = server.run(args!["export", "--resume", "--output", &output]).failed(1);
    assert!(refused.contains("out.partial: another export is writing it"), "{refused}");
    assert!(fs::read_to_string(&partial).unwrap() == kept && !output.exists());
    drop(other);
    server.run(args!["export", "--resume", "--output", &output]).done();
    assert!(fs::read(&output).unwrap() == server.run(["export"]).done());
}
