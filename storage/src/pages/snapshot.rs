//! One state of the database.

use std::sync::Arc;

use super::{Pages, Recents, Tops};
use crate::disk::Map;
use crate::format::Meta;

/// A meta, a map that covers all its pages, and what memory has of them.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) map: Arc<Map>,
    pub(crate) recents: Recents,
    pub(crate) tops: Tops,
}

impl Snapshot {
    pub(crate) fn new(meta: Meta, map: Arc<Map>, recents: Recents) -> Self {
        Self { meta, map, recents, tops: Tops::default() }
    }

    pub(crate) fn pages(&self) -> Pages<'_> {
        Pages::new(&self.map, &self.meta).with(&self.recents)
    }
}
