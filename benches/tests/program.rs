//! The program from outside: it measures, keeps what it found, and reports it.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fmt::Debug;
use std::path::Path;
use std::process::{Command, Output};

use boltkv_benches::results::{self, Results};
use boltkv_benches::servers::Servers;
use boltkv_benches::shell::Shell;

fn peers(args: &[&str], folder: &Path) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_peers")).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_row_is_measured_printed_kept_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let works = ["--quick", "--rounds", "3", "--only", "random-one,values", "--engines", "boltkv"];
    let output = peers(&[&["peers"], &works[..], &["--json", "peers.json"]].concat(), folder.path());
    assert!(String::from_utf8_lossy(&output.stdout).contains("100k entries in one commit"));

    let results: Results = results::read(&folder.path().join("peers.json")).unwrap();
    assert_eq!(results.runs.len(), 3 * 3);
    assert!(results.left_out.is_empty(), "{:?}", results.left_out);
    assert!(results.runs.iter().all(|run| run.used.is_some() && run.file_bytes >= run.used && !run.costs.is_empty()));

    peers(&["report", "--from", "peers.json"], folder.path());
    assert!(folder.path().join("docs/benchmarks.md").exists());
}

#[test]
fn an_engine_that_cannot_do_a_work_is_left_out_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    peers(&["peers", "--quick", "--only", "values-100k", "--engines", "sanakirja", "--json", "r.json"], folder.path());
    let results: Results = results::read(&folder.path().join("r.json")).unwrap();
    assert_eq!(results.left_out.len(), 1);
    assert!(results.left_out[0].why.contains("510 bytes") || results.left_out[0].why.contains("not built in"));
}

#[test]
fn an_engine_that_cannot_be_built_is_left_out_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let engines = ["--engines", "boltkv,bugfruit", "--json", "r.json"];
    peers(&[&["peers", "--quick", "--only", "values-100k"], &engines[..]].concat(), folder.path());
    let results: Results = results::read(&folder.path().join("r.json")).unwrap();
    assert!(results.of("values-100k", "boltkv").any(|run| run.used.is_some()));
    match results.left_out.as_slice() {
        [out] => assert!(out.contestant == "bugfruit" && out.why.starts_with("go "), "{out:?}"),
        others => assert!(others.is_empty() && results.of("values-100k", "bugfruit").any(|run| run.used.is_some())),
    }
}

/// Says that a tool is missing; an error where CI has installed them all.
fn skip(why: &dyn Debug) {
    let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but {why:?}");
    // What `eprintln!` prints of a test that passes is swallowed.
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("skipped: {why:?}\n"));
}

#[boltkv_needs::program("go")]
#[test]
fn go_and_rust_do_the_same_work_and_read_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let layouts = ["binary", "binary-named", "json", "message-pack", "multi-kv", "nested"];
    let layouts = layouts.map(|layout| format!("{layout}-each-100000,{layout}-all-1000")).join(",");
    for suite in [
        &["experiments", "a", "--only", "rnd-nest-100000-by-5000,read-100000"][..],
        &["experiments", "c", "--only", &layouts],
        &["growth", "--only", "growth-100000"],
        &["peers", "--only", "reads,one-put,values-100"],
    ] {
        let args = ["--quick", "--engines", "boltkv,bbolt", "--json", "r.json"];
        peers(&[suite, &args[..]].concat(), folder.path());
        let results: Results = results::read(&folder.path().join("r.json")).unwrap();
        if results.left_out.iter().any(|out| out.contestant == "bbolt" && out.why.starts_with("go ")) {
            return skip(&results.left_out);
        }
        // Who had read something else would be named here.
        assert!(results.left_out.is_empty(), "{suite:?}: {:?}", results.left_out);
        let done = |engine| results.runs.iter().filter(|run| run.contestant == engine).count();
        assert!(done("boltkv") > 0 && done("boltkv") == done("bbolt"), "{suite:?}");
    }
}

#[boltkv_needs::program("valgrind")]
#[test]
fn instructions_are_counted_without_those_of_the_program_itself() {
    let folder = tempfile::tempdir().unwrap();
    peers(&["peers", "--quick", "--only", "flat-counted", "--json", "r.json"], folder.path());
    let results: Results = results::read(&folder.path().join("r.json")).unwrap();
    if results.left_out.iter().any(|out| out.why.starts_with("valgrind does not start")) {
        return skip(&results.left_out);
    }
    let [run] = results.runs.as_slice() else { panic!("{:?}", results.left_out) };
    // A process that only starts and ends takes hundreds of thousands; a few inserts take fewer than many.
    let spent = |figure: &str| run.costs[figure].spent;
    assert!(spent("1k") > 0.0 && spent("1k") < spent("10k") && spent("10k") < spent("1M") / 10.0, "{run:?}");
}

