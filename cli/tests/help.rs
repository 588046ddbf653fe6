//! The help: every command has one, with an example, and the exit codes are told.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

mod common;

use common::run;

/// Every command that does something, with the commands that it is one of, as the help lists them.
fn commands() -> Vec<Vec<String>> {
    let (mut groups, mut commands) = (vec![Vec::new()], Vec::new());
    while let Some(group) = groups.pop() {
        let help = run(group.iter().map(String::as_str).chain(["--help"])).done_text();
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names: Vec<_> = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
        if names.is_empty() {
            commands.push(group);
            continue;
        }
        for name in names.into_iter().filter(|name| !name.is_empty() && *name != "help") {
            groups.push(group.iter().cloned().chain([name.to_owned()]).collect());
        }
    }
    commands
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in commands() {
        let help = run(command.iter().map(String::as_str).chain(["--help"])).done_text();
        let example = format!(":\n  boltkv {}", command.join(" "));
        assert!(help.contains(&format!("Example{example}")) || help.contains(&format!("Examples{example}")), "{help}");
        assert!(!help.contains('\u{1b}'), "colours are for terminals: {help}");
    }
}

#[test]
fn every_command_on_a_file_prints_json_if_asked() {
    let commands: Vec<_> = commands().into_iter().filter(|command| command[0] == "file").collect();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands {
        let help = run(command.iter().map(String::as_str).chain(["--help"])).done_text();
        assert!(help.contains("--json"), "{command:?}: {help}");
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
