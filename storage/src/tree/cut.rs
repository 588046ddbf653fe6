//! Where a node that has outgrown its page is cut.

use super::Fill;
use super::arena::Bytes;
use super::node::{Growth, Node};
use crate::format::{MAX_ELEMENTS, PAGE_HEADER};

/// Fewest entries of a part, but for the leaves of [`Fill::Auto`].
const MIN_KEYS: usize = 2;
/// Pages from which on an entry is large: it has a run of its own, so that it need not be copied whenever something
/// beside it changes. What that wastes, a part of a page, is little beside it.
const LARGE: usize = 4;

/// One part of a node: so many entries, which take so many bytes with the page's header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) count: usize,
    pub(super) size: usize,
}

impl Cut {
    /// Whether a page can hold one more entry: its count and the offsets in it have 16 and 32 bits.
    fn can_hold(&self, size: usize) -> bool {
        let offsets_fit = u32::try_from(self.size + size).is_ok();
        self.count == 0 || (self.count < MAX_ELEMENTS && offsets_fit)
    }
}

#[derive(Clone, Copy)]
enum Rule {
    /// As bbolt does it: a page is filled up to so many bytes, and the last takes what is left.
    Bbolt { threshold: usize },
    /// Every page but the last is as full as it gets: nothing comes between what is there.
    Full,
    /// As few pages as leave each of them some room, all equally full.
    Even,
}

impl Rule {
    fn of(fill: Fill, growth: Growth, page_size: usize) -> Self {
        match fill {
            Fill::Percent(_) => Self::Bbolt { threshold: fill.threshold(page_size) },
            Fill::Auto if growth == Growth::Appended => Self::Full,
            Fill::Auto => Self::Even,
        }
    }

    /// Whether so many bytes are left as one part. bbolt cuts what takes just a page; then a page that was filled to its
    /// last byte would become two whenever it is written anew.
    fn fits(self, size: usize, page_size: usize) -> bool {
        match self {
            Self::Bbolt { .. } => size < page_size,
            Self::Full | Self::Even => size <= page_size,
        }
    }

    /// Bytes up to which the next part is filled; `left` are those that are still to be cut.
    fn limit(self, left: usize, page_size: usize) -> usize {
        match self {
            Self::Bbolt { threshold } => threshold,
            Self::Full => page_size,
            Self::Even => left / left.div_ceil(page_size * 4 / 5),
        }
    }
}

/// What a node's entries are cut by.
struct Cutter {
    rule: Rule,
    is_leaf: bool,
    page_size: usize,
}

impl Cutter {
    /// Whether so many entries of so many bytes stay together.
    fn is_whole(&self, count: usize, size: usize) -> bool {
        let too_few = match self.rule {
            Rule::Bbolt { .. } => count <= 2 * MIN_KEYS,
            Rule::Full | Rule::Even => !self.is_leaf && count < 2 * MIN_KEYS,
        };
        too_few || self.rule.fits(size, self.page_size)
    }

    /// Most entries of a part that is not the last.
    fn most(&self, count: usize) -> usize {
        match self.rule {
            Rule::Bbolt { .. } => count - MIN_KEYS - 1,
            Rule::Full | Rule::Even if self.is_leaf => count,
            Rule::Full | Rule::Even => count - MIN_KEYS,
        }
    }

    /// Whether a part ends before an entry of `next` bytes.
    fn ends(&self, cut: &Cut, next: usize, limit: usize) -> bool {
        match self.rule {
            Rule::Bbolt { .. } => cut.count >= MIN_KEYS && cut.size + next > limit,
            Rule::Full | Rule::Even if self.is_leaf => {
                let large = next.max(cut.size) >= LARGE * self.page_size;
                // Two entries of a little more than a page each take fewer pages together than apart.
                let enough = cut.count >= if large || cut.size <= self.page_size { 1 } else { MIN_KEYS };
                enough && (large || self.is_full(cut, next, limit))
            }
            Rule::Full | Rule::Even => cut.count >= MIN_KEYS && self.is_full(cut, next, limit),
        }
    }

    fn is_full(&self, cut: &Cut, next: usize, limit: usize) -> bool {
        // Even parts end where they are nearest to their limit.
        let counted = if matches!(self.rule, Rule::Even) { next / 2 } else { next };
        cut.size + next > self.page_size || cut.size + counted > limit
    }
}

