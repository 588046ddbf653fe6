//! The configuration of a server: its layers, `boltkv config`, and what is said of mistakes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::server::Server;
use crate::common::{Ran, boltkv, run};
use serde_json::Value;

/// A configuration file, and the folder that it is in.
struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(text: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("boltkv.toml");
    fs::write(&path, text).unwrap();
    File { _folder: folder, path }
}

/// Settings as `config show --json` tells them, by their names.
fn shown(args: &[OsString], environment: &[(&str, &str)]) -> BTreeMap<String, Value> {
    let mut command = boltkv(args!["config", "show", "--json"]);
    let output = command.args(args).envs(environment.iter().copied()).output().unwrap();
    serde_json::from_slice(&Ran::from(output).done()).unwrap()
}

/// What `config check` says of a file and an environment that have mistakes.
#[track_caller]
fn mistakes(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let file = file(text);
    let mut command = boltkv(args!["config", "check", "--config", &file.path]);
    let ran = Ran::from(command.envs(environment.iter().copied()).output().unwrap());
    assert_eq!((ran.code, ran.text().as_str()), (Some(2), ""), "{}", ran.stderr);
    let place = format!("boltkv: {}:", file.path.display());
    ran.stderr.lines().map(|line| line.replace(&place, "").replace("boltkv: ", "")).collect()
}

/// Settings of each kind: the key with its section and three values of it, for the file, the environment and the flag.
const SETTINGS: [(&str, &str, [&str; 3]); 12] = [
    ("db", "", ["file.db", "variable.db", "flag.db"]),
    ("listen", "", ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]),
    ("read-only", "", ["true", "false", "true"]),
    ("on-write-failure", "", ["serve-reads", "stop", "serve-reads"]),
    ("log", "", ["info", "debug", "boltkv_server=trace"]),
    ("durability", "durability", ["never", "interval=100ms", "always"]),
    ("journal-size", "durability", ["1MiB", "2MiB", "3MiB"]),
    ("journal-keep", "durability", ["10GiB", "7d", "1h"]),
    ("max-connections", "limits", ["11", "12", "13"]),
    ("max-frame", "limits", ["65536", "1M", "2MB"]),
    ("idle-timeout", "timeouts", ["5", "6s", "7m"]),
    ("lock-timeout", "timeouts", ["0.5", "200ms", "2"]),
];

/// As JSON has it: numbers and booleans as what they are.
fn plain(text: &str) -> Value {
    match (text.parse::<i64>(), text.parse::<bool>()) {
        (Ok(number), _) => number.into(),
        (_, Ok(is)) => is.into(),
        _ => text.into(),
    }
}

/// The one that a list has.
fn one(value: &Value) -> &Value {
    value.as_array().and_then(|all| all.first()).unwrap_or(value)
}

// Promises: ops-layers.
#[test]
fn each_layer_beats_the_one_below_it() {
    for (name, section, [in_file, in_variable, in_flag]) in SETTINGS {
        let value = match plain(in_file) {
            Value::String(text) => format!("\"{text}\""),
            plain => plain.to_string(),
        };
        let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        let file = file(&format!("# A comment.\n{header}{name} = {value}\n"));
        let variable = format!("BOLTKV_{}", name.to_uppercase().replace('-', "_"));
        let config = args!["--config", &file.path];
        let both = args!["--config", &file.path, format!("--{name}={in_flag}")];
        let of = |args: &[OsString], environment: &[(&str, &str)]| shown(args, environment)[name].clone();

        let default = of(&[], &[]);
        assert_eq!(default["source"], "default", "{name}");
        assert_eq!(default["section"], if section.is_empty() { Value::Null } else { section.into() }, "{name}");
        let found = of(&config, &[]);
        let line = if section.is_empty() { 2 } else { 3 };
        assert_eq!((&found["source"], &found["line"]), (&"file".into(), &line.into()), "{name}");
        assert_eq!(*one(&found["value"]), plain(in_file), "{name}");
        assert_ne!(found["value"], default["value"], "{name}: choose another value for the file");
        let found = of(&config, &[(&variable, in_variable)]);
        assert_eq!(
            (&found["source"], &found["variable"]),
            (&"environment".into(), &variable.as_str().into()),
            "{name}"
        );
        assert_eq!(*one(&found["value"]), plain(in_variable), "{name}");
        let found = of(&both, &[(&variable, in_variable)]);
        assert_eq!((&found["source"], one(&found["value"])), (&"flag".into(), &plain(in_flag)), "{name}");
        let found = of(&config, &[(&variable, "")]);
        assert_eq!(found["source"], "file", "{name}: a variable that is empty says nothing");
    }
}

