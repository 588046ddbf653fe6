//! Every single change that the public API can make in a write transaction, on the engine and on the model.
//!
//! All random drivers make these: `tests/model.rs`, the fuzz target `operations`, and the crash simulation. What is added
//! here is in all of them; `tests/database/drivers.rs` fails where a public mutator is missing.

use std::ops::Bound;

use super::cursor_steps::{Place, Step};
use super::model::{BucketPath, Entry, Item, Model, Refusal};
use boltkv_storage::{Fill, Result, TxMut};

#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Only opens it for writing.
    Open(BucketPath),
    Create(BucketPath),
    CreateIfMissing(BucketPath),
    Drop(BucketPath),
    /// To the second path, which ends in its name there.
    Move(BucketPath, BucketPath),
    Put(BucketPath, Vec<u8>, Vec<u8>),
    /// So many keys that begin with this one, all with this value: what makes trees grow levels.
    PutMany(BucketPath, Vec<u8>, u8, Vec<u8>),
    Delete(BucketPath, Vec<u8>),
    /// Every so-manyth value, one by one.
    DeleteMany(BucketPath, usize),
    DeleteRange(BucketPath, Bound<Vec<u8>>, Bound<Vec<u8>>, usize),
    PopFirst(BucketPath),
    /// A cursor's steps, beginning with a seek of the key if that is not first or last.
    Cursor(BucketPath, Vec<u8>, Vec<Step>),
    NextSequence(BucketPath),
    SetSequence(BucketPath, u64),
    /// In hundredths; none is `Fill::Auto`.
    SetFill(BucketPath, Option<u8>),
    /// From the first bucket to the second one, by handles: up to so many entries from a key on get another letter before
    /// their keys; moved where that is asked for, else copied.
    Carry(BucketPath, BucketPath, Vec<u8>, Carry),
}

/// How entries are carried from one bucket to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carry {
    most: u8,
    letter: u8,
    moved: bool,
}

/// What an edit answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// Whether there was something to delete.
    Existed(bool),
    Number(u64),
    /// How many values were deleted, and whether there is more.
    Deleted(usize, bool),
    Entry(Option<Entry>),
    /// Where the cursor's steps led.
    Keys(Vec<Option<Vec<u8>>>),
}

/// What an edit is made of, if it takes it.
#[derive(Clone, Debug)]
pub struct Parts {
    pub path: BucketPath,
    pub to: BucketPath,
    pub key: Vec<u8>,
    pub other_key: Vec<u8>,
    pub value: Vec<u8>,
    pub number: u64,
}

impl Edit {
    /// How many kinds there are.
    pub const KINDS: usize = 16;

    /// The kind that takes whole leaves away.
    #[allow(dead_code, reason = "not every driver asks for it")]
    pub const DELETE_RANGE: usize = 9;

    /// An edit of the kind of that number.
    pub fn of_kind(kind: usize, parts: Parts) -> Self {
        let Parts { path, to, key, other_key, value, number } = parts;
        let small = number.to_le_bytes();
        match kind % Self::KINDS {
            0 => Self::Open(path),
            1 => Self::Create(path),
            2 => Self::CreateIfMissing(path),
            3 => Self::Drop(path),
            4 => {
                // Often to where it is, or under a name that some other bucket has had.
                let above = if small[2] < 64 { &path } else { &to };
                let name = to.last().filter(|_| small[1] < 128).or(path.last());
                let above = &above[..usize::from(small[0]) % (above.len() + 1)];
                Self::Move(path.clone(), above.iter().chain(name).cloned().collect())
            }
            5 => Self::Put(path, key, value),
            6 => Self::PutMany(path, key, small[0], value[..value.len().min(60)].to_vec()),
            7 => Self::Delete(path, key),
            8 => Self::DeleteMany(path, 1 + usize::from(small[0] % 8)),
            Self::DELETE_RANGE => {
                let limit = if small[2] < 100 { usize::MAX } else { usize::from(small[3]) };
                Self::DeleteRange(path, bound(small[0], key), bound(small[1], other_key), limit)
            }
            10 => Self::PopFirst(path),
            11 => Self::Cursor(path, key, small.map(Step::of).to_vec()),
            12 => Self::NextSequence(path),
            13 => Self::SetSequence(path, number),
            14 => Self::SetFill(path, (small[0] < 200).then_some(small[0] / 2)),
            _ => {
                // Into the bucket itself now and then.
                let to = if small[3] < 64 || to.is_empty() { path.clone() } else { to };
                Self::Carry(path, to, key, Carry { most: small[0] % 32, letter: small[1], moved: small[2] < 128 })
            }
        }
    }

