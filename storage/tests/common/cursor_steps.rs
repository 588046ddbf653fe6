//! The steps of a cursor that can delete, on the engine and on the model.

use std::ops::Bound;

use super::model::{Item, Model, Refusal};
use boltkv_storage::{CursorMut, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    First,
    Last,
    Seek,
    Next,
    Prev,
    Delete,
}

/// Where a cursor that can delete stands in the model.
pub enum Place {
    Fresh,
    On(Vec<u8>),
    /// Where this key was, or behind the last one.
    Gap(Option<Vec<u8>>),
}

impl Step {
    /// The step of that number.
    pub fn of(number: u8) -> Self {
        match number % 16 {
            0 => Self::First,
            1 => Self::Last,
            2..=5 => Self::Seek,
            6..=8 => Self::Next,
            9..=11 => Self::Prev,
            _ => Self::Delete,
        }
    }

    pub fn take(self, cursor: &mut CursorMut<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = match self {
            Self::First => cursor.first()?,
            Self::Last => cursor.last()?,
            Self::Seek => cursor.seek(key)?,
            Self::Next => cursor.next()?,
            Self::Prev => cursor.prev()?,
            Self::Delete => return cursor.delete().map(|()| None),
        };
        Ok(found.map(|(key, _)| key.to_vec()))
    }

    pub fn take_in_model(
        self,
        place: &mut Place,
        model: &mut Model,
        path: &[Vec<u8>],
        sought: &[u8],
    ) -> Result<Option<Vec<u8>>, Refusal> {
        if self == Self::Delete {
            if let Place::On(key) = place {
                model.delete(path, key)?;
                *place = Place::Gap(Some(std::mem::take(key)));
            }
            return Ok(None);
        }
        let items = &model.bucket(path)?.items;
        let from = |key: &[u8]| items.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next();
        let after = |key: &[u8]| items.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next();
        let before = |key: &[u8]| items.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back();
        let found = match (self, &*place) {
            (Self::Seek, _) => from(sought),
            (Self::First, _) | (Self::Next, Place::Fresh) => items.first_key_value(),
            (Self::Next, Place::On(key)) => after(key),
            (Self::Next, Place::Gap(Some(key))) => from(key),
            (Self::Next, Place::Gap(None)) => None,
            (Self::Prev, Place::On(key) | Place::Gap(Some(key))) => before(key),
            (Self::Last | Self::Prev | Self::Delete, _) => items.last_key_value(),
        };
        let found = found.map(|(key, _): (&Vec<u8>, &Item)| key.clone());
        match &found {
            Some(key) => *place = Place::On(key.clone()),
            // A step that leads nowhere is not taken.
            None if self == Self::Seek => *place = Place::Gap(None),
            None => {}
        }
        Ok(found)
    }
}
