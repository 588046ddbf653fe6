//! A bucket is moved with all in it, or, where bbolt would refuse, not at all.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::model::{Item, Model, hex};
use crate::common::{assert_check_clean, committed, content_of_file, content_of_writer};
use boltkv_storage::{Db, Error, Options, TxMut};
use proptest::prelude::*;
use std::path::Path;

/// What is asked for, in a database of the shape that bbolt's own test makes.
struct Case {
    what: &'static str,
    from: &'static [&'static str],
    to: &'static [&'static str],
    in_from: Option<Kind>,
    in_to: Option<Kind>,
    /// bbolt's words.
    answer: &'static str,
}

#[derive(Clone, Copy)]
enum Kind {
    Bucket,
    Value,
}
use Kind::{Bucket, Value};

#[rustfmt::skip]
const CASES: [Case; 10] = [
    Case { what: "between two nested buckets", from: &["sb1", "sb2"], to: &["db1", "db2"], in_from: Some(Bucket), in_to: None, answer: "moved" },
    Case { what: "between two of one grandparent", from: &["grandparent", "sb2"], to: &["grandparent", "db2"], in_from: Some(Bucket), in_to: None, answer: "moved" },
    Case { what: "from the top", from: &[], to: &["db1", "db2"], in_from: Some(Bucket), in_to: None, answer: "moved" },
    Case { what: "to the top", from: &["sb1", "sb2"], to: &[], in_from: Some(Bucket), in_to: None, answer: "moved" },
    Case { what: "one that is not there", from: &["sb1", "sb2"], to: &["db1", "db2"], in_from: None, in_to: None, answer: "bucket not found" },
    Case { what: "where one is", from: &["sb1", "sb2"], to: &["db1", "db2"], in_from: Some(Bucket), in_to: Some(Bucket), answer: "bucket already exists" },
    Case { what: "a value", from: &["sb1", "sb2"], to: &["db1", "db2"], in_from: Some(Value), in_to: None, answer: "incompatible value" },
    Case { what: "where a value is", from: &["sb1", "sb2"], to: &["db1", "db2"], in_from: Some(Bucket), in_to: Some(Value), answer: "incompatible value" },
    Case { what: "to the same bucket", from: &["sb1", "sb2"], to: &["sb1", "sb2"], in_from: Some(Bucket), in_to: None, answer: "the source and target are the same bucket" },
    Case { what: "from the top to the top", from: &[], to: &[], in_from: Some(Bucket), in_to: None, answer: "the source and target are the same bucket" },
];

/// A bucket at each name of a path, with values enough for pages of their own.
fn prepare(tx: &mut TxMut, path: &[&str]) {
    for end in 1..=path.len() {
        create(tx, &path[..end - 1], path[end - 1]);
    }
}

fn create(tx: &mut TxMut, above: &[&str], name: &str) {
    let fill = |mut bucket: boltkv_storage::BucketMut<'_>| {
        for number in 0..100_u32 {
            bucket.put(format!("value {number}"), vec![7; 30]).unwrap();
        }
    };
    if above.is_empty() {
        fill(tx.create_bucket_if_not_exists(name).unwrap());
    } else {
        fill(tx.bucket_mut_path(above).unwrap().create_bucket_if_not_exists(name).unwrap());
    }
}

fn file_for(case: &Case, file: &Path) {
    let db = Db::open(file).unwrap();
    let mut tx = db.begin_mut().unwrap();
    for (path, kind) in [(case.from, case.in_from), (case.to, case.in_to)] {
        prepare(&mut tx, path);
        match kind {
            Some(Bucket) => create(&mut tx, path, "moved"),
            Some(Value) => tx.bucket_mut_path(path).unwrap().put("moved", "value").unwrap(),
            None => {}
        }
    }
    tx.commit().unwrap();
}

/// bbolt's words for an answer.
fn in_bbolts_words(result: boltkv_storage::Result<()>) -> &'static str {
    match result {
        Ok(()) => "moved",
        Err(Error::BucketNotFound { .. }) => "bucket not found",
        Err(Error::BucketExists { .. }) => "bucket already exists",
        Err(Error::IncompatibleValue { .. }) => "incompatible value",
        Err(Error::SameBuckets { .. }) => "the source and target are the same bucket",
        Err(other) => panic!("{other}"),
    }
}

fn in_hex(path: &[&str]) -> String {
    let names: Vec<String> = path.iter().map(|name| hex(name.as_bytes())).collect();
    if names.is_empty() { "-".into() } else { names.join("/") }
}