    /// Moves one of the buckets, and then makes edits of these kinds in it, whatever path their parts have: what comes after
    /// a move is too rare otherwise. None where there is no bucket.
    pub fn of_moved(
        model: &Model,
        [which, to]: [usize; 2],
        then: impl IntoIterator<Item = (usize, Parts)>,
    ) -> Vec<Self> {
        let paths = model.bucket_paths();
        let Some(path) = which.checked_rem(paths.len()).map(|at| &paths[at]) else { return Vec::new() };
        // One more than there are: the top.
        let to = paths.get(to % (paths.len() + 1)).cloned().unwrap_or_default();
        let its_name = (which % 3 == 0).then(|| format!("bucket {}", which % 7).into_bytes());
        let moved: BucketPath = to.iter().chain(its_name.as_ref().or(path.last())).cloned().collect();
        let then = then.into_iter().map(|(kind, parts)| Self::of_kind(kind, Parts { path: moved.clone(), ..parts }));
        [Self::Move(path.clone(), moved.clone())].into_iter().chain(then).collect()
    }

    /// Makes the edit in a database.
    pub fn apply(&self, tx: &mut TxMut) -> Result<Answer> {
        match self {
            Self::Open(path) => open(tx, path),
            Self::Create(path) => match path.as_slice() {
                [name] => tx.create_bucket(name).map(drop),
                path => with_parent(path, |name, above| tx.bucket_mut_path(above)?.create_bucket(name).map(drop)),
            },
            Self::CreateIfMissing(path) => match path.as_slice() {
                [name] => tx.create_bucket_if_not_exists(name).map(drop),
                path => with_parent(path, |name, above| {
                    tx.bucket_mut_path(above)?.create_bucket_if_not_exists(name).map(drop)
                }),
            },
            Self::Drop(path) => match path.as_slice() {
                [name] => tx.delete_bucket(name),
                path => with_parent(path, |name, above| tx.bucket_mut_path(above)?.delete_bucket(name)),
            },
            Self::Move(path, to) => with_parent(path, |name, from| match to.split_last() {
                Some((its_name, to)) if its_name != name => tx.move_bucket_as(name, from, to, its_name),
                to => tx.move_bucket(name, from, to.map_or(&[], |to| to.1)),
            }),
            Self::SetFill(path, part) => {
                let fill = part.map_or(Fill::Auto, |part| Fill::Percent(f64::from(part) / 100.0));
                tx.bucket_mut_path(path).map(|mut bucket| bucket.set_fill(fill))
            }
            Self::Carry(path, to, from, how) => return how.apply(tx, path, to, from),
            of_entries => return of_entries.apply_to_entries(tx),
        }
        .map(|()| Answer::Done)
    }

    fn apply_to_entries(&self, tx: &mut TxMut) -> Result<Answer> {
        let mut bucket = tx.bucket_mut_path(self.path())?;
        match self {
            Self::Put(_, key, value) => bucket.put(key, value)?,
            Self::PutMany(_, key, count, value) => many(key, *count).try_for_each(|key| bucket.put(key, value))?,
            Self::Delete(_, key) => return bucket.delete(key).map(Answer::Existed),
            Self::DeleteMany(_, every) => {
                let entries = bucket.iter().collect::<Result<Vec<_>>>()?;
                let values = entries.into_iter().filter(|(_, value)| value.is_some()).step_by(*every);
                let keys: Vec<_> = values.map(|(key, _)| key.to_vec()).collect();
                keys.iter().try_for_each(|key| bucket.delete(key).map(drop))?;
            }
            Self::DeleteRange(_, low, high, limit) => {
                let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                let deleted = bucket.delete_range(bounds, *limit)?;
                return Ok(Answer::Deleted(deleted.count, deleted.more));
            }
            Self::PopFirst(_) => return bucket.pop_first().map(Answer::Entry),
            Self::Cursor(_, key, steps) => {
                let mut cursor = bucket.cursor_mut();
                let keys = steps.iter().map(|step| step.take(&mut cursor, key)).collect::<Result<_>>()?;
                return Ok(Answer::Keys(keys));
            }
            Self::NextSequence(_) => return bucket.next_sequence().map(Answer::Number),
            Self::SetSequence(_, number) => bucket.set_sequence(*number)?,
            _ => {}
        }
        Ok(Answer::Done)
    }

