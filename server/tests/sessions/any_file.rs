//! Any bolt file is served as it is, also read-only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{create, create_if_missing, delete, delete_bucket, list, set};
use crate::common::{TestFile, TestServer};
use boltkv_protocol::{ErrorCode, Path, ReadRequest, Request, Scan, StreamRequest, WriteRequest};
use boltkv_storage::{Error, Options};
use bytes::Bytes;

/// As etcd lays its file out: binary keys in a bucket `key`, and others beside it.
fn like_etcd(file: &TestFile) {
    let db = file.open();
    db.update(|tx| {
        tx.create_bucket("meta")?.put("consistent_index", 7_u64.to_be_bytes())?;
        tx.create_bucket([0xff, 0x00, b'/'])?.create_bucket("nested")?;
        let mut keys = tx.create_bucket("key")?;
        (0..100_u64).try_for_each(|n| {
            let revision = [&n.to_be_bytes()[..], b"_", &0_u64.to_be_bytes()].concat();
            keys.put(revision, [0x0a, 0x01, 0xff])
        })?;
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn binary_names_keys_and_values_are_served_in_both_dialects() {
    let file = TestFile::new();
    like_etcd(&file);
    let server = TestServer::serve(file.open(), |_| {});
    let mut client = server.binary();
    let key = [&7_u64.to_be_bytes()[..], b"_", &0_u64.to_be_bytes()].concat();
    let get = Request::Read(ReadRequest::Get { path: Path::from_names(["key"]).unwrap(), key: key.into() });
    assert_eq!(client.ask(&get), boltkv_protocol::Reply::Value(Bytes::from_static(&[0x0a, 0x01, 0xff])));
    let path = Path::from_names([&[0xff, 0x00, b'/'][..]]).unwrap();
    let nested = Scan { path, ..Scan::default() };
    assert_eq!(client.keys(&Request::Stream(StreamRequest::Scan(nested))), ["nested"]);
    assert_eq!(client.entries(&list("")).0.len(), 3);

    let mut text = server.text();
    assert_eq!(text.ask_all("BUCKET LIST"), ["key", "meta", r#""\xff\x00\\/""#]);
    assert_eq!(text.ask("BUCKET USE key"), "OK");
    assert_eq!(text.ask("COUNT"), "100");
    let first = r#""\x00\x00\x00\x00\x00\x00\x00\x00_\x00\x00\x00\x00\x00\x00\x00\x00" "\n\x01\xff""#;
    assert_eq!(text.ask_all("SCAN LIMIT 1").len(), 1);
    assert_eq!(text.ask_all(r#"SCAN "\x00" LIMIT 1"#), [first]);
}

#[test]
fn a_read_only_server_reads_and_refuses_every_write_whatever_the_database_says() {
    let file = TestFile::new();
    like_etcd(&file);
    let before = std::fs::read(&file.path).unwrap();
    let read_only = Options::new().read_only(true).open(&file.path).unwrap();
    let by_database = TestServer::serve(read_only, |_| {});
    let memory = Options::new().open_in_memory().unwrap();
    memory.update(|tx| tx.create_bucket("key").map(|_| ())).unwrap();
    let by_option = TestServer::serve(memory, |config| config.read_only = true);
    for server in [&by_database, &by_option] {
        let mut client = crate::common::Binary::connect(server.address);
        assert!(client.hello().read_only);
        for request in [
            set("key", "k", "v"),
            delete("key", "k"),
            create("b"),
            create_if_missing("key"),
            delete_bucket("key"),
            set("nowhere", "", "v"),
        ] {
            assert_eq!(client.ask_code(&request), ErrorCode::ReadOnly, "{request:?}");
        }
        let mut text = server.text();
        assert!(text.ask("SET k v").starts_with("ERR READ_ONLY "));
        assert_eq!(text.ask("GET k"), "(nil)");
        assert!(text.ask_all("STATS").contains(&"read_only 1".to_owned()));
    }
    by_database.stop().unwrap();
    assert!(std::fs::read(&file.path).unwrap() == before, "not a byte was changed");
}

// Promises: ops-damaged.
#[test]
fn a_damaged_page_is_an_error_for_who_meets_it_and_for_nobody_else() {
    let file = TestFile::new();
    let page_size = {
        let db = file.open();
        for name in ["bad", "good"] {
            db.update(|tx| {
                let mut bucket = tx.create_bucket(name)?;
                (0..200_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), name))
            })
            .unwrap();
        }
        db.page_size()
    };
    // Turn every leaf page that holds values of `bad` and not of `good` into something else.
    let mut bytes = std::fs::read(&file.path).unwrap();
    for page in bytes.chunks_mut(page_size).skip(2) {
        let holds = |name: &[u8]| page.windows(name.len()).filter(|window| *window == name).count() > 50;
        if holds(b"bad") && !holds(b"good") {
            page[8..10].copy_from_slice(&[0xff, 0xff]);
        }
    }
    std::fs::write(&file.path, bytes).unwrap();
    let server = TestServer::serve(file.open(), |_| {});
    let mut client = server.binary();
    let get = |bucket: &str| {
        Request::Read(ReadRequest::Get {
            path: bucket.parse().unwrap(),
            key: Bytes::copy_from_slice(&7_u32.to_be_bytes()),
        })
    };
    assert_eq!(client.ask_code(&get("bad")), ErrorCode::StorageFailed);
    let set_first = Request::Write(WriteRequest::Set {
        path: "bad".parse().unwrap(),
        key: Bytes::copy_from_slice(&7_u32.to_be_bytes()),
        value: "v".into(),
        cond: boltkv_protocol::Cond::Always,
    });
    assert_eq!(client.ask_code(&set_first), ErrorCode::StorageFailed);
    assert_eq!(client.ask(&get("good")), boltkv_protocol::Reply::Value("good".into()));
    client.write(&set("good", "k", "v"));
    assert_eq!(client.value("good", "k").as_deref(), Some(&b"v"[..]));
}
