//! Keys that all begin with more bytes than are compared at once: each is found, and what is not there is not, whatever it
//! begins with.

#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::collections::BTreeSet;

use boltkv_storage::Options;

/// Keys that share what they begin with; `tail` is what they differ in.
fn keys(alike: &str, tails: impl Iterator<Item = String>) -> BTreeSet<Vec<u8>> {
    tails.map(|tail| format!("{alike}{tail}").into_bytes()).collect()
}

/// What nearly is a key, in each way that a search could mistake for it.
fn neighbours(key: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![key.to_vec(), [key, b"\0"].concat(), [key, &[0xff; 20]].concat(), vec![0], vec![0xff; 60]];
    for at in 0..key.len() {
        all.push(key[..at].to_vec());
        for other in [key[at].wrapping_sub(1), key[at].wrapping_add(1), 0, 0xff] {
            let mut key = key.to_vec();
            key[at] = other;
            all.push(key);
        }
    }
    all.retain(|key| !key.is_empty());
    all
}

#[test]
fn keys_that_begin_alike_are_found_and_nothing_else_is() {
    let many = 20_000;
    let sets = [
        keys("key:", (0..many).map(|number| format!("{number:012}"))),
        keys("sixteen bytes or more in front", (0..many).map(|number| format!("{:08x}", number * 7_919_u32))),
        // Of all lengths, so that one is how others begin.
        keys("aaaaaaaa", (0..900).map(|len| "a".repeat(len))),
        // Two kinds, so that the ends of a page begin differently, or alike only in part.
        &keys("users/0000/", (0..many).map(|number| format!("{number}")))
            | &keys("users/0001/", (0..many).map(|number| format!("{number}"))),
    ];
    for keys in sets {
        let db = Options::new().page_size(1024).open_in_memory().unwrap();
        let mut tx = db.begin_mut().unwrap();
        let mut bucket = tx.create_bucket("b").unwrap();
        for key in &keys {
            bucket.put(key, &key[..1]).unwrap();
        }
        tx.commit().unwrap();
        let tx = db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        let mut cursor = bucket.cursor();
        for sought in keys.iter().step_by(197).chain(keys.last()).flat_map(|key| neighbours(key)) {
            let found = bucket.get(&sought).unwrap();
            assert_eq!(found.is_some(), keys.contains(&sought), "{}", sought.escape_ascii());
            let next = cursor.seek(&sought).unwrap().map(|(key, _)| key);
            let expected = keys.range(sought.clone()..).next().map(Vec::as_slice);
            assert_eq!(next, expected, "from {}", sought.escape_ascii());
        }
    }
}