    /// Makes the edit in the model. One that is refused has changed nothing, but for several steps of one edit.
    pub fn apply_to_model(&self, model: &mut Model) -> Result<Answer, Refusal> {
        let path = self.path();
        match self {
            Self::Open(_) | Self::SetFill(..) => model.bucket(path).map(drop)?,
            Self::Create(_) => model.create(path)?,
            Self::CreateIfMissing(_) => model.create_if_missing(path)?,
            Self::Drop(_) => model.drop_bucket(path)?,
            Self::Move(_, to) => with_parent(to, |its_name, to| model.move_bucket(path, to, its_name))?,
            Self::Put(_, key, value) => model.put(path, key, value)?,
            Self::PutMany(_, key, count, value) => {
                model.bucket(path)?;
                many(key, *count).try_for_each(|key| model.put(path, &key, value))?;
            }
            Self::Delete(_, key) => return model.delete(path, key).map(Answer::Existed),
            Self::DeleteMany(_, every) => {
                let values = model.bucket(path)?.entries().filter(|(_, value)| value.is_some()).step_by(*every);
                let keys: Vec<_> = values.map(|(key, _)| key.to_vec()).collect();
                keys.iter().try_for_each(|key| model.delete(path, key).map(drop))?;
            }
            Self::DeleteRange(_, low, high, limit) => {
                let bounds = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
                return model.delete_range(path, bounds, *limit).map(|(count, more)| Answer::Deleted(count, more));
            }
            Self::PopFirst(_) => return model.pop_first(path).map(Answer::Entry),
            Self::Cursor(_, key, steps) => {
                let mut place = Place::Fresh;
                model.bucket(path)?;
                let keys = steps.iter().map(|step| step.take_in_model(&mut place, model, path, key));
                return keys.collect::<Result<_, _>>().map(Answer::Keys);
            }
            Self::Carry(_, to, from, how) => return how.apply_to_model(model, path, to, from),
            Self::NextSequence(_) => return model.next_sequence(path).map(Answer::Number),
            Self::SetSequence(_, number) => model.set_sequence(path, *number)?,
        }
        Ok(Answer::Done)
    }

    fn path(&self) -> &[Vec<u8>] {
        match self {
            Self::Open(path)
            | Self::Create(path)
            | Self::CreateIfMissing(path)
            | Self::Drop(path)
            | Self::Move(path, _)
            | Self::Put(path, ..)
            | Self::PutMany(path, ..)
            | Self::Delete(path, _)
            | Self::DeleteMany(path, _)
            | Self::DeleteRange(path, ..)
            | Self::PopFirst(path)
            | Self::Cursor(path, ..)
            | Self::NextSequence(path)
            | Self::SetSequence(path, _)
            | Self::SetFill(path, _)
            | Self::Carry(path, ..) => path,
        }
    }
}

impl Carry {
    fn apply(self, tx: &mut TxMut, path: &[Vec<u8>], to: &[Vec<u8>], from: &[u8]) -> Result<Answer> {
        let [path, to] = [tx.bucket_mut_path(path)?.handle(), tx.bucket_mut_path(to)?.handle()];
        let mut walk = path.walk(from..);
        let mut carried = 0;
        while carried < u64::from(self.most)
            && let Some((key, value)) = walk.next(tx)?
        {
            carried += 1;
            let Some(value) = value else { continue };
            if self.moved {
                tx.at_mut(path)?.delete(key)?;
            }
            tx.at_mut(to)?.put([&[self.letter], key].concat(), value)?;
        }
        Ok(Answer::Number(carried))
    }

    fn apply_to_model(
        self,
        model: &mut Model,
        path: &[Vec<u8>],
        to: &[Vec<u8>],
        from: &[u8],
    ) -> Result<Answer, Refusal> {
        model.bucket(path)?;
        model.bucket(to)?;
        let mut last = Bound::Included(from.to_vec());
        let mut carried = 0;
        while carried < u64::from(self.most) {
            let from = (last.as_ref().map(Vec::as_slice), Bound::Unbounded);
            let next = model.bucket(path)?.items.range::<[u8], _>(from).next();
            let Some((key, item)) = next.map(|(key, item)| (key.clone(), item.clone())) else { break };
            carried += 1;
            if let Item::Value(value) = item {
                if self.moved {
                    model.delete(path, &key)?;
                }
                model.put(to, &[&[self.letter], key.as_slice()].concat(), &value)?;
            }
            last = Bound::Excluded(key);
        }
        Ok(Answer::Number(carried))
    }
}

fn bound(number: u8, key: Vec<u8>) -> Bound<Vec<u8>> {
    match number % 4 {
        0 | 1 => Bound::Unbounded,
        2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn many(key: &[u8], count: u8) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |number| [key, &[number]].concat())
}

/// One step after the other, where all others go by the path.
fn open(tx: &mut TxMut, path: &[Vec<u8>]) -> Result<()> {
    let (first, inner) = path.split_first().expect("a bucket has a name");
    match inner {
        [] => tx.bucket_mut(first).map(drop),
        [second] => tx.bucket_mut(first)?.bucket_mut(second).map(drop),
        [second, third] => tx.bucket_mut(first)?.bucket_mut(second)?.bucket_mut(third).map(drop),
        _ => tx.bucket_mut_path(path).map(drop),
    }
}

fn with_parent<T>(path: &[Vec<u8>], act: impl FnOnce(&[u8], &[Vec<u8>]) -> T) -> T {
    let (name, above) = path.split_last().expect("a bucket has a name");
    act(name, above)
}
