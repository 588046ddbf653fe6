//! One state of the database.

use std::sync::Arc;

use super::Pages;
use crate::disk::Map;
use crate::format::Meta;

/// A meta, and a map that covers all its pages.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) map: Arc<Map>,
}

impl Snapshot {
    pub(crate) fn pages(&self) -> Pages<'_> {
        Pages::new(&self.map, &self.meta)
    }
}
