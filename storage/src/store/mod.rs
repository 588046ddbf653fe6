//! The open file: its newest state and who reads it, its one writer, and how a commit makes the next state of it.
//!
//! - `open`: from a path to a locked file and its newest meta
//! - `shared`: what its handles and write transactions have in common
//! - `readers`: the snapshots and who reads which; `writer`: what the write transactions hand on, `writer_slot`: and where they wait for it
//! - `begin`: how a write transaction begins, and the word of the file that its journal may hold more
//! - `commit`: write, make durable, publish; `durable`: in the journal or in the file; `syncer`: the thread that makes durable what was committed unsynced;
//!   `patched`: leaves that have patches in memory are written anew; `copier`: their pages; `beside`: a state is brought to the file while commits go on; `detached`: what commits have cut off, and is freed later
//! - `room`: how the file grows, and what is said where it cannot; `recover`: what a journal records beyond the file when it is opened, and
//!   `replay`: doing it again
//! - `place`: file and journal are where they were opened, or that is said
//! - `options`, `journal_options`, `stats`: what a database is asked for, and what it says of itself

mod begin;
mod beside;
mod commit;
mod copier;
mod detached;
mod durable;
mod journal_options;
mod open;
mod options;
mod pace;
mod patched;
mod place;
mod pressure;
mod readers;
mod recover;
mod replay;
mod room;
mod shared;
mod stats;
mod syncer;
mod write_back;
mod writer;
mod writer_slot;

#[cfg(test)]
pub(crate) use beside::{Beside, End};
#[cfg(test)]
pub(crate) use commit::LONGEST_WRITE;
pub(crate) use commit::{Sync, commit};
pub use journal_options::JournalOptions;
pub(crate) use open::{new_database, open_locked};
pub use options::{Durability, FreelistStored, Options};
pub use place::Displaced;
pub(crate) use readers::{Readers, Reading};
pub(crate) use recover::refuse_orphans;
pub(crate) use shared::{Opened, Shared};
pub use stats::{CommitStats, DamagedMeta, JournalFigures, Stats};
pub(crate) use stats::{Figures, Stalls};
pub(crate) use syncer::{Syncer, What};
pub(crate) use writer::Writer;
pub(crate) use writer_slot::WriterSlot;
