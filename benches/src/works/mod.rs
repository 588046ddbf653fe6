//! The table: every work with those who take part and the rows that are read off it, a theme a file. A work here is
//! only data; nothing may be measured here.

mod commits;
mod flat;
mod integers;
mod reads;
mod values;
mod writes;

use crate::contestant::ENGINES;
use crate::goal::Row;
use crate::work::Work;

/// A work, who does it, and what is read off it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The work.
    pub work: Work,
    /// The contestants' names.
    pub field: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Entry {
    fn new(work: Work, rows: impl Into<Vec<Row>>) -> Self {
        Self { work, field: ENGINES.to_vec(), rows: rows.into() }
    }

    /// Only these take part.
    fn by(mut self, field: &[&'static str]) -> Self {
        self.field = field.to_vec();
        self
    }
}

/// How large the works are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As the table says.
    Full,
    /// A hundredth of that: whether all of it runs, not how fast.
    Quick,
}

impl Scale {
    /// A number of entries or operations of the table.
    fn of(self, full: u64) -> u64 {
        match self {
            Self::Full => full,
            Self::Quick => (full / 100).max(10),
        }
    }
}

/// The whole table.
#[must_use]
pub fn table(scale: Scale) -> Vec<Entry> {
    [
        writes::entries(scale),
        reads::entries(scale),
        commits::entries(scale),
        integers::entries(scale),
        values::entries(scale),
        flat::entries(scale),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::contestant::Contestant;
    use crate::goal::Figure;

    #[test]
    fn every_work_has_a_name_of_its_own() {
        let table = table(Scale::Quick);
        let names: BTreeSet<_> = table.iter().map(|entry| &entry.work.name).collect();
        assert_eq!(names.len(), table.len());
    }

    #[test]
    fn every_row_looks_at_figures_and_contestants_of_its_work() {
        for Entry { work, field, rows } in table(Scale::Full) {
            assert!(field.iter().all(|name| name.parse::<Contestant>().is_ok()), "{field:?}");
            let timed: BTreeSet<_> = work.stages.iter().filter_map(|stage| stage.figure.as_deref()).collect();
            for row in rows {
                assert!(field.contains(&row.ours), "{}", row.title);
                for rival in [row.bar, row.aim].into_iter().flatten().filter_map(|goal| goal.of) {
                    assert!(field.contains(&rival), "{}: {rival}", row.title);
                }
                let named = match row.figure {
                    Figure::Rate(name) => vec![name],
                    Figure::Ratio(over, under) => vec![over, under],
                    Figure::Growth(names) => names.to_vec(),
                    Figure::PeakPrivate | Figure::Used => vec![],
                };
                assert!(named.iter().all(|name| timed.contains(name)), "{}: {named:?}", row.title);
            }
        }
    }

    #[test]
    fn what_is_timed_without_syncs_ends_with_one() {
        for Entry { work, .. } in table(Scale::Full).into_iter().filter(|entry| !entry.work.synced) {
            let written: BTreeSet<_> = figures(&work, |step| matches!(step, Step::Put { .. } | Step::Delete { .. }));
            assert_eq!(written, figures(&work, |step| matches!(step, Step::Sync)), "{}", work.name);
        }
    }

    use crate::work::Step;

    fn figures(work: &Work, kind: impl Fn(&Step) -> bool) -> BTreeSet<String> {
        work.stages.iter().filter(|stage| kind(&stage.step)).filter_map(|stage| stage.figure.clone()).collect()
    }
}
