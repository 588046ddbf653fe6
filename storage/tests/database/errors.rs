//! What an error says at three in the morning: what is wrong, on which page, in which bucket, with which key; bytes
//! escaped and cut.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use boltkv_storage::{Db, Error, Options, Result};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: usize = 4096;

/// "app" holds "users", an inline bucket, and "events", which has pages of its own.
fn database(folder: &Path) -> PathBuf {
    let file = folder.join("db");
    let db = Db::open(&file).unwrap();
    db.update(|tx| {
        let mut app = tx.create_bucket("app")?;
        app.create_bucket("users")?.put("ada", "lovelace")?;
        let mut events = app.create_bucket("events")?;
        (0..500_u32).try_for_each(|key| events.put(key.to_be_bytes(), [1; 100]))
    })
    .unwrap();
    drop(db);
    file
}

/// Where `bytes` are found, the last time.
fn find(file: &[u8], bytes: &[u8]) -> usize {
    file.windows(bytes.len()).rposition(|window| window == bytes).unwrap()
}

/// The page that is said to be damaged, and all that is said.
fn damaged<T>(result: Result<T>) -> (u64, String) {
    match result.err().expect("the file is damaged") {
        error @ Error::Corrupt { page, .. } => (page, error.to_string()),
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_missing_or_in_the_way_is_named_with_the_bucket_around_it() {
    let db = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    tx.create_bucket("a").unwrap().create_bucket("b").unwrap().put("key\n", "value").unwrap();
    let said = |result: Result<()>| result.unwrap_err().to_string();
    let mut write = |path: &[&str]| said(tx.bucket_mut_path(path).map(|_| ()));
    assert_eq!(write(&["x"]), r#"no bucket "x""#);
    assert_eq!(write(&["a", "x"]), r#"no bucket "x" in bucket "a""#);
    assert_eq!(write(&["a", "b", "x"]), r#"no bucket "x" in bucket "a"/"b""#);
    assert_eq!(write(&["a", "b", "key\n"]), r#""key\n" in bucket "a"/"b" is a value, not a bucket"#);
    let mut inner = tx.bucket_mut_path(["a", "b"]).unwrap();
    inner.create_bucket("c").unwrap();
    assert_eq!(said(inner.create_bucket("c").map(|_| ())), r#"bucket "c" in bucket "a"/"b" exists already"#);
    assert_eq!(said(inner.put("c", "")), r#""c" in bucket "a"/"b" is a bucket, not a value"#);
    assert_eq!(said(inner.delete("c").map(|_| ())), r#""c" in bucket "a"/"b" is a bucket, not a value"#);
    tx.commit().unwrap();

    let tx = db.begin().unwrap();
    let read = |path: &[&str]| said(tx.bucket_path(path).map(|_| ()));
    assert_eq!(read(&["x"]), r#"no bucket "x""#);
    assert_eq!(read(&["a", "b", "x"]), r#"no bucket "x" in bucket "a"/"b""#);
    assert_eq!(read(&["a", "b", "c", "x", "y"]), r#"no bucket "x" in bucket "a"/"b"/"c""#);
    assert_eq!(read(&["a", "b", "key\n"]), r#""key\n" in bucket "a"/"b" is a value, not a bucket"#);
    let inner = tx.bucket_path(["a", "b"]).unwrap();
    assert_eq!(said(inner.get("c").map(|_| ())), r#""c" in bucket "b" is a bucket, not a value"#);
}

#[test]
fn a_path_of_many_long_names_is_cut() {
    let db = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    let names: Vec<String> = (10..30).map(|number| format!("{number}").repeat(5000)).collect();
    for depth in 1..=names.len() {
        let (last, path) = names[..depth].split_last().unwrap();
        let created = match path {
            [] => tx.create_bucket(last).map(|_| ()),
            path => tx.bucket_mut_path(path).unwrap().create_bucket(last).map(|_| ()),
        };
        created.unwrap();
    }
    let missing = names.iter().map(String::as_str).chain(["x"]);
    let error = tx.bucket_mut_path(missing).map(|_| ()).unwrap_err();
    let Error::BucketNotFound { within, .. } = &error else { panic!("{error}") };
    assert_eq!(within.names().map(|name| &name[..2]).collect::<Vec<_>>().concat(), b"2223242526272829");
    let said = error.to_string();
    assert!(said.starts_with(r#"no bucket "x" in bucket …/"2222"#) && said.len() < 1000, "{said}");
}

#[test]
fn damage_in_an_inline_bucket_is_on_the_page_that_holds_it_and_names_the_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let file = database(folder.path());
    let mut bytes = fs::read(&file).unwrap();
    let entry = find(&bytes, b"adalovelace");
    let page = (entry / PAGE) as u64;
    // The only element of the inline page stands before its data: 4 bytes each of flags, position, key's and value's length.
    bytes[entry - 4..entry].copy_from_slice(&[0xFF; 4]);
    fs::write(&file, &bytes).unwrap();
    let db = Db::open(&file).unwrap();
    let tx = db.begin().unwrap();
    let users = tx.bucket_path(["app", "users"]).unwrap();
    let reads = [
        damaged(users.get("ada")),
        damaged(users.iter().collect::<Result<Vec<_>>>()),
        damaged(users.iter().next_back().unwrap()),
        damaged(users.cursor().seek("a")),
    ];
    for (named, said) in reads {
        assert_eq!(named, page, "{said}");
        assert!(
            said.starts_with(&format!(r#"page {page} in bucket "users" is damaged: element 0 points to"#)),
            "{said}"
        );
    }
    drop(tx);
    let mut tx = db.begin_mut().unwrap();
    let mut app = tx.bucket_mut("app").unwrap();
    let (named, said) = damaged(app.bucket_mut("users").unwrap().put("grace", "hopper"));
    assert_eq!(named, page);
    assert!(said.contains(r#"in bucket "app"/"users" is damaged"#), "{said}");

    drop(tx);
    drop(db);

    // The page's header: more elements than fit.
    bytes[entry - 16 - 6..entry - 16 - 4].copy_from_slice(&[0xFF; 2]);
    fs::write(&file, &bytes).unwrap();
    let db = Db::open(&file).unwrap();
    let tx = db.begin().unwrap();
    let (named, said) = damaged(tx.bucket_path(["app", "users"]));
    assert_eq!(named, page);
    assert!(said.starts_with(&format!(r#"page {page} in bucket "app"/"users" is damaged: in an inline"#)), "{said}");
}

#[test]
fn damage_in_a_bucket_of_pages_names_page_and_bucket_whoever_reads_or_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = database(folder.path());
    let mut bytes = fs::read(&file).unwrap();
    let page = find(&bytes, &[&300_u32.to_be_bytes()[..], &[1; 100]].concat()) / PAGE;
    bytes[page * PAGE + 8] = 0x77;
    fs::write(&file, &bytes).unwrap();
    let db = Db::open(&file).unwrap();
    let tx = db.begin().unwrap();
    let app = tx.bucket("app").unwrap();
    let events = app.bucket("events").unwrap();
    let key = 300_u32.to_be_bytes();
    let reads = [
        damaged(events.get(key)),
        damaged(events.iter().collect::<Result<Vec<_>>>()),
        damaged(events.cursor().seek(key)),
        damaged(app.stats()),
        damaged(app.inspect()),
        damaged(db.update(|tx| tx.bucket_mut_path(["app", "events"])?.put(key, ""))),
        damaged(db.update(|tx| tx.bucket_mut_path(["app", "events"])?.delete(key))),
    ];
    for (number, (named, said)) in reads.iter().enumerate() {
        assert_eq!(*named, page as u64, "{number}: {said}");
        let bucket = if number < 5 { r#"in bucket "events""# } else { r#"in bucket "app"/"events""# };
        assert!(said.contains(bucket), "{number}: {said}");
    }
    let problems = db.check().unwrap();
    let problem = problems.iter().find(|problem| problem.page == page as u64).unwrap();
    assert!(problem.to_string().ends_with(r#", in bucket "events""#), "{problem}");
}
