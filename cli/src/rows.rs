//! Rows of names and values that a server tells of itself: as a table, or as JSON.

use std::io::{self, Write as _};

use crate::failure::{Failure, Outcome};
use crate::stats::as_json;

/// A row: names and values.
pub(crate) type Row = Vec<(String, String)>;

/// Prints rows: a column for each name, or an object a line.
pub(crate) fn print(rows: &[Row], json: bool) -> Outcome {
    let text = if json { rows.iter().map(|row| as_json(row)).collect() } else { as_table(rows) };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// The names of the first row, then the values of each beneath. What is empty is a dash, so that a script can count columns.
fn as_table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let names: Vec<_> = first.iter().map(|(name, _)| name.as_str()).collect();
    let value = |row: &'_ Row, name: &str| -> String {
        let value = row.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
        // A blank would look like two columns.
        if value.is_empty() { "-".into() } else { value.replace(' ', "_") }
    };
    let mut lines: Vec<Vec<String>> = vec![names.iter().map(|name| (*name).to_owned()).collect()];
    lines.extend(rows.iter().map(|row| names.iter().map(|name| value(row, name)).collect()));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..names.len()).map(width).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_column_for_each_name() {
        let row = |id: &str, peer: &str, name: &str| -> Row {
            [("id", id), ("peer", peer), ("name", name)].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        };
        let rows = [row("1", "unix (user 7)", ""), row("23", "[::1]:5", "app")];
        let expected = "id  peer           name\n1   unix_(user_7)  -\n23  [::1]:5        app\n";
        assert_eq!(as_table(&rows), expected);
        assert_eq!(as_table(&[]), "");
    }
}