#[test]
fn a_server_does_what_the_layers_say() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let text = format!("db = {db:?}\nlisten = \"127.0.0.1:0\"\n[limits]\nmax-frame = \"64KiB\"\nmax-streams = 1\n");
    let file = file(&text);
    let server = Server::spawn(boltkv(["serve"]).env("BOLTKV_CONFIG", &file.path));
    assert!(server.ready.contains(db.to_str().unwrap()), "{}", server.ready);
    assert!(server.run(["set", "key", &"x".repeat(65_536)]).failed(1).contains("over the limit of 65536"));
    server.stop().done();
    let mut command = boltkv(args!["serve", "--config", &file.path]);
    let server = Server::spawn(command.env("BOLTKV_MAX_FRAME", "1MiB").env("BOLTKV_DURABILITY", "never"));
    assert!(server.ready.contains("durability never"), "{}", server.ready);
    server.run(["set", "key", &"x".repeat(65_536)]).done();
    server.stop().done();
    // A switch that the file turns on, a flag turns off.
    fs::write(&file.path, format!("read-only = true\n{text}")).unwrap();
    let server = Server::spawn(&mut boltkv(args!["serve", "--config", &file.path]));
    assert!(server.ready.ends_with("read-only\n"), "{}", server.ready);
    server.stop().done();
    let server = Server::spawn(&mut boltkv(args!["serve", "--config", &file.path, "--read-only=false"]));
    assert!(server.ready.contains("durability always"), "{}", server.ready);
    server.stop().done();
}

#[test]
fn the_usual_variable_for_logs_counts_where_ours_says_nothing() {
    let log = |environment: &[(&str, &str)], args: &[OsString]| shown(args, environment)["log"].clone();
    assert_eq!(log(&[("RUST_LOG", "info")], &[])["variable"], "RUST_LOG");
    assert_eq!(log(&[("RUST_LOG", "info"), ("BOLTKV_LOG", "debug")], &[])["value"], "debug");
    // It may be meant for other programs.
    assert_eq!(log(&[("RUST_LOG", "nonsense"), ("BOLTKV_LOG", "debug")], &[])["value"], "debug");
    assert_eq!(log(&[("RUST_LOG", "nonsense")], &args!["--log=error"])["value"], "error");
    let ran = Ran::from(boltkv(["config", "check"]).env("RUST_LOG", "nonsense").output().unwrap());
    assert!(ran.failed(2).contains("\"nonsense\" for RUST_LOG: nonsense is no level"));
}

// Promises: ops-config-check.
#[test]
fn every_mistake_of_a_file_is_told_with_its_line() {
    let text = "lisen = \"127.0.0.1:0\"\n\
        db = 7\n\
        read-only = \"perhaps\"\n\
        max-frame = \"1MiB\"\n\
        discard-journal = true\n\
        [limits]\n\
        max_streams = 3\n\
        max-frame = 1000\n\
        max-backups = true\n\
        max-watches = [1]\n\
        workers = 0\n\
        queue-bytes = \"1 parsec\"\n\
        colour = \"red\"\n\
        [limit]\n\
        max-streams = 3\n\
        [durability]\n\
        journal = true\n\
        journal-size = \"4KiB\"\n\
        [timeouts]\n\
        timeout = 3\n\
        idle-timeout = 1979-05-27\n\
        reply-timeout = \"soon\"\n";
    let expected = [
        "1: lisen is not known; is listen meant?",
        "2: db is a number, but must be FILE, a string",
        "3: invalid value \"perhaps\" for read-only: ",
        "4: the setting max-frame belongs in [limits]",
        "5: discard-journal is only a flag: ",
        "7: max_streams is not known; is max-streams meant?",
        "8: max-frame is 1000, but must lie between 64KiB and 128MiB",
        "9: max-backups is a boolean, but must be a number",
        "10: max-watches is an array, but must be a number",
        "11: invalid value \"0\" for workers: 0 is not in 1..=1024",
        "12: invalid value \"1 parsec\" for queue-bytes: the units of a size are ",
        "13: colour is not known",
        "14: there is no section [limit]; is [limits] meant?",
        "17: journal is a boolean, but must be WHERE, a string",
        "18: journal-size is 4KiB, but must be 64KiB at least",
        "20: timeout is not known; is lock-timeout meant?",
        "21: idle-timeout is a date, but must be TIME, a number or a string with a unit",
        "22: invalid value \"soon\" for reply-timeout: not a time ",
    ];
    let said = mistakes(text, &[]);
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}, not {expected}");
    }
}

