//! Everything that is measured, for Prometheus: one table says what there is, and its text is made of that.
//!
//! The text is written by hand. The libraries for it keep the values themselves, behind locks or in maps that every count
//! looks them up in; here they are counted where they arise and only read when somebody asks, and what is left, lines of a
//! name, labels and a number, is less code than telling a library of values that are not its own.

#[cfg(test)]
mod documents;
mod measured;
pub(crate) mod process;
mod table;
mod text;

use crate::shared::Shared;
use measured::Measured;
use table::METRICS;
use text::Text;

/// All metrics, in the text format. Asks about files: not for a thread that others wait for.
pub(crate) fn text(shared: &Shared) -> String {
    let measured = Measured::now(shared);
    let mut text = Text::default();
    for metric in METRICS {
        text.begin(metric.name, metric.kind.name(), metric.help);
        (metric.value)(&measured, &mut text);
    }
    text.into_string()
}
