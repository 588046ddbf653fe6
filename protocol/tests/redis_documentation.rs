//! `docs/redis.md` is kept true: its table has a row for each command that there is, and none that there is not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use boltkv_protocol::resp::{Kind, MAX_ARGS, RESP_COMMANDS, find};

fn documentation() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/redis.md")).unwrap()
}

/// The rows of the table of commands: the name, whether it is there, and what differs.
fn rows(text: &str) -> BTreeMap<&str, (&str, &str)> {
    let (_, commands) = text.split_once("\n## Commands\n").expect("there is a table");
    let rows = commands.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows = rows.map(|(name, rest)| {
        let (state, difference) = rest.split_once(" |").expect("a row has three parts");
        (name, (state, difference.trim_end_matches('|').trim()))
    });
    let count = rows.clone().count();
    let rows: BTreeMap<_, _> = rows.collect();
    assert_eq!(rows.len(), count, "a command has one row");
    rows
}

#[test]
fn every_command_has_a_row_and_no_other_has() {
    let text = documentation();
    let rows = rows(&text);
    for spec in RESP_COMMANDS {
        assert!(rows.contains_key(spec.name), "{} has no row", spec.name);
    }
    for (name, (state, difference)) in rows {
        assert!(find(name.as_bytes()).is_some(), "there is no {name}");
        match state {
            "there" => assert_eq!(difference, "", "{name}"),
            "there, with a difference" => assert_ne!(difference, "", "{name}"),
            "not there" => assert_eq!(difference, "an error", "{name}"),
            other => panic!("{name} is {other}"),
        }
    }
}

#[test]
fn what_is_said_not_to_be_there_is_not() {
    let text = documentation();
    let (_, rest) = text.split_once("\nNot there, and answered").expect("it is said");
    for name in rest
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte)))
    {
        assert!(find(name.as_bytes()).is_none(), "{name} is there");
    }
    for prefix in ["Z", "BZ", "GEO", "X", "PF"] {
        assert!(!RESP_COMMANDS.iter().any(|spec| spec.name.starts_with(prefix)), "{prefix}");
    }
}

#[test]
fn what_looks_at_everything_is_in_the_table_of_costs() {
    let text = documentation();
    let (_, costs) = text.split_once("\n## What it costs\n").expect("there is a table");
    let (costs, _) = costs.split_once("\n## ").expect("something follows");
    for spec in RESP_COMMANDS.iter().filter(|spec| spec.kind == Kind::Walk) {
        assert!(costs.contains(spec.name), "{}", spec.name);
    }
    let words = format!("{},{:03} words", MAX_ARGS / 1_000, MAX_ARGS % 1_000);
    assert!(text.contains(&words), "{words}");
}
