//! A hash that is being changed. What has expired is removed before its field is changed.

use boltkv_protocol::Path;

use super::failure::Failure;
use crate::commands::expiry::Timed;
use boltkv_protocol::resp::names::stored;

/// A hash that is being changed.
#[derive(Debug)]
pub(super) struct HashMut<'a, 't> {
    timed: &'a mut Timed<'t>,
    path: Path,
}

impl<'a, 't> HashMut<'a, 't> {
    /// The one at this path.
    pub(super) const fn of(timed: &'a mut Timed<'t>, path: Path) -> Self {
        Self { timed, path }
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.timed.tx.bucket_path(self.path.names())?.first()?.is_none())
    }

    /// The value of a field.
    pub(super) fn get(&mut self, field: &[u8]) -> Result<Option<&[u8]>, Failure> {
        let field = stored(field);
        self.timed.enter(&self.path, field)?;
        // It outlives the handle: a look-up in the transaction itself.
        let bucket = self.timed.tx.bucket_path(self.path.names())?;
        Ok(bucket.get(field)?)
    }

    /// Puts a field, which stays.
    pub(super) fn put(&mut self, field: &[u8], value: &[u8]) -> Result<(), Failure> {
        let field = stored(field);
        let time = self.timed.enter(&self.path, field)?;
        self.timed.tx.bucket_mut_path(self.path.names())?.put(field, value)?;
        if time.is_some() {
            self.timed.forget(&self.path, field)?;
        }
        Ok(())
    }

    /// Puts a field, which expires when it did before.
    pub(super) fn replace(&mut self, field: &[u8], value: &[u8]) -> Result<(), Failure> {
        let field = stored(field);
        self.timed.enter(&self.path, field)?;
        self.timed.tx.bucket_mut_path(self.path.names())?.put(field, value)?;
        Ok(())
    }

    /// From when on a field that is there is gone; `None`: it stays.
    pub(super) fn expire(&mut self, field: &[u8], at: Option<u64>) -> Result<(), Failure> {
        self.timed.set_expiry(&self.path, stored(field), at)?;
        Ok(())
    }

    /// Removes a field. Whether it was there.
    pub(super) fn delete(&mut self, field: &[u8]) -> Result<bool, Failure> {
        let field = stored(field);
        let time = self.timed.enter(&self.path, field)?;
        let deleted = self.timed.tx.bucket_mut_path(self.path.names())?.delete(field)?;
        if time.is_some() {
            self.timed.forget(&self.path, field)?;
        }
        Ok(deleted)
    }
}

/// Whether something was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Something,
}
