//! What grows with the number of entries.

use anyhow::Result;

use super::page::Page;
use super::plot::{Panel, Series};
use super::{open, rate, spread};
use crate::goal::{Figure, digits, short};
use crate::results::Results;
use crate::stats::Summary;
use crate::works::Scale;
use crate::works::growth::{FIELD, FIGURES, counts, name};

/// Why what is neither flat nor in step grows as it does.
const GROWING: &str = "\
A get finds less and less of its way in the processor's caches, until only the branches are left there: what is added
then is a wait for memory, not a step. Puts share their leaves while there are few: a commit of 1,000 rewrites each of
them for several puts. Where there are more leaves than puts, each put has its own leaf written, and with still more
entries its own branch above: from then on it grows with the depth of the tree. Opening reads the list of free pages,
which commits of 10,000 entries at random leave as long as they are wide: thousands of pages.";

pub(super) fn section(results: &Results, page: &mut Page) -> Result<()> {
    let about = "Random entries of 8 and 32 bytes, every commit synced: what one operation takes as there are more of \
                 them. Seconds.";
    open(results, "## Growth", about, page);
    let sizes: Vec<_> =
        counts(Scale::Large).iter().copied().filter(|size| !results.contestants(&name(*size)).is_empty()).collect();
    let mut rows = Vec::new();
    for (figure, what) in FIGURES {
        for engine in FIELD {
            let points = points(results, engine, figure, &sizes);
            let mut row = vec![what.to_owned(), engine.to_owned()];
            row.extend(sizes.iter().map(|size| spread(results, &name(*size), engine, figure, times)));
            row.push(exponent(&points));
            rows.push(row);
        }
    }
    for engine in FIELD {
        let points = memory(results, engine, &sizes);
        let mut row = vec!["private memory".to_owned(), engine.to_owned()];
        row.extend(points.iter().map(|point| point.map_or("–".to_owned(), |(_, bytes)| short(bytes) + "B")));
        row.push(exponent(&points));
        rows.push(row);
    }
    let names: Vec<_> = sizes.iter().map(|size| format!("{size} entries")).collect();
    let mut head = vec!["", ""];
    head.extend(names.iter().map(String::as_str));
    head.push("grows with");
    page.table(&head, &rows);
    let mut panels: Vec<_> = FIGURES
        .iter()
        .map(|(figure, what)| panel(what, "seconds", |engine| points(results, engine, figure, &sizes)))
        .collect();
    panels.push(panel("private memory", "bytes", |engine| memory(results, engine, &sizes)));
    page.plot("growth", "what an operation takes by number of entries", &panels)?;
    page.paragraph(
        "The last column is the power of the number of entries that a cost grows with, from the smallest number to the\n\
         largest: 0 is flat, 1 is in step. A check, a backup and a compaction read every page. Opening \
         boltkv's file syncs it once,\nfor the sake of a process that was killed before. Of the checks, boltkv's uses all \
         processors. The memory is the most that\nthe process had for itself in all of this.",
    );
    page.paragraph(GROWING);
    Ok(())
}

/// What one operation takes, of how many there are in a second.
fn times(rates: Summary) -> [String; 3] {
    let time = rates.inverse();
    [time.median, time.min, time.max].map(|seconds| short(seconds) + "s")
}

type Points = Vec<Option<(f64, f64)>>;

#[expect(clippy::cast_precision_loss, reason = "a count of entries, far below 2^52")]
fn points(results: &Results, engine: &str, figure: &str, sizes: &[u64]) -> Points {
    let point = |&size: &u64| Some((size as f64, 1.0 / rate(results, &name(size), engine, figure)?));
    sizes.iter().map(point).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of entries, far below 2^52")]
fn memory(results: &Results, engine: &str, sizes: &[u64]) -> Points {
    let point = |&size: &u64| Some((size as f64, Figure::PeakPrivate.over(results, &name(size), engine)?.median));
    sizes.iter().map(point).collect()
}

/// The power of x that y grows with, from the first point to the last.
fn exponent(points: &[Option<(f64, f64)>]) -> String {
    let known: Vec<_> = points.iter().flatten().collect();
    match (known.first(), known.last()) {
        (Some(first), Some(last)) if first.0 < last.0 => {
            let power = (last.1 / first.1).ln() / (last.0 / first.0).ln();
            let sign = if power < 0.0 { "−" } else { "" };
            format!("n^{sign}{}", digits(power.abs()))
        }
        _ => "–".to_owned(),
    }
}

fn panel(title: &str, y: &'static str, points: impl Fn(&str) -> Points) -> Panel {
    let line =
        |engine: &str| Series { contestant: engine.to_owned(), points: points(engine).into_iter().flatten().collect() };
    Panel { title: title.to_owned(), x: "entries", y, series: FIELD.iter().map(|engine| line(engine)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_tells_flat_from_linear() {
        assert_eq!(exponent(&[Some((10.0, 3.0)), Some((1000.0, 3.0))]), "n^0.00");
        assert_eq!(exponent(&[Some((10.0, 3.0)), None, Some((1000.0, 300.0))]), "n^1.00");
        assert_eq!(exponent(&[Some((10.0, 3.0))]), "–");
    }
}
