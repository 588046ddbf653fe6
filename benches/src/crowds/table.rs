//! The table, as Markdown has it.

use std::time::Duration;

use super::Row;
use crate::goal::short;

/// What stands above the rows.
pub const HEAD: &str = "| beside | connections | memory, MB | a GET, p50 / p99 / longest, ms | a SET | missed |\n\
                        | --- | --- | --- | --- | --- | --- |\n";

/// A row.
#[must_use]
pub fn line(row: &Row) -> String {
    let rate = row.rate.map_or_else(String::new, |rate| format!(", {} a second", short(rate)));
    let [before, with] = row.memory.map(megabytes);
    format!(
        "| {}{rate} | {} | {before} → {with} | {} | {} | {} |\n",
        row.kind.name(),
        row.connections,
        times(row.get),
        times(row.set),
        row.missed
    )
}

fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "memory, far below 2^52 bytes")]
    let megabytes = bytes as f64 / 1e6;
    format!("{megabytes:.1}")
}

fn times(times: [Duration; 3]) -> String {
    times.map(|time| format!("{:.2}", time.as_secs_f64() * 1e3)).join(" / ")
}
