//! Tokens: created, listed and revoked in a file; a server that asks for them; commands that have them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use crate::common::logged::Logged;
use crate::common::server::{PATIENCE, Server};
use crate::common::{Ran, run};
use tempfile::TempDir;

/// A folder with a file of tokens, and a token of this name and right.
struct Tokens {
    folder: TempDir,
    file: PathBuf,
}

impl Tokens {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        Self { folder, file }
    }

    /// Creates one; answers the token, and the file that it is in.
    #[track_caller]
    fn create(&self, name: &str, rights: &[&str]) -> (String, PathBuf) {
        let rights = rights.iter().flat_map(|right| ["--right", right]);
        let args = ["token", "create", name].into_iter().chain(rights).map(str::to_owned);
        let token = run(args.chain(["--tokens".to_owned(), self.file.to_str().unwrap().to_owned()])).done_text();
        let path = self.folder.path().join(format!("{name}.token"));
        fs::write(&path, &token).unwrap();
        (token.trim().to_owned(), path)
    }

    fn serve(&self) -> Server {
        Server::start_with(&self.folder.path().join("app.db"), args!["--log", "info", "--tokens", &self.file])
    }
}

fn with_token(server: &Server, file: &Path, command: &[&str]) -> Ran {
    server.run(args![].into_iter().chain(command.iter().map(Into::into)).chain(args!["--token-file", file]))
}

#[test]
fn a_token_is_created_once_listed_and_revoked() {
    let tokens = Tokens::new();
    let (first, _) = tokens.create("admin", &["admin"]);
    let (second, _) = tokens.create("billing", &["write:billing", "read:users/e u"]);
    assert!(first.starts_with("bkv_") && first.len() == 47 && first != second, "{first}");
    let text = fs::read_to_string(&tokens.file).unwrap();
    assert!(!text.contains(&first) && !text.contains(&second), "{text}");
    let again = run(args!["token", "create", "admin", "--tokens", &tokens.file]).failed(1);
    assert!(again.contains("token revoke"), "{again}");
    let list = || run(args!["token", "list", "--tokens", &tokens.file]).done_text();
    assert_eq!(list(), "admin    admin:/\nbilling  write:billing,read:users/e\\x20u\n");
    fs::write(&tokens.file, format!("# whom we know\n{text}")).unwrap();
    run(args!["token", "revoke", "admin", "--tokens", &tokens.file]).done();
    assert_eq!(list(), "billing  write:billing,read:users/e\\x20u\n");
    assert!(fs::read_to_string(&tokens.file).unwrap().starts_with("# whom we know\nbilling "), "comments stay");
    run(args!["token", "revoke", "admin", "--tokens", &tokens.file]).failed(1);
    let soon = run(args!["token", "create", "soon", "--expires", "30d", "--tokens", &tokens.file]);
    assert!(soon.code == Some(0) && soon.stderr.contains("soon has no right"), "{}", soon.stderr);
    let json = run(args!["token", "list", "--json", "--tokens", &tokens.file]).done_text();
    let soonest: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert!(
        soonest["name"] == "soon" && soonest["rights"] == serde_json::json!([]) && soonest["expires"].is_string(),
        "{soonest}"
    );
    let then = fs::read_to_string(&tokens.file).unwrap();
    let (line, _) = then.trim_end().rsplit_once(' ').unwrap();
    fs::write(&tokens.file, format!("{line} 2020-01-01T00:00:00Z\n")).unwrap();
    assert!(list().contains("soon     -  expired 2020-01-01"), "{}", list());
    assert_eq!(run(args!["token", "create", "a/b", "--tokens", &tokens.file]).code, Some(2));
    let pointer = tokens.folder.path().join("link");
    std::os::unix::fs::symlink(&tokens.file, &pointer).unwrap();
    run(args!["token", "create", "linked", "--right", "read", "--tokens", &pointer]).done();
    assert!(list().contains("linked") && pointer.is_symlink(), "{}", list());
    let empty = run(args!["token", "create", "x", "--right", "write:", "--tokens", &tokens.file]);
    assert!(empty.code == Some(2) && empty.stderr.contains("no bucket follows"), "{}", empty.stderr);
    assert_eq!(run(args!["token", "create", "x", "--right", "all", "--tokens", &tokens.file]).code, Some(2));
}

