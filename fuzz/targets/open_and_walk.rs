//! Any bytes, opened as a file: what comes is data or an error, from readers, from `check` and from a writer; never a
//! panic, a hang, or a read outside.
#![no_main]

use boltkv_storage::{Bucket, Db, Options, Result, TxMut};
use libfuzzer_sys::fuzz_target;

/// Entries that one walk looks at; a damaged file may hold the same page under any number of buckets.
const MOST_ENTRIES: usize = 2000;
/// Buckets within buckets that are followed: a damaged file may nest one in itself.
const DEEPEST: usize = 8;
/// Where a meta lies in its page, and its checksum in the meta.
const META: usize = 16;
const CHECKSUM: usize = 56;

fuzz_target!(|bytes: &[u8]| {
    explore(bytes);
    // A changed meta is noticed by its checksum: put right, it leads on to the pages behind it.
    let mut sealed = bytes.to_vec();
    seal(&mut sealed, 0);
    if let Some(size) = sealed.get(META + 8..META + 12) {
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
        seal(&mut sealed, size);
    }
    if sealed != bytes {
        explore(&sealed);
    }
});

/// Gives the meta in the page at `page` the checksum of what it says: FNV-1a, 64 bits.
fn seal(bytes: &mut [u8], page: usize) {
    let Some(meta) = bytes.get_mut(page.saturating_add(META)..).filter(|meta| meta.len() >= CHECKSUM + 8) else {
        return;
    };
    let hash = meta[..CHECKSUM]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    meta[CHECKSUM..CHECKSUM + 8].copy_from_slice(&hash.to_le_bytes());
}

fn explore(bytes: &[u8]) {
    let reader = Options::new().read_only(true).open_bytes(bytes);
    if let Ok(db) = &reader {
        read(db);
    }
    let Ok(db) = Options::new().open_bytes(bytes) else { return };
    // What fails has changed nothing, or is said by poisoning; either way the rest can be tried.
    let _ = db.update(change);
    let _ = db.update(delete);
    let _ = db.shrink();
    read(&db);
    let _ = db.close();
}

fn read(db: &Db) {
    let tx = db.begin().expect("a read transaction always begins");
    let _ = tx.check();
    let mut left = MOST_ENTRIES;
    for top in tx.buckets() {
        let Ok((_, bucket)) = top else { break };
        walk(bucket, 0, &mut left);
    }
}

fn walk(bucket: Bucket<'_>, depth: usize, left: &mut usize) {
    let mut forward = bucket.cursor();
    let mut last = Vec::new();
    while *left > 0
        && let Ok(Some((key, value))) = forward.next()
    {
        *left -= 1;
        last = key.to_vec();
        match value {
            Some(value) => {
                std::hint::black_box(value.iter().fold(0_u8, |all, byte| all ^ byte));
                let _ = bucket.get(key);
            }
            None if depth < DEEPEST => {
                if let Ok(inner) = bucket.bucket(key) {
                    walk(inner, depth + 1, left);
                }
            }
            None => {}
        }
    }
    let mut backward = bucket.cursor();
    while *left > 0 && matches!(backward.prev(), Ok(Some(_))) {
        *left -= 1;
    }
    let mut sought = bucket.cursor();
    if sought.seek(&last).is_ok() {
        let _ = (sought.prev(), sought.next());
    }
    for entry in bucket.prefix([0x61]).rev().take(10) {
        if entry.is_err() {
            break;
        }
    }
}

/// The names of a few top-level buckets.
fn names(tx: &TxMut) -> Vec<Vec<u8>> {
    tx.buckets().take(8).map_while(Result::ok).map(|(name, _)| name.to_vec()).collect()
}

/// Puts into every bucket, and deletes from its front.
fn change(tx: &mut TxMut) -> Result<()> {
    for name in names(tx) {
        let Ok(mut bucket) = tx.bucket_mut(&name) else { continue };
        let _ = bucket.put("fuzz", [7; 300]);
        let _ = bucket.next_sequence();
        let _ = bucket.create_bucket_if_not_exists("fuzz-bucket").and_then(|mut inner| inner.put("k", "v"));
        let mut cursor = bucket.cursor_mut();
        for _ in 0..20 {
            if !matches!(cursor.next(), Ok(Some(_))) {
                break;
            }
            let _ = cursor.delete();
        }
    }
    tx.create_bucket_if_not_exists("fuzz-new")?.put("k", "v")
}

/// Deletes every other bucket.
fn delete(tx: &mut TxMut) -> Result<()> {
    for name in names(tx).iter().step_by(2) {
        let before = tx.savepoint();
        if tx.delete_bucket(name).is_err() {
            let _ = tx.rollback_to(&before);
        }
    }
    Ok(())
}
