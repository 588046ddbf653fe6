//! The table, as Markdown has it.

use std::fmt::Write as _;
use std::time::Duration;

use super::Measured;
use super::load::Times;
use crate::goal::short;

/// All rows.
#[must_use]
pub fn table(measured: &Measured) -> String {
    let [entries, bytes] = [measured.entries, measured.bytes >> 20];
    let mut text = format!("A file of {entries} entries, {bytes} MiB. Times are p50 / p99 / the longest, in ms.\n\n");
    text += "| memory | GETs | GETs a second | a GET, or all in flight | PING beside it |\n";
    text += "| --- | --- | --- | --- | --- |\n";
    for row in &measured.rows {
        let memory = row.memory.map_or("all".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        let _ = match row.load {
            None => writeln!(text, "| {memory} | none | – | – | {} |", times(&row.figures.ping)),
            Some(load) => writeln!(
                text,
                "| {memory} | {} connections, {} in flight each | {} | {} | {} |",
                load.connections,
                load.in_flight,
                short(row.figures.rate),
                times(&row.figures.burst),
                times(&row.figures.ping)
            ),
        };
    }
    if let Some(why) = &measured.unlimited {
        let _ = writeln!(text, "\nWithout rows of little memory, as no control group could be made: {why}");
    }
    text
}

fn times(times: &Times) -> String {
    let shown = [500, 990, 1000].map(|part| times.per_mille(part).map_or("–".to_owned(), milliseconds));
    shown.join(" / ")
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