#[test]
fn a_token_is_written_to_a_new_file_for_its_owner_and_none_that_is_there_is_lost() {
    let tokens = Tokens::new();
    let output = tokens.folder.path().join("a.token");
    let create = |name| run(args!["token", "create", name, "--right", "read", "--tokens", &tokens.file, "-o", &output]);
    create("a").done();
    let token = fs::read_to_string(&output).unwrap();
    assert!(token.starts_with("bkv_") && token.ends_with('\n'), "{token}");
    assert_eq!(fs::metadata(&output).unwrap().mode() & 0o777, 0o600);
    let server = tokens.serve();
    with_token(&server, &output, &["scan"]).done();
    create("a").failed(1);
    assert!(create("b").failed(2).contains("a.token: it is there already"));
    assert_eq!(fs::read_to_string(&output).unwrap(), token);
    assert_eq!(run(args!["token", "list", "--tokens", &tokens.file]).done_text(), "a  read:/\n");
}

#[test]
fn tokens_that_are_created_at_the_same_time_are_all_there() {
    let tokens = Tokens::new();
    let create = |n: usize| {
        let args = args!["token", "create", format!("t{n}"), "--right", "read", "--tokens", &tokens.file];
        crate::common::boltkv(args).stdout(Stdio::null()).spawn().unwrap()
    };
    let all: Vec<_> = (0..12).map(create).collect();
    assert!(all.into_iter().all(|mut one| one.wait().unwrap().success()));
    assert_eq!(run(args!["token", "list", "--tokens", &tokens.file]).done_text().lines().count(), 12);
}

