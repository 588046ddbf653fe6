//! Which elements of a page can be believed.
//!
//! Pages carry no checksum, but they are packed: each element's key and value begin where those of
//! the element before it end. An element is believed where that holds on both of its sides; its key
//! must lie within what the branch above says, and ascend. Nothing here follows a reference.

use crate::format::{ELEMENT, PAGE_HEADER, Page};

/// What is known of the keys of a page before it is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds<'a> {
    /// The highest key that was taken before: keys must be above it.
    pub(super) after: Option<&'a [u8]>,
    /// Keys must be below it.
    pub(super) high: Option<&'a [u8]>,
    /// From where on the branch above, or one above that, has the page's keys.
    pub(super) low: Option<&'a [u8]>,
    /// The lowest key, as the branch above names it.
    pub(super) first: Option<&'a [u8]>,
}

impl Bounds<'_> {
    /// Whether a key can be there. One below `low` can: whoever could say that it is the page that is
    /// wrong, and not the branch, would have to know more keys.
    fn admit(&self, key: &[u8]) -> bool {
        self.after.is_none_or(|after| key > after) && self.high.is_none_or(|high| key < high)
    }
}

/// What an element was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verdict {
    Believed,
    Misplaced,
    NoKey,
    OutOfBounds,
    OutOfOrder,
}

impl Verdict {
    /// Why it is not believed.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Believed => "nothing is wrong with it",
            Self::Misplaced => "its bytes are not where the elements beside it leave room for them",
            Self::NoKey => "its key is empty",
            Self::OutOfBounds => "its key is not among those that the pages above speak of",
            Self::OutOfOrder => "its key is out of order",
        }
    }
}

/// A page that was looked at.
pub(super) struct Vetted<'a> {
    pub(super) page: Page<'a>,
    /// One for each element; empty where all are believed.
    verdicts: Vec<Verdict>,
}

impl<'a> Vetted<'a> {
    pub(super) fn new(page: Page<'a>, bounds: &Bounds<'_>) -> Self {
        let page = with_true_count(page);
        let verdicts = verdicts(&page, bounds);
        let all = verdicts.iter().all(|&verdict| verdict == Verdict::Believed);
        Self { page, verdicts: if all { Vec::new() } else { verdicts } }
    }

    pub(super) fn len(&self) -> usize {
        self.page.len()
    }

    pub(super) fn verdict(&self, index: usize) -> Verdict {
        self.verdicts.get(index).copied().unwrap_or(Verdict::Believed)
    }

    /// The key of an element, if it is believed.
    pub(super) fn key(&self, index: usize) -> Option<&'a [u8]> {
        if index < self.len() && self.verdict(index) == Verdict::Believed { self.page.key(index).ok() } else { None }
    }

    /// Whether its first key is the one that a branch names for it; `None` where either is not known.
    pub(super) fn is_first(&self, bounds: &Bounds<'_>) -> Option<bool> {
        self.key(0).zip(bounds.first).map(|(key, first)| key == first)
    }

    /// The first believed key from `index` on.
    pub(super) fn next_key(&self, index: usize) -> Option<(usize, &'a [u8])> {
        (index..self.len()).find_map(|index| self.key(index).map(|key| (index, key)))
    }

    /// Bytes of the page up to the end of its last believed element.
    pub(super) fn size(&self) -> usize {
        let last = (0..self.len()).rev().find(|&index| self.verdict(index) == Verdict::Believed);
        last.and_then(|last| span(&self.page, last)).map_or_else(|| data_start(self.len()), |(_, end)| end)
    }
}

/// Whether a page has elements, and all of them can be believed. Ends with the first that cannot.
pub(super) fn is_sound(page: &Page<'_>) -> bool {
    let keys = || (0..page.len()).map(|index| page.key(index).ok());
    let ascends = || keys().zip(keys().skip(1)).all(|(one, next)| one < next);
    in_place(page).all(|in_place| in_place) && page.key(0).is_ok_and(|first| !first.is_empty()) && ascends()
}

/// Whether any key of a page can be within bounds. Looks at two of them at most.
pub(super) fn can_fit(page: &Page<'_>, bounds: &Bounds<'_>) -> bool {
    let first_is_below = page.key(0).ok().is_none_or(|first| bounds.high.is_none_or(|high| first < high));
    let last_is_above = match page {
        Page::Leaf(leaf) if leaf.len() > 0 => {
            page.key(leaf.len() - 1).ok().is_none_or(|last| bounds.after.is_none_or(|after| last > after))
        }
        // What a branch leads to has no end that it would tell.
        Page::Leaf(_) | Page::Branch(_) => true,
    };
    first_is_below && last_is_above
}

