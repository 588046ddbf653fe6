//! The branches of a state that is written beside the commits get their places.

use super::{Beside, End, no_space};
use crate::Result;
use crate::format::{Meta, NO_FREELIST, Pgid};
use crate::pages::{Allocator, Freelist, Run};
use crate::store::patched::{BATCH, GROWTH, grow, set_aside};
use crate::store::{Shared, Writer};
use crate::tree::{Part, Work};

/// Places that were found.
struct Places {
    root: Pgid,
    parts: Vec<Part>,
    pages: Vec<Run>,
}

impl Beside<'_> {
    /// Gives the changed pages of the state their places, which are nobody else's; and the meta that leads to them.
    pub(super) fn place(&self, work: &mut Work, meta: Meta) -> Result<(Meta, Vec<Part>), End> {
        // As many as are changed, if none is split.
        let needed = 2 * work.nodes.len();
        if work.nodes.iter().any(|node| node.page.is_some_and(|run| run.len > 1)) {
            // Where there are runs for them only the whole list knows.
            return self.with_writer(|writer| {
                make_room(needed as u64, self.shared, writer)?;
                let mark = self.shared.readers.current().meta.mark;
                Places::find(work, &mut writer.freelist, mark).map(|places| places.taken(meta, self.shared, writer))
            });
        }
        let mut aside = Vec::new();
        let found = self.set_pages_aside(needed, &mut aside).and_then(|()| {
            aside.sort_unstable();
            let mark = self.shared.readers.current().meta.mark;
            let mut free = Freelist::load(0, aside.iter().copied(), mark)?;
            let places = Places::find(work, &mut free, mark)?;
            Ok((places, free))
        });
        // What was set aside goes back, whatever has become of this.
        self.shared.writer.with(|writer| {
            writer.set_aside -= aside.len() as u64;
            let is_next = writer.is_next_beside();
            match found {
                Ok((places, unused)) if is_next => {
                    writer.freelist.give_back(&unused.free().iter().collect::<Vec<_>>());
                    Ok(places.taken(meta, self.shared, writer))
                }
                ended => {
                    writer.freelist.give_back_dirty(&aside);
                    Err(ended.map_or_else(|end| end, |_| End::Overtaken))
                }
            }
        })
    }

    /// Sets so many pages aside, some at a time, so that no commit waits long.
    fn set_pages_aside(&self, pages: usize, aside: &mut Vec<Pgid>) -> Result<(), End> {
        while aside.len() < pages {
            let more = (pages - aside.len()).min(BATCH);
            let more = self.with_writer(|writer| set_aside(self.shared, writer, more))?;
            if more.is_empty() {
                return Err(End::Failed(no_space()));
            }
            aside.extend(more);
        }
        Ok(())
    }
}

/// Has the file grow, where it has fewer free pages.
fn make_room(pages: u64, shared: &Shared, writer: &mut Writer) -> Result<()> {
    writer.release_pages(shared, shared.readers.current().pages())?;
    if writer.freelist.free_pages() < pages { grow(shared, writer, pages.max(GROWTH)) } else { Ok(()) }
}

impl Places {
    /// All of them among these pages: the file, which ends at `mark`, does not get longer.
    fn find(work: &mut Work, free: &mut Freelist, mark: Pgid) -> Result<Self> {
        let mut allocator = Allocator::new(free, mark, Vec::new(), Vec::new(), false);
        let spilled = work.spill(&mut allocator);
        allocator.give_back_rest();
        match spilled {
            Ok((root, parts)) if allocator.mark == mark => Ok(Self { root, parts, pages: allocator.all }),
            spilled => {
                allocator.undo();
                Err(spilled.err().unwrap_or_else(no_space))
            }
        }
    }

    /// From now on they are the state's alone.
    fn taken(self, meta: Meta, shared: &Shared, writer: &mut Writer) -> (Meta, Vec<Part>) {
        let Self { root, parts, pages } = self;
        writer.freelist.only_of(meta.txid, pages.iter().copied());
        writer.spare.patcher.iter_mut().for_each(|patcher| patcher.forget(&pages));
        let mark = shared.readers.current().meta.mark;
        (Meta { root, mark, freelist: NO_FREELIST, ..meta }, parts)
    }
}