#[test]
fn what_bbolt_moves_is_moved_and_what_it_refuses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let peer = crate::common::peer::peer();
    for (number, case) in CASES.iter().enumerate() {
        let file = folder.path().join(format!("{number}"));
        file_for(case, &file);
        let there = folder.path().join(format!("{number}.there"));
        std::fs::copy(&file, &there).unwrap();
        let before = content_of_file(&file);

        let db = Db::open(&file).unwrap();
        let mut tx = db.begin_mut().unwrap();
        let answer = in_bbolts_words(tx.move_bucket("moved", case.from, case.to));
        assert_eq!(answer, case.answer, "{}", case.what);
        assert_eq!(content_of_writer(&tx) == before, answer != "moved", "{}", case.what);
        tx.commit().unwrap();
        assert_check_clean(&db, case.what);
        drop(db);

        let Some(peer) = peer else { continue };
        peer.assert_check_clean(&file, case.what);
        let args = [in_hex(case.from), hex(b"moved"), in_hex(case.to)];
        let said = peer.run(["move", there.to_str().unwrap(), &args[0], &args[1], &args[2]]);
        assert_eq!(said.trim(), answer, "{}", case.what);
        assert_eq!(peer.dump(&file), peer.dump(&there), "{}", case.what);
    }
}

fn database() -> Db {
    Options::new().page_size(1024).open_in_memory().unwrap()
}

#[test]
fn a_bucket_is_not_moved_into_itself() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    prepare(&mut tx, &["a", "b", "c"]);
    let before = content_of_writer(&tx);
    for to in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let result = tx.move_bucket("a", &[], to);
        assert!(matches!(result, Err(Error::MovedIntoItself { .. })), "{to:?}: {result:?}");
    }
    let result = tx.move_bucket("b", &["a"], &["a", "b", "c"]);
    assert!(matches!(result, Err(Error::MovedIntoItself { .. })), "{result:?}");
    assert_eq!(content_of_writer(&tx), before);
    // A bucket of the same name elsewhere is another one.
    prepare(&mut tx, &["x", "a"]);
    tx.move_bucket("a", &["x"], &["a", "b"]).unwrap();
    tx.commit().unwrap();
    assert_check_clean(&db, "after the moves that were refused");
}

#[test]
fn a_missing_path_is_an_error() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    prepare(&mut tx, &["a", "b"]);
    for (from, to) in [(&["a"][..], &["missing"][..]), (&["missing"], &["a"]), (&["a", "missing"], &[])] {
        assert!(matches!(tx.move_bucket("b", from, to), Err(Error::BucketNotFound { .. })));
    }
    assert!(matches!(tx.move_bucket("b", &["a", "value 1"], &[]), Err(Error::IncompatibleValue { .. })));
}

#[test]
fn what_was_changed_before_and_after_a_move_is_committed() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    prepare(&mut tx, &["early", "moved", "inner"]);
    tx.bucket_mut_path(["early", "moved"]).unwrap().set_sequence(5).unwrap();
    // Opened after what is moved into it.
    prepare(&mut tx, &["late", "later"]);
    tx.move_bucket("moved", &["early"], &["late", "later"]).unwrap();
    tx.bucket_mut_path(["late", "later", "moved", "inner"]).unwrap().put("after", vec![1; 3000]).unwrap();
    let expected = content_of_writer(&tx);
    tx.commit().unwrap();
    assert_eq!(committed(&db), expected);
    assert_check_clean(&db, "after the move");
    let tx = db.begin().unwrap();
    let moved = tx.bucket_path(["late", "later", "moved"]).unwrap();
    assert_eq!(moved.sequence(), 5);
    assert_eq!(moved.bucket("inner").unwrap().get("after").unwrap().map(<[u8]>::len), Some(3000));
    assert!(matches!(tx.bucket_path(["early", "moved"]), Err(Error::BucketNotFound { .. })));
}

#[test]
fn a_bucket_gets_another_name_where_it_is_and_elsewhere() {
    let db = database();
    let mut tx = db.begin_mut().unwrap();
    prepare(&mut tx, &["a", "old", "inner"]);
    prepare(&mut tx, &["a", "taken"]);
    tx.commit().unwrap();

    let mut tx = db.begin_mut().unwrap();
    let before = content_of_writer(&tx);
    let too_long = vec![b'n'; boltkv_storage::MAX_KEY_SIZE + 1];
    let mut as_its_name = |name: &[u8]| tx.move_bucket_as("old", &["a"], &["a"], name);
    assert!(matches!(as_its_name(b"old"), Err(Error::SameBuckets { .. })));
    assert!(matches!(as_its_name(b"taken"), Err(Error::BucketExists { .. })));
    assert!(matches!(as_its_name(b"value 1"), Err(Error::IncompatibleValue { .. })));
    assert!(matches!(as_its_name(b""), Err(Error::BucketNameRequired)));
    assert!(matches!(as_its_name(&too_long), Err(Error::KeyTooLarge { .. })));
    assert!(matches!(tx.move_bucket_as("a", &[], &["a"], "b"), Err(Error::MovedIntoItself { .. })));
    assert_eq!(content_of_writer(&tx), before);

    let savepoint = tx.savepoint();
    tx.move_bucket_as("old", &["a"], &["a"], "new").unwrap();
    tx.bucket_mut_path(["a", "new", "inner"]).unwrap().put("more", "value").unwrap();
    prepare(&mut tx, &["a", "old"]);
    tx.move_bucket_as("new", &["a"], &[], "top").unwrap();
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(content_of_writer(&tx), before);

    let handle = tx.bucket_mut_path(["a", "old"]).unwrap().handle();
    tx.move_bucket_as::<&str>("old", &["a"], &[], "new").unwrap();
    tx.at_mut(handle).unwrap().put("by its handle", "value").unwrap();
    tx.commit().unwrap();
    assert_check_clean(&db, "after it was renamed");
    let tx = db.begin().unwrap();
    let renamed = tx.bucket("new").unwrap();
    assert_eq!(renamed.get("by its handle").unwrap(), Some(&b"value"[..]));
    assert!(renamed.bucket("inner").is_ok());
    assert!(matches!(tx.bucket_path(["a", "old"]), Err(Error::BucketNotFound { .. })));
}