#[test]
fn a_section_that_is_called_like_a_setting_is_no_section() {
    let said = mistakes("[timeout]\nidle-timeout = \"1h\"\n[journal]\nkeep = 3\n", &[]);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert_eq!(said[0], "1: there is no section [timeout]; is [timeouts] meant?");
    assert!(said[1].starts_with("3: there is no section [journal]"), "{}", said[1]);
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    for (text, line, why) in [
        ("db = \"a\"\nlisten =\n", 2, ""),
        ("db = \"a\"\ndb = \"b\"\n", 2, "duplicate"),
        ("[limits]\n[limits]\n", 2, "duplicate"),
        ("db = \"a\nlisten = \"b\"\n", 1, ""),
        ("limits = 3\n", 1, "limits is a section: [limits]"),
        ("[limits]\n[limits.max-frame]\n", 2, "max-frame is a table"),
    ] {
        let said = mistakes(text, &[]);
        assert!(said[0].starts_with(&format!("{line}: ")) && said[0].contains(why), "{text}: {said:?}");
    }
    // Of every bracket that is not closed the parser says the same.
    let said = mistakes(&format!("\ndb = {}", "[".repeat(200)), &[]);
    assert!(said.iter().any(|line| line == "2: unclosed array, expected `]`") && said.len() < 5, "{said:?}");
    let said = mistakes(&"no\n".repeat(5_000), &[]);
    assert_eq!(said.len(), 101, "so many are told one by one: {:?}", said.last());
    assert!(said[100].starts_with("and ") && said[100].ends_with(" more mistakes"), "{}", said[100]);
    let file = file("");
    fs::write(&file.path, b"db = \"a\"\n# \xff\n").unwrap();
    let said = run(args!["config", "check", "--config", &file.path]).failed(2);
    assert!(said.contains("boltkv.toml:2: not UTF-8"), "{said}");
    fs::write(&file.path, vec![b'#'; 2 << 20]).unwrap();
    assert!(run(args!["config", "check", "--config", &file.path]).failed(2).contains("at most 1 MiB"));
}

#[test]
fn a_mistake_is_called_by_where_it_stands() {
    let said = mistakes("listen = \"0.0.0.0:0\"\n", &[("BOLTKV_MAX_FRAME", "2"), ("BOLTKV_TEXT_LINGER", "soon")]);
    assert!(said[0].starts_with("1: listen is 0.0.0.0:0, which is beyond loopback: "), "{said:?}");
    assert!(said[1].starts_with("BOLTKV_MAX_FRAME is 2, but must lie between"), "{said:?}");
    assert!(said[2].starts_with("invalid value \"soon\" for BOLTKV_TEXT_LINGER: not a time"), "{said:?}");
    // A server says the same.
    let file = file("[limits]\nmax-streams = 0\nmax-frame = 1\n");
    let ran = run(args!["serve", "--config", &file.path, "--max-in-flight", "0"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 3), "{}", ran.stderr);
    assert!(ran.stderr.contains("boltkv.toml:2: max-streams is 0, but must lie between 1 and "), "{}", ran.stderr);
    assert!(ran.stderr.contains("boltkv: --max-in-flight is 0"), "{}", ran.stderr);
}

