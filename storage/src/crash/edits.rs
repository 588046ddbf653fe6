//! Random edits of a transaction, which are made to the model, too.

use super::edit::{Answer, Edit, Parts};
use super::model::{BucketPath, Model};
use super::random::Random;
use crate::TxMut;

/// Keys that a bucket may have.
const KEYS: usize = 120;
/// Buckets that a database may have, and how deep they are nested.
const MOST_BUCKETS: usize = 7;
const DEEPEST: usize = 3;

/// An edit that the model has taken, and what it answered.
pub(super) type Answered = (Edit, Answer);

pub(super) fn apply(edits: &[Answered], tx: &mut TxMut) {
    for (edit, expected) in edits {
        let answer = edit.apply(tx).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
        assert_eq!(answer, *expected, "{edit:?}");
    }
}

/// The edits of one transaction, which are made to the model too.
pub(super) fn edits(random: &mut Random, model: &mut Model) -> Vec<Answered> {
    let count = match random.below(10) {
        0 => 0,
        1 => 40 + random.below(40),
        _ => 1 + random.below(8),
    };
    (0..count).filter_map(|_| taken(some_edit(random, model), model)).collect()
}

/// A bucket moved, and edits in it: first, often, one that takes whole leaves away.
pub(super) fn moved(random: &mut Random, model: &mut Model) -> Vec<Answered> {
    let mut kinds = [(); 4].map(|()| random.below(Edit::KINDS));
    if random.once_in(2) {
        kinds[0] = Edit::DELETE_RANGE;
    }
    let then: Vec<_> = kinds.into_iter().map(|kind| (kind, parts(random, Vec::new(), Vec::new()))).collect();
    let which = [(); 2].map(|()| random.below(MOST_BUCKETS * MOST_BUCKETS));
    Edit::of_moved(model, which, then).into_iter().filter_map(|edit| taken(edit, model)).collect()
}

/// The edit with its answer, if the model takes it.
fn taken(edit: Edit, model: &mut Model) -> Option<Answered> {
    // One that is refused may have been made in part.
    let mut changed = model.clone();
    let answer = edit.apply_to_model(&mut changed).ok()?;
    *model = changed;
    Some((edit, answer))
}

/// Small changes of the longest bucket, which is made to lie on several pages: only leaves that lie on one get patches.
pub(super) fn in_longest(random: &mut Random, model: &mut Model) -> Vec<Answered> {
    (0..=random.below(4)).filter_map(|_| taken(one_in_longest(random, model), model)).collect()
}

fn one_in_longest(random: &mut Random, model: &Model) -> Edit {
    let items = |path: &BucketPath| model.bucket(path).map_or(0, |bucket| bucket.items.len());
    let Some(path) = model.bucket_paths().into_iter().max_by_key(items) else {
        return Edit::Create(new_path(random, &[]));
    };
    let old_key = model.bucket(&path).ok().and_then(|bucket| bucket.some_key(random.next()));
    let len = random.below(60);
    match old_key.filter(|_| items(&path) >= KEYS / 2) {
        Some(key) if random.once_in(4) => Edit::Delete(path, key),
        Some(key) => Edit::Put(path, key, random.bytes(len)),
        None => Edit::PutMany(path, key(random), 99, random.bytes(30)),
    }
}

fn some_edit(random: &mut Random, model: &Model) -> Edit {
    let paths = model.bucket_paths();
    if paths.is_empty() || (paths.len() < MOST_BUCKETS && random.once_in(12)) {
        return Edit::Create(new_path(random, &paths));
    }
    let path = paths[random.below(paths.len())].clone();
    let old_key = model.bucket(&path).ok().and_then(|bucket| bucket.some_key(random.next()));
    match (random.below(100), old_key) {
        (0..=14, _) => any_edit(random, path, &paths),
        (15..=17, _) if model.bucket(&path).is_ok_and(|bucket| bucket.items.len() < KEYS) => many(random, path),
        (15..=40, Some(key)) => Edit::Delete(path, key),
        (41..=55, Some(key)) => Edit::Put(path, key, value(random)),
        _ => Edit::Put(path, key(random), value(random)),
    }
}

/// What makes trees grow levels; only small ones, because each crash point is compared with the model.
fn many(random: &mut Random, path: BucketPath) -> Edit {
    let (key, [count, len, ..]) = (key(random), random.next().to_le_bytes());
    Edit::PutMany(path, key, count % 100, random.bytes((len % 40).into()))
}

/// Each kind comes up; what makes much of the content go, not often.
fn any_edit(random: &mut Random, path: BucketPath, paths: &[BucketPath]) -> Edit {
    let to = paths[random.below(paths.len())].clone();
    let parts = parts(random, path, to);
    match Edit::of_kind(random.below(Edit::KINDS), parts) {
        Edit::Drop(path) | Edit::DeleteMany(path, _) if random.once_in(2) => Edit::Open(path),
        Edit::DeleteRange(path, low, high, limit) => Edit::DeleteRange(path, low, high, limit.min(40)),
        edit => edit,
    }
}

fn parts(random: &mut Random, path: BucketPath, to: BucketPath) -> Parts {
    let (key, other_key) = (key(random), key(random));
    Parts { path, to, key, other_key, value: value(random), number: random.next() }
}

fn key(random: &mut Random) -> Vec<u8> {
    format!("{:05}", random.below(KEYS)).into()
}

/// Bucket names are no keys that values have.
fn new_path(random: &mut Random, paths: &[BucketPath]) -> BucketPath {
    let above = if paths.is_empty() || random.once_in(2) { &[][..] } else { &paths[random.below(paths.len())] };
    let mut path = above[..above.len().min(DEEPEST - 1)].to_vec();
    path.push(format!("bucket {}", random.below(MOST_BUCKETS)).into_bytes());
    path
}

fn value(random: &mut Random) -> Vec<u8> {
    let len = match random.below(100) {
        0..=9 => 0,
        10..=17 => random.below(900),
        18 => random.below(12_000),
        _ => random.below(60),
    };
    random.bytes(len)
}