/// Where an element's key and value begin and end in their page.
fn span(page: &Page<'_>, index: usize) -> Option<(usize, usize)> {
    match page {
        Page::Leaf(leaf) => {
            let entry = leaf.entry(index).ok()?;
            let start = leaf.offset_of(entry.key);
            Some((start, start + entry.key.len() + entry.value.len()))
        }
        Page::Branch(branch) => {
            let key = branch.key(index).ok()?;
            let start = branch.offset_of(key);
            Some((start, start + key.len()))
        }
    }
}

/// Where the bytes of a page's elements begin.
fn data_start(len: usize) -> usize {
    PAGE_HEADER + len * ELEMENT
}

/// The page with as many elements as there is room for before the bytes of the first, where more
/// of these stand in place than of as many as its header says: then it is the header that is damaged.
fn with_true_count(page: Page<'_>) -> Page<'_> {
    let pos = match &page {
        Page::Leaf(_) => word(page.bytes(), PAGE_HEADER + 4),
        Page::Branch(_) => word(page.bytes(), PAGE_HEADER),
    };
    let pos = pos.map_or(0, |pos| pos as usize);
    let count = pos / ELEMENT;
    if !pos.is_multiple_of(ELEMENT) || count == 0 || count == page.len() {
        return page;
    }
    let in_place = |page: &Page<'_>| in_place(page).filter(|&in_place| in_place).count();
    let recounted = Page::parse_with_count(page.id(), page.bytes(), count).ok();
    recounted.filter(|recounted| in_place(recounted) > in_place(&page)).unwrap_or(page)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// Of each element, whether it begins where the one before it ends, and ends where the next begins.
fn in_place<'a>(page: &Page<'a>) -> impl Iterator<Item = bool> + use<'a> {
    let (page, len) = (*page, page.len());
    let mut end_before = Some(data_start(len));
    let mut here = span(&page, 0);
    (0..len).map(move |index| {
        let is_last = index + 1 == len;
        let next = if is_last { None } else { span(&page, index + 1) };
        let is_in_place = here.is_some_and(|(start, end)| {
            end_before == Some(start) && (is_last || next.is_some_and(|next| next.0 == end))
        });
        end_before = here.map(|span| span.1);
        here = next;
        is_in_place
    })
}

fn verdicts(page: &Page<'_>, bounds: &Bounds<'_>) -> Vec<Verdict> {
    let verdict = |(index, in_place)| match page.key(index).ok() {
        Some([]) => Verdict::NoKey,
        Some(key) if in_place && bounds.admit(key) => Verdict::Believed,
        Some(_) if in_place => Verdict::OutOfBounds,
        _ => Verdict::Misplaced,
    };
    let mut verdicts: Vec<Verdict> = in_place(page).enumerate().map(verdict).collect();
    believe_ascending(page, &mut verdicts);
    verdicts
}

/// Of the believed elements, leaves so many as ascend, and as many as can be.
fn believe_ascending(page: &Page<'_>, verdicts: &mut [Verdict]) {
    let key = |index: usize| page.key(index).ok().unwrap_or_default();
    let believed = || (0..verdicts.len()).filter(|&index| verdicts[index] == Verdict::Believed);
    let ascends = believed().zip(believed().skip(1)).all(|(one, next)| key(one) < key(next));
    if ascends {
        return;
    }
    // For each length of an ascending run, the element with the lowest key that ends one, and before
    // each element the one that comes before it in its run.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; verdicts.len()];
    for index in believed() {
        let at = ends.partition_point(|&end| key(end) < key(index));
        before[index] = at.checked_sub(1).map(|at| ends[at]);
        if at == ends.len() { ends.push(index) } else { ends[at] = index }
    }
    for verdict in verdicts.iter_mut().filter(|verdict| **verdict == Verdict::Believed) {
        *verdict = Verdict::OutOfOrder;
    }
    let mut next = ends.last().copied();
    while let Some(index) = next {
        verdicts[index] = Verdict::Believed;
        next = before[index];
    }
}
