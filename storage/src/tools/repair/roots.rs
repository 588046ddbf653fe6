//! Where to begin: the root of a meta's tree, or, where no meta is of any use, the page that looks
//! most like a root. Nothing here writes; to compare trees it walks over them.

use std::cmp::Reverse;

use super::image::Image;
use super::vet::is_sound;
use super::walk::{Sink, Tally, Walk};
use super::{RepairAlternative, RepairOptions};
use crate::Result;
use crate::format::{BucketHeader, Meta, Page, Pgid};
use crate::pages::MAX_DEPTH;
use crate::pages::PageSet;
use zerocopy::FromBytes as _;

/// How many of the pages that look like a root are compared by all that they lead to.
const CANDIDATES_TO_WALK: usize = 8;

/// Where a repair begins.
pub(super) struct Start {
    /// `None` where nothing looks like a root.
    pub(super) root: Option<Pgid>,
    pub(super) how: How,
    /// The first page that cannot be one.
    pub(super) limit: Pgid,
}

pub(super) enum How {
    /// With this meta.
    Meta(Meta),
    /// As the caller said.
    Given,
    /// Of so many pages that look like a root.
    Found(usize),
}

impl Start {
    /// Chooses: what the caller said; the newest meta whose root can be read; the best candidate.
    pub(super) fn choose(image: &Image, options: &RepairOptions) -> Result<Self> {
        let metas = by_age(image, options.meta);
        let limit = metas.first().map_or(image.pages, |(_, meta)| meta.mark);
        if let Some(root) = options.root_page {
            return Ok(Self { root: Some(root), how: How::Given, limit });
        }
        for (_, meta) in metas {
            if image.page(meta.root, meta.mark).is_ok() {
                return Ok(Self { root: Some(meta.root), how: How::Meta(meta), limit: meta.mark });
            }
        }
        search(image, limit)
    }

    /// The other meta, if its root can be read, and what would be lost with it.
    pub(super) fn alternative(&self, image: &Image) -> Result<Option<RepairAlternative>> {
        let How::Meta(taken) = &self.how else { return Ok(None) };
        let mut others = by_age(image, None).into_iter().filter(|(_, meta)| meta != taken);
        let other = others.find(|(_, meta)| image.page(meta.root, meta.mark).is_ok());
        let Some((slot, meta)) = other else { return Ok(None) };
        let Tally { lost, doubtful, .. } = tally(image, meta.root, meta.mark)?;
        Ok(Some(RepairAlternative { meta: slot, txid: meta.txid, lost, doubtful }))
    }
}

/// The metas that are whole, or the one in `slot`, with their slots; the newest first.
pub(super) fn by_age(image: &Image, slot: Option<u8>) -> Vec<(u8, Meta)> {
    let metas = [0, 1].into_iter().zip(image.metas).filter(|(at, _)| slot.is_none_or(|slot| slot == *at));
    let mut metas: Vec<(u8, Meta)> = metas.filter_map(|(at, meta)| Some((at, meta?))).collect();
    metas.sort_by_key(|(_, meta)| Reverse(meta.txid));
    metas
}

/// What a walk from `root` comes across.
fn tally(image: &Image, root: Pgid, limit: Pgid) -> Result<Tally> {
    let mut walk = Walk::new(image, limit);
    walk.bucket(root, true, &mut Nowhere)?;
    Ok(walk.tally)
}

/// A page that looks like a root, best first in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Buckets whose root is not to be read.
    broken: usize,
    /// No damaged meta names it; the one of the lower number does.
    named_by_meta: Reverse<u64>,
    /// Another page leads to it.
    is_referenced: bool,
    /// The sum of its buckets' sequences, which only ever grow.
    sequences: Reverse<u128>,
    id: Reverse<Pgid>,
}

