//! Called by bbolt's name: helps, usages, guesses and completion are laid out as those of bbolt's own command.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::ffi::OsString;

use crate::common::Ran;
use crate::common::linked::both;

#[test]
fn a_failure_comes_with_the_usage_on_standard_error() {
    let Some(both) = both() else { return };
    let args = args!["check", both.files.folder.path().join("missing")];
    let (theirs, ours) = (both.files.bbolt.run(&args), both.linked.run(&args));
    let usage = |ran: &Ran| ran.stderr.lines().skip(1).take(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(usage(&ours), usage(&theirs));
    assert!(ours.stderr.contains("--from-page uint   "), "{}", ours.stderr);
    for args in [
        &args!["--help"][..],
        &args!["help"],
        &args![],
        &args!["surgery"],
        &args!["surgery", "nonsense"],
        &args!["completion"],
    ] {
        let (theirs, ours) = (both.files.bbolt.run(args), both.linked.run(args));
        assert_eq!((ours.code, &*ours.stderr), (theirs.code, &*theirs.stderr), "{args:?}");
        let commands = |ran: &Ran| {
            let text = ran.text();
            let lines = text.lines().filter(|line| line.starts_with("  ") && !line.contains("--"));
            lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect::<Vec<_>>()
        };
        let theirs: Vec<_> = commands(&theirs).into_iter().filter(|name| name != "help").collect();
        assert_eq!(commands(&ours), theirs, "{args:?}");
    }
}

#[test]
fn a_command_that_there_is_not_is_said_what_may_have_been_meant() {
    let Some(both) = both() else { return };
    for word in ["chek", "surg", "PAGES", "pag", "st", "completions", "frobnicate", "c"] {
        let (theirs, ours) = (both.files.bbolt.run(&args![word]), both.linked.run(&args![word]));
        // bbolt guesses in the order in which its source adds commands.
        let lines = |ran: &Ran| {
            let mut lines: Vec<_> = ran.stderr.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!((ours.code, lines(&ours)), (theirs.code, lines(&theirs)), "{word}");
    }
}

/// Their script asks the program; ours knows all of it.
#[test]
fn a_shell_completes_its_commands_and_flags() {
    let Some(both) = both() else { return };
    for shell in ["bash", "fish", "powershell", "zsh"] {
        let script = both.linked.run(&args!["completion", shell]).done_text();
        for word in ["bbolt", "page-item", "revert-meta-page", "tx-max-size"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn every_command_takes_the_flags_that_bbolts_takes() {
    let Some(both) = both() else { return };
    let flags = |ran: &Ran| {
        let text = ran.text();
        let lines = text.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        lines.map(|line| line.split("  ").next().unwrap_or_default().trim().to_owned()).collect::<Vec<_>>()
    };
    let mut commands: Vec<Vec<&str>> = ["bench", "buckets", "check", "compact", "dump", "get", "info", "inspect"]
        .iter()
        .chain(&["keys", "page", "page-item", "pages", "stats", "version"])
        .map(|name| vec![*name])
        .collect();
    for shell in ["bash", "fish", "powershell", "zsh"] {
        commands.push(vec!["completion", shell]);
    }
    for name in ["clear-page", "clear-page-elements", "copy-page", "revert-meta-page"] {
        commands.push(vec!["surgery", name]);
    }
    for (group, name) in [("freelist", "abandon"), ("freelist", "rebuild"), ("meta", "update"), ("meta", "validate")] {
        commands.push(vec!["surgery", group, name]);
    }
    for words in commands {
        let args: Vec<OsString> = words.iter().chain(&["--help"]).map(OsString::from).collect();
        let (theirs, ours) = (both.files.bbolt.run(&args), both.linked.run(&args));
        assert_eq!((ours.code, &*ours.stderr), (Some(0), ""), "{words:?}");
        assert_eq!(flags(&ours), flags(&theirs), "{words:?}");
    }
}