#[test]
fn what_is_there_without_what_it_takes_is_told_by_where_it_stands_and_with_the_others() {
    let said = mistakes("[limits]\nmax-frame = 2\n[access]\ntls-cert = \"a.pem\"\n", &[]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("2: max-frame is 2, "), "{said:?}");
    assert_eq!(said[1], "4: tls-cert needs its key, --tls-key");
    let said = mistakes("", &[("BOLTKV_TLS_KEY", "a.key")]);
    assert_eq!(said, ["BOLTKV_TLS_KEY needs its certificate, --tls-cert"]);
    let said = mistakes("[access]\ntls-client-ca = \"ca.pem\"\n", &[]);
    assert!(said.len() == 1 && said[0].starts_with("2: tls-client-ca needs a certificate"), "{said:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_3() {
    for command in [&["serve"][..], &["config", "check"], &["config", "show"]] {
        let said = run(command.iter().copied().chain(["--config", "/no/such/file.toml"])).failed(3);
        assert!(said.contains("/no/such/file.toml: No such file"), "{said}");
    }
    let ran = Ran::from(boltkv(["config", "check"]).env("BOLTKV_CONFIG", "/no/such/file.toml").output().unwrap());
    ran.failed(3);
    run(args!["config", "check"]).done();
}

// Promises: ops-config-variable.
#[test]
fn a_misspelt_variable_is_warned_of_and_others_matters_are_not() {
    let check = |variables: &[(&str, &str)]| {
        let ran = Ran::from(boltkv(["config", "check"]).envs(variables.iter().copied()).output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    let said = check(&[("BOLTKV_MAX_FRAMES", "1MiB"), ("BOLTKV_LISTN", "localhost")]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.contains("warning: the variable BOLTKV_MAX_FRAMES is not known; is BOLTKV_MAX_FRAME meant?"),
        "{said}"
    );
    let said = check(&[("BOLTKV_DISCARD_JOURNAL", "1")]);
    assert!(said.contains("BOLTKV_DISCARD_JOURNAL says nothing: --discard-journal is only a flag"), "{said}");
    let others = ["BOLTKV_ADDR", "BOLTKV_TIMEOUT", "BOLTKV_TOKEN", "BOLTKV_SERVICE_HOST", "BOLTKV_PORT", "BOLTKV_SEED"];
    assert_eq!(check(&others.map(|name| (name, "1"))), "");
    let folder = tempfile::tempdir().unwrap();
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", folder.path().join("a.db")]);
    let said = Server::spawn(command.env("BOLTKV_MAX_FRAMES", "1MiB")).stop();
    assert!(said.code == Some(0) && said.stderr.contains("BOLTKV_MAX_FRAME meant?"), "{}", said.stderr);
}

// Promises: ops-config-show.
#[test]
fn what_is_shown_is_a_file_that_says_the_same() {
    let toml = |args: &[OsString]| {
        let text = run(args!["config", "show"].iter().chain(args)).done_text();
        let file = file(&text);
        (file, text)
    };
    let values = |args: &[OsString]| {
        let settings = shown(args, &[]);
        settings.into_iter().map(|(name, setting)| (name, setting["value"].clone())).collect::<Vec<_>>()
    };
    let flags: Vec<_> =
        SETTINGS.iter().map(|(name, _, values)| OsString::from(format!("--{name}={}", values[2]))).collect();
    let odd = args!["--db=a \"b\"\\c\t.db", "--journal=#on", "--memory=1GiB", "--read-only", "--max-size=2MB"];
    for args in [&[][..], &flags, &odd] {
        let (file, text) = toml(args);
        let config = args!["--config", &file.path];
        assert_eq!(values(&config), values(args), "{text}");
        let without_origins = |text: &str| {
            text.lines()
                .map(|line| line.rsplit_once("  # ").map_or(line, |(value, _)| value).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(without_origins(&toml(&config).1), without_origins(&text));
    }
    let (_, text) = toml(&args!["--max-frame=1MiB"]);
    assert!(
        text.contains("\nmax-frame = \"1MiB\"  # flag\n") && text.contains("\nmax-streams = 16  # default\n"),
        "{text}"
    );
    assert!(text.contains("\n# max-size is not set\n"), "{text}");
    // What then holds depends on what there is.
    let says = "\n# journal-size is not set: 192MiB, or twice `--journal-memory` where that is more\n";
    assert!(text.contains(says), "{text}");
}

#[test]
fn the_file_of_the_defaults_changes_nothing_even_when_all_of_it_is_used() {
    let text = run(["config", "show", "--default"]).done_text();
    let used: String = text.lines().fold(String::new(), |used, line| {
        let line = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line);
        used + line + "\n"
    });
    assert_ne!(text, used);
    let values = |path: Option<&Path>| {
        let args = path.map_or(vec![], |path| args!["--config", path].to_vec());
        shown(&args, &[]).into_iter().map(|(name, setting)| (name, setting["value"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(values(Some(&file(&text).path)), values(None));
    assert_eq!(values(Some(&file(&used).path)), values(None));
    for (name, _) in values(None) {
        assert!(text.contains(&format!("#{name} = ")) || text.contains(&format!("# Not set: {name} = ")), "{name}");
    }
}

#[test]
fn the_example_of_the_manual_is_a_configuration() {
    let manual = include_str!("../../../docs/operations.md");
    let (_, example) = manual.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let settings = shown(&args!["--config", &file(example).path], &[]);
    let from_file = settings.values().filter(|setting| setting["source"] == "file").count();
    assert_eq!(from_file, example.lines().filter(|line| line.contains(" = ")).count());
    for (name, setting) in settings {
        let section = setting["section"].as_str().map_or("top", |section| section);
        assert!(
            ["top", "access", "durability", "limits", "timeouts"].contains(&section),
            "{name} is in {section}, which is not told"
        );
    }
}