/// One change to a database whose buckets have few names, so that they meet.
#[derive(Debug, Clone)]
enum Change {
    Create(Vec<u8>),
    Put(Vec<u8>, usize),
    Delete(Vec<u8>),
    Move { from: Vec<u8>, name: u8, to: Vec<u8>, its_name: u8 },
}

fn change() -> impl Strategy<Value = Change> {
    let path = || prop::collection::vec(0..3_u8, 1..4);
    let perhaps_top = || prop::collection::vec(0..3_u8, 0..4);
    prop_oneof![
        3 => path().prop_map(Change::Create),
        2 => (path(), prop_oneof![Just(5), Just(300), Just(2000)]).prop_map(|(path, len)| Change::Put(path, len)),
        1 => path().prop_map(Change::Delete),
        4 => (perhaps_top(), 0..3_u8, perhaps_top(), 0..3_u8)
            .prop_map(|(from, name, to, its_name)| Change::Move { from, name, to, its_name }),
    ]
}

fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.iter().map(|&name| vec![b'a' + name]).collect()
}

impl Change {
    fn apply(&self, tx: &mut TxMut) -> bool {
        let result = match self {
            Self::Create(path) => {
                let (name, above) = (names(path).pop().unwrap(), names(&path[..path.len() - 1]));
                if above.is_empty() {
                    tx.create_bucket(name).map(drop)
                } else {
                    tx.bucket_mut_path(&above).and_then(|mut bucket| bucket.create_bucket(name).map(drop))
                }
            }
            Self::Put(path, len) => tx.bucket_mut_path(names(path)).and_then(|mut b| b.put("value", vec![1; *len])),
            Self::Delete(path) => {
                let (name, above) = (names(path).pop().unwrap(), names(&path[..path.len() - 1]));
                if above.is_empty() {
                    tx.delete_bucket(name)
                } else {
                    tx.bucket_mut_path(&above).and_then(|mut bucket| bucket.delete_bucket(name))
                }
            }
            Self::Move { from, name, to, its_name } => {
                tx.move_bucket_as([b'a' + name], &names(from), &names(to), [b'a' + its_name])
            }
        };
        result.is_ok()
    }

    /// The same on the model; `false` where it cannot be done.
    fn apply_to_model(&self, model: &mut Model) -> bool {
        match self {
            Self::Create(path) => model.create(&names(path)).is_ok(),
            Self::Put(path, len) => model.put(&names(path), b"value", &vec![1; *len]).is_ok(),
            Self::Delete(path) => model.drop_bucket(&names(path)).is_ok(),
            Self::Move { from, name, to, its_name } => {
                let (from, to, name, its_name) = (names(from), names(to), vec![b'a' + name], vec![b'a' + its_name]);
                let mut itself = from.clone();
                itself.push(name.clone());
                let free = model.bucket(&to).is_ok_and(|to| !to.items.contains_key(&its_name));
                if (from == to && name == its_name)
                    || to.starts_with(&itself)
                    || !free
                    || model.bucket(&itself).is_err()
                {
                    return false;
                }
                let moved = at(model, &from).items.remove(&name).unwrap();
                at(model, &to).items.insert(its_name, moved);
                true
            }
        }
    }
}

fn at<'a>(model: &'a mut Model, path: &[Vec<u8>]) -> &'a mut Model {
    path.iter().fold(model, |model, name| match model.items.get_mut(name) {
        Some(Item::Bucket(inner)) => inner,
        _ => panic!("the model has no bucket there"),
    })
}

proptest! {
    #[test]
    fn moves_among_other_changes_do_what_they_do_to_a_model(
        transactions in prop::collection::vec(
            (prop::collection::vec(change(), 1..20), prop::collection::vec(change(), 0..10)), 1..5)
    ) {
        let db = database();
        let mut model = Model::default();
        for (kept, undone) in transactions {
            let mut tx = db.begin_mut().unwrap();
            for change in &kept {
                prop_assert_eq!(change.apply(&mut tx), change.apply_to_model(&mut model), "{:?}", change);
            }
            let savepoint = tx.savepoint();
            for change in &undone {
                change.apply(&mut tx);
            }
            tx.rollback_to(&savepoint).unwrap();
            prop_assert_eq!(&content_of_writer(&tx), &model);
            tx.commit().unwrap();
            prop_assert_eq!(&committed(&db), &model);
            assert_check_clean(&db, "after a commit");
        }
    }
}
