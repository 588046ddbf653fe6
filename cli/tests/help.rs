//! The help: every command has one, with an example, and the exit codes are told.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod common;

use common::run;

#[test]
fn every_command_has_help_with_an_example() {
    let commands: [&[&str]; 24] = [
        &["serve"],
        &["get"],
        &["set"],
        &["delete"],
        &["scan"],
        &["bucket", "create"],
        &["bucket", "delete"],
        &["bucket", "list"],
        &["ping"],
        &["health"],
        &["file", "check"],
        &["file", "export"],
        &["file", "import"],
        &["file", "buckets"],
        &["file", "keys"],
        &["file", "get"],
        &["file", "dump"],
        &["file", "page-item"],
        &["file", "info"],
        &["file", "stats"],
        &["file", "page"],
        &["file", "pages"],
        &["file", "inspect"],
        &["file", "tree"],
    ];
    for command in commands {
        let help = run(command.iter().chain(&["--help"])).done_text();
        assert!(help.contains(&format!("Examples:\n  boltkv {}", command.join(" "))), "{help}");
        assert!(!help.contains('\u{1b}'), "colours are for terminals: {help}");
    }
}

#[test]
fn a_command_on_a_file_needs_a_file() {
    for command in
        ["info", "buckets", "keys", "get", "stats", "check", "dump", "page", "page-item", "pages", "inspect", "tree"]
    {
        let ran = run(["file", command]);
        assert_eq!(ran.code, Some(2), "{command}");
        assert!(ran.stderr.contains("Usage: boltkv file"), "{command}: {}", ran.stderr);
    }
}

#[test]
fn the_exit_codes_are_told() {
    let help = run(["--help"]).done_text();
    assert!(help.contains("Exit codes:\n  0  done\n  1  not found"), "{help}");
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(run(["--version"]).done_text(), format!("boltkv {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_is_no_command_is_a_mistake_of_usage() {
    assert_eq!(run(["frobnicate"]).code, Some(2));
    assert_eq!(run([""; 0]).code, Some(2));
}