/// Appends the parts that a node is written in: where bbolt would split it, or by the rules of [`Fill::Auto`]; and
/// further where these leave a part that no page can hold.
pub(super) fn cuts(node: &Node, bytes: Bytes<'_>, fill: Fill, page_size: usize, cuts: &mut Vec<Cut>) {
    let (count, size) = (node.slots.len(), node.size());
    let rule = Rule::of(fill, node.growth, page_size);
    if rule.fits(size, page_size) && count <= MAX_ELEMENTS {
        cuts.push(Cut { count, size });
        return;
    }
    Cutter { rule, is_leaf: node.is_leaf, page_size }.cut(count, size, node.slots.sizes(bytes), cuts);
}

impl Cutter {
    fn cut(&self, count: usize, size: usize, sizes: impl Iterator<Item = usize>, cuts: &mut Vec<Cut>) {
        let mut sizes = sizes.peekable();
        let (mut left, mut left_size) = (count, size);
        loop {
            let whole = self.is_whole(left, left_size);
            let most = if whole { left } else { self.most(left) };
            let limit = self.rule.limit(left_size, self.page_size);
            let mut cut = Cut { count: 0, size: PAGE_HEADER };
            while cut.count < most {
                let Some(&size) = sizes.peek() else { break };
                if !whole && self.ends(&cut, size, limit) || !cut.can_hold(size) {
                    break;
                }
                sizes.next();
                cut.count += 1;
                cut.size += size;
            }
            left -= cut.count;
            left_size -= cut.size - PAGE_HEADER;
            cuts.push(cut);
            if left == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// How many entries of these sizes each part has.
    fn counts(rule: Rule, is_leaf: bool, sizes: &[usize]) -> Vec<usize> {
        let cutter = Cutter { rule, is_leaf, page_size: PAGE };
        let size = PAGE_HEADER + sizes.iter().sum::<usize>();
        let mut cuts = Vec::new();
        cutter.cut(sizes.len(), size, sizes.iter().copied(), &mut cuts);
        assert_eq!(cuts.iter().map(|cut| cut.size - PAGE_HEADER).sum::<usize>(), size - PAGE_HEADER);
        cuts.into_iter().map(|cut| cut.count).collect()
    }

    #[test]
    fn a_node_that_grew_at_random_is_cut_evenly_and_leaves_room() {
        assert_eq!(counts(Rule::Even, true, &[56; 74]), [37, 37]);
        assert_eq!(counts(Rule::Even, true, &[56; 120]), [40, 40, 40]);
        assert_eq!(counts(Rule::Even, false, &[24; 200]), [100, 100]);
        let many = counts(Rule::Even, true, &vec![56; 100_000]);
        let (least, most) = (many.iter().min().unwrap(), many.iter().max().unwrap());
        assert!(*most <= 60 && *least >= 50, "{least} to {most} of the 72 that fit");
    }

    #[test]
    fn a_node_that_grew_at_its_end_is_cut_full() {
        assert_eq!(counts(Rule::Full, true, &[56; 150]), [72, 72, 6]);
    }

    #[test]
    fn what_takes_just_a_page_stays_on_it_but_for_bbolts_rule() {
        for rule in [Rule::Even, Rule::Full] {
            assert_eq!(counts(rule, true, &[120; 34]), [34]);
            assert_eq!(counts(rule, true, &[120; 35]).len(), 2);
        }
        assert_eq!(counts(Rule::Bbolt { threshold: PAGE / 2 }, true, &[120; 34]), [16, 18]);
    }

    #[test]
    fn a_large_entry_has_pages_of_its_own() {
        for rule in [Rule::Even, Rule::Full] {
            assert_eq!(counts(rule, true, &[100_000, 100_000]), [1, 1]);
            assert_eq!(counts(rule, true, &[50, 100_000, 50, 50]), [1, 1, 2]);
            assert_eq!(counts(rule, true, &[100_000]), [1]);
        }
    }

    #[test]
    fn entries_of_about_a_page_do_not_each_waste_half_of_two() {
        assert_eq!(counts(Rule::Even, true, &[4100; 4]), [2, 2]);
        assert_eq!(counts(Rule::Even, true, &[2100; 4]), [1, 1, 1, 1]);
    }

    #[test]
    fn a_branch_has_two_children_or_more() {
        for rule in [Rule::Even, Rule::Full, Rule::Bbolt { threshold: PAGE / 2 }] {
            for count in 2..9 {
                let counts = counts(rule, false, &vec![30_000; count]);
                assert!(counts.iter().all(|&count| count >= 2), "{counts:?}");
            }
        }
    }
}
