//! The tree: pages and changed nodes read in one way, changed, taken back, and given their pages at commit.
//!
//! - `arena`: where bytes lie; `slots`, `node`: a page taken apart; `buckets`: those that were opened; `spare`: memory
//!   for the next transaction
//! - `view`: one way to read pages and nodes; `resident`: which of them are in memory, and what is fetched ahead; `walk`:
//!   visiting all of a bucket; `work`: all that a write transaction has changed
//! - `patch` changes a leaf in memory, and leaves its page as it is; `patcher`: what the writer has of patches; `names`: of
//!   which buckets; `apart`: leaves that have some are written after all
//! - `edit`, `prune`, `move_bucket` and `delete_bucket` change it; `effects` records what they have done, and does it again;
//!   `undo` takes it back to a savepoint; `rebalance` and `spill` (by way of `cut`) make pages of it

mod apart;
mod arena;
mod buckets;
mod cut;
mod delete_bucket;
mod edit;
mod effects;
mod fill;
mod move_bucket;
mod names;
mod node;
mod patch;
mod patcher;
mod prune;
mod rebalance;
mod resident;
mod slots;
mod spare;
mod spill;
mod undo;
mod view;
mod walk;
mod work;

pub(crate) use apart::PatchedLeaf;
pub(crate) use effects::{Batch, Effect, Reader as EffectsReader, Recorded, Refused, Replay};
pub use fill::Fill;
pub(crate) use names::Names;
pub(crate) use patch::leaf_in;
pub(crate) use patcher::{MemoryStats, Patcher};
pub(crate) use slots::At;
pub(crate) use spare::Spare;
pub(crate) use spill::Part;
pub use undo::Savepoint;
pub(crate) use view::{Child, Root, Source, View, in_page, too_deep};
pub(crate) use walk::{Allowance, pages, pages_as_they_lie};
pub(crate) use work::Work;

/// A node of a write transaction, by its place in the list of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// A bucket that was opened for writing, by its place in the list of buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BucketId(pub(crate) u32);

pub(crate) const ROOT_BUCKET: BucketId = BucketId(0);
