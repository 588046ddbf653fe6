//! What happens to buckets: they are made, moved and deleted, and their sequences raised.

use boltkv_protocol::Path;
use boltkv_storage::{BucketMut, Error, Result, TxMut};

use super::expiry::Timed;
use super::write::{Effect, Refused};

/// What makes its bucket, both or neither.
pub(super) fn in_new_bucket(
    timed: &mut Timed<'_>,
    path: &Path,
    act: impl FnOnce(&mut Timed<'_>) -> Result<Effect, Refused>,
) -> Result<Effect, Refused> {
    let made = make_missing(timed.tx, path)?;
    made.forget_times(timed, path)?;
    let done = act(timed);
    if done.is_err() {
        made.undo(timed.tx, path)?;
    }
    done
}

pub(super) fn next_sequence(timed: &mut Timed<'_>, path: &Path) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    Ok(timed.tx.bucket_mut_path(path.names())?.next_sequence().map(Effect::Sequence)?)
}

pub(super) fn set_sequence(timed: &mut Timed<'_>, path: &Path, sequence: u64) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    let mut bucket = timed.tx.bucket_mut_path(path.names())?;
    if bucket.sequence() == sequence {
        return Ok(Effect::Unchanged);
    }
    bucket.set_sequence(sequence)?;
    Ok(Effect::Written)
}

/// Moves a bucket to another parent, to another name, or to both. It expires when it did before, and so do its keys.
pub(super) fn move_bucket(timed: &mut Timed<'_>, path: &Path, to: &Path) -> Result<Effect, Refused> {
    let (from, its) = (path.names().collect::<Vec<_>>(), to.names().collect::<Vec<_>>());
    let (Some((name, from)), Some((its_name, into))) = (from.split_last(), its.split_last()) else {
        return Err(Error::BucketNameRequired.into());
    };
    timed.enter_bucket(path)?;
    timed.enter_bucket(to)?;
    let has_times = timed.any()?;
    if !has_times {
        timed.tx.move_bucket_as(name, from, into, its_name)?;
        return Ok(Effect::Written);
    }
    if into.is_empty() && timed.expires(path)? {
        return Err(Refused::AtTheTop);
    }
    if timed.moves_too_deep(path, to)? {
        return Err(Refused::TooDeep);
    }
    timed.undoably(|timed| {
        timed.tx.move_bucket_as(name, from, into, its_name)?;
        timed.move_bucket(path, to)?;
        Ok(Effect::Written)
    })
}

pub(super) fn create(timed: &mut Timed<'_>, path: &Path) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    if timed.any()? {
        return timed.undoably(|timed| {
            let created = create_in(timed.tx, path)?;
            // Of one that somebody else has taken away, times may be left.
            timed.forget_bucket(path)?;
            Ok(created)
        });
    }
    create_in(timed.tx, path)
}

fn create_in(tx: &mut TxMut, path: &Path) -> Result<Effect, Refused> {
    match split(path)? {
        (Parent::Root, name) => tx.create_bucket(name).map(drop)?,
        (Parent::Bucket(parents), name) => tx.bucket_mut_path(parents)?.create_bucket(name).map(drop)?,
    }
    Ok(Effect::Written)
}

/// Creates what is missing of a path: all of it, or after an error nothing.
pub(super) fn create_missing(timed: &mut Timed<'_>, path: &Path) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    let made = make_missing(timed.tx, path)?;
    made.forget_times(timed, path)?;
    Ok(made.effect())
}

pub(super) fn delete_bucket(timed: &mut Timed<'_>, path: &Path) -> Result<Effect, Refused> {
    timed.enter_bucket(path)?;
    if !timed.any()? {
        return delete(timed.tx, path);
    }
    timed.undoably(|timed| {
        let deleted = delete(timed.tx, path)?;
        timed.forget_bucket(path)?;
        Ok(deleted)
    })
}

fn delete(tx: &mut TxMut, path: &Path) -> Result<Effect, Refused> {
    match split(path)? {
        (Parent::Root, name) => tx.delete_bucket(name)?,
        (Parent::Bucket(parents), name) => tx.bucket_mut_path(parents)?.delete_bucket(name)?,
    }
    Ok(Effect::Written)
}

/// Where a bucket lies.
enum Parent<P> {
    Root,
    Bucket(P),
}

/// A path's parent and its last name.
fn split(path: &Path) -> Result<(Parent<impl Iterator<Item = &[u8]>>, &[u8])> {
    let name = path.names().last().ok_or(Error::BucketNameRequired)?;
    let parents = path.depth() - 1;
    let parent = if parents == 0 { Parent::Root } else { Parent::Bucket(path.names().take(parents)) };
    Ok((parent, name))
}

/// How many buckets of a path were there before the others were made.
struct Made {
    existed: usize,
    depth: usize,
}

impl Made {
    const fn effect(&self) -> Effect {
        if self.existed == self.depth { Effect::Unchanged } else { Effect::Written }
    }

    /// Of new buckets times may be left, where somebody else has taken others of their names away.
    fn forget_times(&self, timed: &mut Timed<'_>, path: &Path) -> Result<()> {
        if self.existed == self.depth || !timed.any()? {
            return Ok(());
        }
        match Path::from_names(path.names().take(self.existed + 1)) {
            Ok(topmost) => timed.undoably(|timed| timed.forget_bucket(&topmost)),
            // What begins a path is one.
            Err(_) => Ok(()),
        }
    }

    /// Takes the new buckets away again, as far as they were made.
    fn undo(&self, tx: &mut TxMut, path: &Path) -> Result<()> {
        let Some(topmost) = path.names().nth(self.existed) else { return Ok(()) };
        let undone = match self.existed {
            0 => tx.delete_bucket(topmost),
            existed => tx.bucket_mut_path(path.names().take(existed))?.delete_bucket(topmost),
        };
        match undone {
            Err(Error::BucketNotFound { .. }) => Ok(()),
            undone => undone,
        }
    }
}

/// Creates what is missing of a path: all of it, or after an error nothing.
fn make_missing(tx: &mut TxMut, path: &Path) -> Result<Made> {
    let made = Made { existed: count_existing(tx, path)?, depth: path.depth() };
    let created = create_all(tx, path);
    if created.is_err() {
        made.undo(tx, path)?;
    }
    created.map(|()| made)
}

/// How many of a path's buckets are there, from the top down.
fn count_existing(tx: &TxMut, path: &Path) -> Result<usize> {
    let mut names = path.names();
    let top = names.next().ok_or(Error::BucketNameRequired)?;
    let mut found = tx.bucket(top);
    let mut existed = 0;
    loop {
        let bucket = match found {
            Ok(bucket) => bucket,
            Err(Error::BucketNotFound { .. }) => return Ok(existed),
            // Told once more with the whole path: one step of it knows only the bucket right above.
            Err(_) => return tx.bucket_path(path.names()).map(|_| existed),
        };
        existed += 1;
        match names.next() {
            Some(name) => found = bucket.bucket(name),
            None => return Ok(existed),
        }
    }
}

fn create_all(tx: &mut TxMut, path: &Path) -> Result<()> {
    let mut names = path.names();
    let top = names.next().ok_or(Error::BucketNameRequired)?;
    create_below(tx.create_bucket_if_not_exists(top)?, names)
}

fn create_below<'n>(mut bucket: BucketMut<'_>, mut names: impl Iterator<Item = &'n [u8]>) -> Result<()> {
    match names.next() {
        Some(name) => create_below(bucket.create_bucket_if_not_exists(name)?, names),
        None => Ok(()),
    }
}
