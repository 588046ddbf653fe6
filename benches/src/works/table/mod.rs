//! The table: every work with those who take part and the rows that are read off it, a theme a file.

mod commits;
mod flat;
mod integers;
mod reads;
mod used;
mod values;
mod writes;

use super::{Entry, Scale};

/// The whole table.
pub(super) fn entries(scale: Scale) -> Vec<Entry> {
    [
        writes::entries(scale),
        reads::entries(scale),
        commits::entries(scale),
        used::entries(scale),
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
    use crate::work::{Step, Work};

    #[test]
    fn every_work_has_a_name_of_its_own() {
        let table = entries(Scale::Quick);
        let names: BTreeSet<_> = table.iter().map(|entry| &entry.work.name).collect();
        assert_eq!(names.len(), table.len());
    }

    #[test]
    fn every_row_looks_at_figures_and_contestants_of_its_work() {
        for Entry { work, field, rows, .. } in entries(Scale::Full) {
            assert!(field.iter().all(|name| name.parse::<Contestant>().is_ok()), "{field:?}");
            let timed: BTreeSet<_> = work.stages.iter().filter_map(|stage| stage.figure.as_deref()).collect();
            for row in rows {
                assert!(field.contains(&row.ours), "{}", row.title);
                for rival in [row.bar, row.aim].into_iter().flatten().filter_map(|goal| goal.of) {
                    assert!(field.contains(&rival), "{}: {rival}", row.title);
                }
                let named = match row.figure {
                    Figure::Rate(name) | Figure::Size(name) => vec![name],
                    Figure::Ratio(over, under) | Figure::Sizes(over, under) => vec![over, under],
                    Figure::Growth(names) => names.to_vec(),
                    Figure::PeakPrivate | Figure::Used | Figure::File => vec![],
                };
                assert!(named.iter().all(|name| timed.contains(name)), "{}: {named:?}", row.title);
            }
        }
    }

    #[test]
    fn what_is_timed_without_syncs_ends_with_one() {
        for Entry { work, .. } in
            entries(Scale::Full).into_iter().filter(|entry| !entry.work.synced && !entry.work.counted)
        {
            let written: BTreeSet<_> = figures(&work, |step| matches!(step, Step::Put { .. } | Step::Delete { .. }));
            assert_eq!(written, figures(&work, |step| matches!(step, Step::Sync)), "{}", work.name);
        }
    }

    fn figures(work: &Work, kind: impl Fn(&Step) -> bool) -> BTreeSet<String> {
        work.stages.iter().filter(|stage| kind(&stage.step)).filter_map(|stage| stage.figure.clone()).collect()
    }
}