#[test]
fn a_token_that_could_not_be_printed_is_none() {
    let tokens = Tokens::new();
    let (_, _) = tokens.create("other", &["read"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let create =
        crate::common::boltkv(args!["token", "create", "a", "--tokens", &tokens.file]).stdout(full).status().unwrap();
    assert_eq!(create.code(), Some(1));
    assert_eq!(run(args!["token", "list", "--tokens", &tokens.file]).done_text(), "other  read:/\n");
}

// Promises: ops-tokens-owner.
#[test]
fn a_file_of_tokens_stays_whose_it_is_so_that_the_server_can_read_it_again() {
    let tokens = Tokens::new();
    tokens.create("one", &["read"]);
    tokens.create("two", &["read"]);
    let group = fs::metadata(&tokens.file).unwrap().gid() + 1;
    if chown(&tokens.file, Some(65_534), Some(group)).is_err() {
        eprintln!("skipped: only root gives files away");
        return;
    }
    fs::set_permissions(&tokens.file, fs::Permissions::from_mode(0o640)).unwrap();
    let is = || {
        let file = fs::metadata(&tokens.file).unwrap();
        (file.uid(), file.gid(), file.mode() & 0o777)
    };
    run(args!["token", "revoke", "one", "--tokens", &tokens.file]).done();
    assert_eq!(is(), (65_534, group, 0o640));
    tokens.create("three", &["read"]);
    assert_eq!(is(), (65_534, group, 0o640));
}

#[test]
fn a_pipe_is_no_file_of_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = run(args!["serve", "--db", folder.path().join("a.db"), "--tokens", &pipe]).failed(2);
    assert!(refused.contains("is a pipe"), "{refused}");
    run(args!["token", "list", "--tokens", &pipe]).failed(2);
}

// Promises: ops-token-secret.
#[test]
fn commands_say_who_they_are_and_nothing_shows_it() {
    let tokens = Tokens::new();
    let (admin, admin_file) = tokens.create("admin", &["admin"]);
    let (reader, reader_file) = tokens.create("reader", &["read:default"]);
    let server = tokens.serve();
    let refused = server.run(["set", "k", "v"]).failed(1);
    assert!(refused.contains("UNAUTHENTICATED") && refused.contains("--token-file FILE"), "{refused}");
    with_token(&server, &admin_file, &["set", "k", "v"]).done();
    assert_eq!(with_token(&server, &reader_file, &["get", "k"]).done_text(), "v");
    let forbidden = with_token(&server, &reader_file, &["set", "k", "mine"]).failed(1);
    assert!(forbidden.contains("FORBIDDEN") && forbidden.contains("write:default"), "{forbidden}");
    with_token(&server, &reader_file, &["backup", "-"]).failed(1);
    let mut by_variable = server.command(["get", "k"]);
    let got: Ran = by_variable.env("BOLTKV_TOKEN", &reader).output().unwrap().into();
    assert_eq!(got.done_text(), "v");
    let got: Ran = server.command(["get", "k"]).env("BOLTKV_TOKEN_FILE", &reader_file).output().unwrap().into();
    assert_eq!(got.done_text(), "v");
    let help = server.command(["get", "--help"]).env("BOLTKV_TOKEN", &admin).output().unwrap();
    let wrong = tokens.folder.path().join("wrong");
    fs::write(&wrong, "bkv_nobody has this\n").unwrap();
    let told = with_token(&server, &wrong, &["get", "k"]).failed(1);
    assert!(told.contains("UNAUTHENTICATED") && !told.contains("nobody has this"), "{told}");
    assert_eq!(with_token(&server, Path::new("/nowhere"), &["get", "k"]).code, Some(2));
    assert!(!String::from_utf8_lossy(&help.stdout).contains(&admin), "help does not show the variable");
    assert_eq!(server.run(["health"]).code, Some(0), "it is alive");
    assert_eq!(server.text(&format!("AUTH {reader}\nGET k\n")), "OK\nv\n");
    let ended = server.stop();
    for secret in [&admin, &reader, &"nobody has this".to_owned()] {
        assert!(!ended.stderr.contains(secret.as_str()), "{}", ended.stderr);
    }
    assert!(ended.stderr.contains("not let in"), "but that it happened is told: {}", ended.stderr);
}

// Promises: ops-tokens-file.
#[test]
fn a_file_with_a_line_that_cannot_be_used_is_not_served() {
    let tokens = Tokens::new();
    tokens.create("admin", &["admin"]);
    let good = fs::read_to_string(&tokens.file).unwrap();
    fs::write(&tokens.file, format!("{good}\nbilling 1234 read\n")).unwrap();
    let db = tokens.folder.path().join("app.db");
    let refused = run(args!["serve", "--db", &db, "--tokens", &tokens.file]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("tokens:3: ") && refused.stderr.contains("SHA-256"), "{}", refused.stderr);
    assert!(!db.exists());
    assert_eq!(run(args!["serve", "--db", &db, "--tokens", "/nowhere"]).code, Some(2));
}

#[test]
fn at_sighup_the_file_is_read_again_and_one_with_a_mistake_changes_nothing() {
    let tokens = Tokens::new();
    let (_, admin) = tokens.create("admin", &["admin"]);
    let (_, going) = tokens.create("going", &["read"]);
    let logged = Logged::start(tokens.folder.path(), &args!["--log", "info", "--tokens", &tokens.file]);
    let server = &logged.server;
    with_token(server, &admin, &["set", "k", "v"]).done();
    with_token(server, &going, &["get", "k"]).done();
    let mut watch = server.command(args!["watch", "--token-file", &going]).stdout(Stdio::null()).spawn().unwrap();
    let good = fs::read_to_string(&tokens.file).unwrap();
    let comes_to = |file: &Path, code: i32| {
        let started = Instant::now();
        while with_token(server, file, &["get", "k"]).code != Some(code) {
            assert!(started.elapsed() < PATIENCE, "it does not come to {code}");
        }
    };
    fs::write(&tokens.file, "admin\n").unwrap();
    server.signal("HUP");
    // It has seen the mistake before that is mended.
    logged.wait_for("tokens:1: not NAME", 1);
    run(args!["token", "list", "--tokens", &tokens.file]).failed(2);
    fs::write(&tokens.file, good).unwrap();
    let (_, new) = tokens.create("new", &["read"]);
    run(args!["token", "revoke", "going", "--tokens", &tokens.file]).done();
    assert_eq!(with_token(server, &new, &["get", "k"]).code, Some(1), "not yet");
    server.signal("HUP");
    comes_to(&new, 0);
    comes_to(&going, 1);
    assert_eq!(watch.wait().unwrap().code(), Some(1), "who holds it is sent away");
    with_token(server, &admin, &["get", "k"]).done();
    assert!(logged.logged().contains("tokens: 2; 1 token removed or changed"), "{}", logged.logged());
    assert_eq!(logged.server.stop().code, Some(0));
}
