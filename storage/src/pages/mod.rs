//! Pages: those of a snapshot, which of the file's are free, and which are taken next.
//!
//! - `snapshot`: one state of the database; `tops`: where buckets begin in it; `mapped`: its pages, as checked runs of the map; `recents`: what memory has of
//!   them; `filling`: how that gets there
//! - `spans`, `page_set`: sets of pages; `freelist`: which are free, and which wait for which readers; `listing`: those
//!   that the file lists; `allocate`: which of them a commit takes

mod allocate;
mod filling;
mod freelist;
mod listing;
mod mapped;
mod page_set;
mod recents;
mod snapshot;
mod spans;
mod tops;

pub(crate) use allocate::{Allocator, Lasts};
pub(crate) use filling::{Before, Filling, For, Oldest, SLABS_TOGETHER};
pub(crate) use freelist::{Freelist, Pins, Run};
pub(crate) use mapped::{MAX_DEPTH, Pages};
pub(crate) use page_set::PageSet;
pub(crate) use recents::{Recents, Table};
pub(crate) use snapshot::Snapshot;
pub(crate) use spans::Spans;
pub(crate) use tops::Tops;
