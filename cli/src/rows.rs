//! Rows of names and values that a server tells of itself: as a table, or as JSON.

use std::io::{self, Write as _};

use serde_json::{Map, Number, Value};

use crate::failure::{Failure, Outcome};

/// A row: names and values.
pub(crate) type Row = Vec<(String, String)>;

/// What is text, whatever it looks like: a token may be called `007`.
const TEXTS: [&str; 6] = ["peer", "dialect", "token", "name", "command", "result"];

/// Prints rows: a column for each name, or an object a line.
pub(crate) fn print(rows: &[Row], json: bool) -> Outcome {
    let text = if json { rows.iter().map(|row| as_json(row)).collect() } else { as_table(rows) };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// An object a line: numbers as numbers, with their fractions.
pub(crate) fn as_json(row: &[(String, String)]) -> String {
    let value = |name: &str, value: &str| match serde_json::from_str::<Number>(value) {
        Ok(number) if !TEXTS.contains(&name) => Value::Number(number),
        _ => value.into(),
    };
    let object: Map<_, _> = row.iter().map(|(name, text)| (name.clone(), value(name, text))).collect();
    format!("{}\n", Value::Object(object))
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

    #[test]
    fn json_has_numbers_where_they_are_and_text_where_a_name_looks_like_one() {
        let row = [("id", "7"), ("idle_seconds", "61.250"), ("token", "007"), ("name", "1e3"), ("peer", "unix")];
        let row: Row = row.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let value: Value = serde_json::from_str(&as_json(&row)).unwrap();
        assert_eq!(
            value,
            serde_json::json!({"id": 7, "idle_seconds": 61.25, "token": "007", "name": "1e3", "peer": "unix"})
        );
    }
}