#[test]
fn a_trial_says_so_and_judges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(&["peers", "--quick", "--only", "values-100k", "--engines", "boltkv,lmdb"], folder.path());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("A trial run") && !said.contains("holds") && !said.contains("missed"), "{said}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (args, why) in [
        (&["peers", "--only", "writing"][..], "no work \"writing\""),
        (&["peers", "--engines", "leveldb"], "no engine \"leveldb\""),
        (&["growth", "--engines", "nut,lmdb"], "nothing of this is done by nut, lmdb"),
        (&["peers", "--rounds", "0"], "'0' for '--rounds"),
        (&["peers", "--limit", "0"], "'0' for '--limit"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_peers")).args(args).output().unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
    }
}

/// Builds boltkv's program beside the one that is tested.
fn build_server() {
    let beside = Path::new(env!("CARGO_BIN_EXE_peers")).parent().unwrap();
    let profile = beside.file_name().unwrap().to_str().unwrap();
    let profile = if profile == "debug" { "dev" } else { profile };
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--package", "boltkv", "--profile", profile, "--target-dir"]);
    assert!(cargo.arg(beside.parent().unwrap()).status().unwrap().success());
}

#[boltkv_needs::program("hyperfine", "nc.openbsd")]
#[test]
fn a_server_is_measured_from_the_shell_and_reported() {
    build_server();
    let folder = tempfile::tempdir().unwrap();
    let args = ["shell", "--quick", "--runs", "3", "--json", "shell.json", "--folder", "."];
    let output = Command::new(env!("CARGO_BIN_EXE_peers")).args(args).current_dir(folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("is missing") {
        return skip(&stderr);
    }
    assert!(output.status.success(), "{stderr}");

    let shell: Shell = results::read(&folder.path().join("shell.json")).unwrap();
    let files: Vec<_> = shell.targets.iter().filter(|target| target.file.is_some()).collect();
    assert_eq!(files.len(), 3);
    for target in files {
        assert!(target.start.is_some() && target.resident.is_some_and(|resident| resident.anon > 0), "{target:?}");
        assert!(["SET", "GET"].iter().all(|name| target.timings[*name].runs == 3), "{target:?}");
    }

    peers(&["report", "--from", "shell.json"], folder.path());
    let page = std::fs::read_to_string(folder.path().join("docs/benchmarks.md")).unwrap();
    assert!(page.contains("## A server measured from the shell") && page.contains("benchmarks/shell.svg"));
}

#[boltkv_needs::program("redis-server", "memcached")]
#[test]
fn servers_are_measured_over_the_network_and_reported() {
    build_server();
    let folder = tempfile::tempdir().unwrap();
    let output = peers(
        &[
            "servers",
            "--quick",
            "--seconds",
            "0.5",
            "--json",
            "servers.json",
            "--folder",
            ".",
            "--only",
            "get-50,get-8-beside-set,set-50,half-scan,scan",
            "--servers",
            "fresh,aged,no-memory,redis,memcached",
        ],
        folder.path(),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("A trial run") && said.contains("× Redis") && !said.contains("failed"), "{said}");

    let servers: Servers = results::read(&folder.path().join("servers.json")).unwrap();
    assert!(servers.left_out.is_empty(), "{:?}", servers.left_out);
    let of = |row: &str| servers.runs.iter().filter(|run| run.row == row).collect::<Vec<_>>();
    let lengths = ["get-50", "set-50", "half-scan", "scan"].map(|row| of(row).len());
    assert_eq!(lengths, [4, 4, 3, 3], "only those servers: {:?}", servers.runs);
    assert!(servers.runs.iter().all(|run| run.rate > 0.0 && run.failed == 0), "{:?}", servers.runs);
    assert!(of("get-8-beside-set").iter().all(|run| run.beside.is_some_and(|rate| rate > 0.0)));
    assert!(of("set-50").iter().any(|run| run.group.is_some_and(|group| group >= 1.0)));
    assert!(servers.files.iter().any(|files| files.server == "boltkv, aged" && files.aged >= files.loaded));
}