/// Looks at every page for one that can be the root bucket's root.
fn search(image: &Image, limit: Pgid) -> Result<Start> {
    let referenced = PageSet::new(limit.min(image.pages));
    for id in 2..limit.min(image.pages) {
        if let Some(page) = sound_page(image, id, limit) {
            references(&page, |to| {
                referenced.insert(to);
            });
        }
    }
    let (mut best, mut count) = (Vec::new(), 0);
    for id in 2..limit.min(image.pages) {
        let Some(candidate) = candidate(image, id, limit, &referenced) else { continue };
        count += 1;
        best.push(candidate);
        best.sort_unstable();
        best.truncate(CANDIDATES_TO_WALK);
    }
    Ok(Start { root: best_of(image, &best, limit)?, how: How::Found(count), limit })
}

/// The one that leads to most, the first in their order where several do. One that a damaged meta
/// names, and whose buckets are all there, needs no comparison.
fn best_of(image: &Image, candidates: &[Candidate], limit: Pgid) -> Result<Option<Pgid>> {
    if let Some(first) = candidates.first().filter(|first| first.broken == 0 && first.named_by_meta.0 > 0) {
        return Ok(Some(first.id.0));
    }
    let mut best: Option<(Pgid, Tally)> = None;
    for candidate in candidates {
        let found = tally(image, candidate.id.0, limit)?;
        let key = |tally: &Tally| (tally.pages, Reverse(tally.lost));
        if best.is_none_or(|(_, best)| key(&found) > key(&best)) {
            best = Some((candidate.id.0, found));
        }
    }
    Ok(best.map(|(id, _)| id))
}

/// A page all of whose elements can be believed.
pub(super) fn sound_page(image: &Image, id: Pgid, limit: Pgid) -> Option<Page<'_>> {
    image.page(id, limit).ok().filter(is_sound)
}

/// Calls `found` with every page that a page leads to.
pub(super) fn references(page: &Page<'_>, mut found: impl FnMut(Pgid)) {
    match page {
        Page::Branch(branch) => (0..branch.len()).filter_map(|index| branch.child(index).ok()).for_each(found),
        Page::Leaf(leaf) => {
            let entries = (0..leaf.len()).filter_map(|index| leaf.entry(index).ok());
            let headers = entries
                .filter(|entry| entry.is_bucket)
                .filter_map(|entry| BucketHeader::read_from_prefix(entry.value).ok().map(|(header, _)| header));
            headers.filter(|header| header.root != 0).for_each(|header| found(header.root.get()));
        }
    }
}

/// The page as a candidate, if it is a leaf with nothing but buckets, or leads to one.
fn candidate(image: &Image, id: Pgid, limit: Pgid, referenced: &PageSet) -> Option<Candidate> {
    let mut page = sound_page(image, id, limit)?;
    for _ in 0..MAX_DEPTH {
        let Page::Branch(branch) = page else { break };
        page = sound_page(image, branch.child(0).ok()?, limit)?;
    }
    let Page::Leaf(leaf) = page else { return None };
    let mut sequences = 0;
    for index in 0..leaf.len() {
        let entry = leaf.entry(index).ok().filter(|entry| entry.is_bucket)?;
        let (header, _) = BucketHeader::read_from_prefix(entry.value).ok()?;
        sequences += u128::from(header.sequence.get());
    }
    let mut broken = 0;
    references(&page, |to| broken += usize::from(image.page(to, limit).is_err()));
    let named_by = |slot| image.damaged_meta(slot).filter(|meta| meta.root == id).map_or(0, |meta| meta.txid.max(1));
    Some(Candidate {
        broken,
        named_by_meta: Reverse(named_by(0).max(named_by(1))),
        is_referenced: referenced.contains(id),
        sequences: Reverse(sequences),
        id: Reverse(id),
    })
}

/// For walks that are only counted.
struct Nowhere;

impl Sink for Nowhere {
    fn enter(&mut self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }

    fn leave(&mut self) {}

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn lost(&mut self, _: &super::RepairPlace<'_>) {}

    fn doubtful(&mut self, _: &super::RepairPlace<'_>) {}

    fn walked(&mut self, _: u64) {}
}
