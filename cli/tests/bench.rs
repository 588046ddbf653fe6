//! `boltkv bench`: what it measures, prints, removes and refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use common::server::Server;
use common::{Ran, boltkv, run};
use serde_json::Value;

/// Little enough to be over at once.
const SMALL: [&str; 9] = ["bench", "-c", "4", "-n", "400", "--keys", "200", "--warm-up", "20ms"];

#[track_caller]
fn object(ran: Ran) -> Value {
    serde_json::from_slice(&ran.done()).unwrap()
}

fn server() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("bench.db"));
    (folder, server)
}

/// The names of all that is in an object, in order, and of what is in those in it.
fn names(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}{}", names(value))).collect();
            format!("{{{}}}", fields.join(" "))
        }
        Value::Array(values) => values.first().map_or_else(String::new, |first| format!("[{}]", names(first))),
        _ => String::new(),
    }
}

#[test]
fn without_tests_it_measures_set_and_get_in_a_bucket_of_its_own_and_says_so() {
    let (_folder, server) = server();
    server.run(["set", "precious", "value"]).done();
    let said = server.run(SMALL).done_text();
    for part in [
        &format!("boltkv/0.1.0 at {}: bucket boltkv-bench\n", server.addr()),
        "200 keys of 16 bytes, uniform, values of 100 bytes\nloading: 200 SETs in ",
        "4 connections, 1 in flight each, closed loop, 400 requests each after 20ms of warm-up\n\n",
        " requests/s       mean        p50        p90        p99      p99.9     p99.99        max\n",
        "\nset ",
        "\nget ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // How busy the machine is that the tests run on is no matter of theirs.
    let lines = said.lines().filter(|line| !line.contains("(steal)"));
    assert_eq!(lines.count(), 8, "nothing is missing, nothing failed: {said}");
    assert_eq!(server.run(["bucket", "list"]).done_text(), "default\n", "its bucket is gone");
    assert_eq!(server.run(["get", "precious"]).done_text(), "value");
}

#[test]
fn json_has_these_fields_whose_figures_agree() {
    let (_folder, server) = server();
    let args = ["-t", "get:50+set:30+scan:20,delete", "--load", "random", "--age", "2", "--json"];
    let told = object(server.run(SMALL.iter().chain(&args)));
    let latency = "{count max mean min p50 p90 p95 p99 p99.9 p99.99}";
    let test = |kinds: &str| {
        format!(
            "{{by_request{kinds} entries entries_per_second errors{{}} generator_cpu_seconds interrupted \
             latency_us{latency} lost_connections missing name requests requests_per_second seconds \
             slices{{longest_us[] requests[] seconds}} stolen unsent}}"
        )
    };
    let kind = format!("{{entries latency_us{latency} missing requests}}");
    let settings =
        "{connections key_size keys order pipeline rate requests scan_length seconds seed threads value_size[]}";
    assert_eq!(
        names(&told),
        format!(
            "{{addr before[{}] boltkv dialect form place server settings{settings} target tests[{}]}}",
            test("{}"),
            test(&format!("{{get{kind} scan{kind} set{kind}}}"))
        )
    );
    assert_eq!(
        (&told["form"], &told["target"], &told["settings"]["rate"]),
        (&1.into(), &"boltkv".into(), &Value::Null)
    );
    assert_eq!((&told["before"][0]["requests"], &told["before"][1]["requests"]), (&200.into(), &400.into()));
    let [mixed, deleted] = [&told["tests"][0], &told["tests"][1]];
    assert_eq!((&mixed["name"], &mixed["requests"]), (&"get:50+set:30+scan:20".into(), &400.into()));
    let kinds = mixed["by_request"].as_object().unwrap();
    assert_eq!(kinds.values().map(|kind| kind["requests"].as_u64().unwrap()).sum::<u64>(), 400);
    assert!(mixed["latency_us"]["p50"].as_f64().unwrap() <= mixed["latency_us"]["p99.9"].as_f64().unwrap());
    assert!(deleted["missing"].as_u64().unwrap() >= 200, "of 200 keys: {deleted}");
}

#[test]
fn boltkv_is_asked_as_redis_is_in_a_database_that_is_empty_before_and_after() {
    let (_folder, server) = server();
    let args = ["--dialect", "resp", "--database", "2", "-t", "set,get,delete"];
    let said = server.run(SMALL.iter().chain(&args)).done_text();
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("boltkv, as Redis ") && first.ends_with(": database 2"), "{said}");
    let told = object(server.run(SMALL.iter().chain(&args).chain(&["--json"])));
    assert_eq!((&told["target"], &told["dialect"]), (&"boltkv".into(), &"resp".into()));
    assert_eq!(told["tests"][2]["requests"], 400);
    // Whoever takes it for Redis is told who it is.
    let taken = ["--target", "redis", "--addr", server.addr(), "--database", "3", "-t", "get"];
    let said = server.run(SMALL.iter().chain(&taken)).done_text();
    assert!(said.starts_with("boltkv, as Redis "), "{said}");
    server.run(["set", "--bucket", "default", "precious", "value"]).done();
    let said = server.run(SMALL.iter().chain(&["--dialect", "resp"])).failed(1);
    assert!(said.contains("database 0 has 1 key:") && said.contains("--database"), "{said}");
    let said = server.run(["bench", "--dialect", "resp", "--target", "redis"]).failed(2);
    assert!(said.contains("--dialect is for boltkv"), "{said}");
}

#[test]
fn a_server_that_asks_for_a_token_is_measured_with_one_and_not_without() {
    let folder = tempfile::tempdir().unwrap();
    let [tokens, token] = ["tokens", "token"].map(|name| folder.path().join(name));
    let made = run(args!["token", "create", "bench", "--right", "write:boltkv-bench", "--tokens", &tokens]);
    std::fs::write(&token, made.done()).unwrap();
    let server = Server::start_with(&folder.path().join("a.db"), ["--tokens", tokens.to_str().unwrap()]);
    let refused = server.run(SMALL).failed(1);
    assert!(refused.contains("HELLO") && refused.contains("UNAUTHENTICATED"), "{refused}");
    assert!(refused.contains("--token-file"), "{refused}");
    let said = server.run(SMALL.into_iter().chain(["--token-file", token.to_str().unwrap()])).done_text();
    assert!(said.contains("\nget "), "{said}");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_bucket_that_is_there_is_not_touched_but_used_where_that_is_said() {
    let (_folder, server) = server();
    server.run(["bucket", "create", "mine"]).done();
    let said = server.run(SMALL.iter().chain(&["--bucket", "mine"])).failed(1);
    assert!(said.contains("bucket mine is there already") && said.contains("--reuse"), "{said}");
    assert_eq!(server.run(["scan", "--bucket", "mine"]).done_text(), "");

    let keep = ["--bucket", "a/b", "--keep", "-t", "get"];
    assert!(server.run(SMALL.iter().chain(&keep)).done_text().ends_with("bucket a/b is kept, for --reuse\n"));
    assert_eq!(server.run(["scan", "--count", "--bucket", "a/b"]).done_text(), "200\n");
    // What is used is left there, also where that is said.
    let both = server.run(SMALL.iter().chain(&keep).chain(&["--reuse"])).done_text();
    assert!(both.ends_with("bucket a/b is kept, for --reuse\n") && !both.contains("loading"), "{both}");
    let again = server.run(SMALL.iter().chain(&["--bucket", "a/b", "--reuse", "-t", "get"])).done_text();
    assert!(again.ends_with("bucket a/b is left as it is\n") && !again.contains("loading"), "{again}");
    assert_eq!(server.run(["scan", "--count", "--bucket", "a/b"]).done_text(), "200\n");
}

#[test]
fn errors_are_told_and_are_the_exit_code() {
    let (_folder, server) = server();
    let missing = server.run(SMALL.iter().chain(&["--reuse"])).failed(1);
    assert!(missing.contains("bucket boltkv-bench is not there: a run with --keep leaves it"), "{missing}");

    // What is there is something else, and stays as it is.
    server.run(["bucket", "create", "mine"]).done();
    let none = server.run(SMALL.iter().chain(&["--reuse", "--bucket", "mine", "-t", "set"])).failed(1);
    assert!(none.contains("bucket mine has none of 100 keys") && none.contains("--keep"), "{none}");
    assert_eq!(server.run(["scan", "--count", "--bucket", "mine"]).done_text(), "0\n");
    server.run(SMALL.iter().chain(&["--reuse", "--bucket", "mine", "-t", "scan"])).done();

    // Some of what a run has left were deleted by another one.
    let half = ["bench", "-c", "4", "--bucket", "half", "--keys", "400", "-n", "200", "--warm-up", "0"];
    server.run(half.iter().chain(&["--keep", "-t", "set"])).done();
    server.run(half.iter().chain(&["--reuse", "-t", "delete"])).done();
    server.run(half.iter().chain(&["--reuse", "-t", "get"])).done();

    // The only key that is asked for is no entry.
    server.run(["bucket", "create", "boltkv-bench/key:000000000000"]).done();
    let one = ["bench", "--reuse", "-t", "get", "-c", "4", "-n", "400", "--keys", "1", "--warm-up", "20ms"];
    let ran = server.run(one);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "boltkv: 400 requests failed: see above\n"));
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(said.contains("get: 400 × ") && said.contains("boltkv-bench"), "{said}");

    let missed = server.run(SMALL.iter().chain(&["--bucket", "empty", "--load", "none", "-t", "get"])).done_text();
    assert!(
        missed.contains("nothing was loaded\n") && missed.contains("get: 400 gets found no such key\n"),
        "{missed}"
    );
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is() {
    let (_folder, server) = server();
    let wrong: [&[&str]; 11] = [
        &["-t", "put"],
        &["-t", "get:0"],
        &["-c", "0"],
        &["-P", "100000", "-t", "set", "-d", "1MiB"],
        &["-n", "5", "--duration", "5s"],
        &["-d", "9-1"],
        &["--keys", "1000000", "--key-size", "5"],
        &["--rate", "0"],
        &["--bucket", "/"],
        &["--addr", "host:port"],
        &["--target", "etcd"],
    ];
    for args in wrong {
        let ran = server.run(["bench"].iter().chain(args));
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{args:?}: {}", ran.stderr);
    }
    let scans = server.run(["bench", "-t", "scan", "-P", "500", "--keys", "10"]).failed(2);
    assert!(scans.contains("scans in flight a connection"), "{scans}");
    assert_eq!(server.run(["bucket", "list"]).done_text(), "", "also after an error its bucket is gone");
    let socket = run(["bench", "--addr", "unix:app.sock"]).failed(2);
    assert!(socket.contains("measured over TCP"), "{socket}");
    let nobody = run(["bench", "--addr", "127.0.0.1:1"]).failed(3);
    assert!(nobody.contains("cannot connect to 127.0.0.1:1"), "{nobody}");
    // Said before anybody is asked, or anything is measured.
    let scan = run(["bench", "--target", "memcached", "--addr", "127.0.0.1:1", "-t", "get,scan"]).failed(2);
    assert!(scan.contains("memcached has no scan"), "{scan}");
    // What names a place that the server does not have.
    for (place, args) in [
        ("--bucket", ["--target", "memcached"]),
        ("--bucket", ["--target", "redis"]),
        ("--bucket", ["--dialect", "resp"]),
        ("--database", ["--target", "memcached"]),
        ("--database", ["--dialect", "binary"]),
    ] {
        let said = server.run(["bench", place, "1"].iter().chain(&args)).failed(2);
        assert!(said.contains(&format!("{place} is for")), "{args:?}: {said}");
    }
    let other = run(["bench", "--target", "memcached", "--addr", server.addr()]).failed(3);
    assert!(other.contains("is no memcached server"), "{other}");
}

/// A call that would take an hour.
fn at_its_first_test(server: &Server, tests: &str) -> Child {
    let mut command = server.command(["bench", "-t", tests, "--keys", "100", "--warm-up", "0", "--duration", "1h"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let given_up = std::time::Instant::now() + common::server::PATIENCE;
    // It is at its first test when all keys are there.
    while server.run(["scan", "--count", "--bucket", "boltkv-bench"]).stdout != b"100\n" {
        assert!(std::time::Instant::now() < given_up);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    child
}

#[test]
fn a_signal_ends_it_early_with_what_it_has_and_without_its_bucket() {
    let (_folder, server) = server();
    let child = at_its_first_test(&server, "get,set");
    let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(sent.success());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), ""));
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(
        said.contains("\nget ") && said.contains("get: ended by a signal after ") && !said.contains("\nset "),
        "{said}"
    );
    assert_eq!(server.run(["bucket", "list"]).done_text(), "");
}

#[test]
fn buckets_above_its_own_are_removed_where_it_has_made_them_and_left_where_not() {
    let (_folder, server) = server();
    server.run(["bucket", "create", "there/in"]).done();
    for bucket in ["zz/yy", "zz/yy/xx", "there/new/bench", "there/in/bench"] {
        server.run(SMALL.iter().chain(&["-t", "get", "-b", bucket])).done();
    }
    assert_eq!(server.run(["bucket", "list"]).done_text(), "there\n");
    assert_eq!(server.run(["bucket", "list", "there"]).done_text(), "in\n");
    assert_eq!(server.run(["bucket", "list", "there/in"]).done_text(), "");
}

#[test]
fn a_token_is_not_sent_in_the_clear_where_encryption_is_asked_for() {
    for (name, value) in [("BOLTKV_TLS", "true"), ("BOLTKV_TLS_CA", "ca.pem"), ("BOLTKV_CLIENT_CERT", "me.pem")] {
        // Nobody has this address.
        let output = boltkv(["bench", "--addr", "192.0.2.1"]).env(name, value).output().unwrap();
        let said = Ran::from(output).failed(2);
        assert!(said.contains(&format!("{name} asks for encryption")), "{said}");
    }
    let (_folder, server) = server();
    let near = server.command(SMALL).env("BOLTKV_TLS_CA", "ca.pem").output().unwrap();
    Ran::from(near).done();
    for (name, value) in [("BOLTKV_TLS", "0"), ("BOLTKV_TLS_CA", "")] {
        let addr = server.addr().replace("127.0.0.1", "0.0.0.0");
        let output = boltkv(SMALL.iter().chain(&["--addr", &addr])).env(name, value).output().unwrap();
        Ran::from(output).done();
    }
}

#[test]
fn a_plot_is_written() {
    let (folder, server) = server();
    let file = folder.path().join("plot.svg");
    let plot = ["-t", "get", "--plot", file.to_str().unwrap()];
    server.run(SMALL.iter().chain(&plot)).done();
    let svg = BufReader::new(fs::File::open(&file).unwrap()).lines().next().unwrap().unwrap();
    assert!(svg.starts_with("<svg"), "{svg}");
    for nowhere in ["/proc/none/plot.svg", "plot.png", "/tmp"] {
        let said = server.run(SMALL.iter().chain(&["-t", "get", "--plot", nowhere])).failed(2);
        assert!(said.contains(&format!("--plot {nowhere}")), "{said}");
    }
    // What cannot be told before.
    let ran = server.run(SMALL.iter().chain(&["-t", "get", "--plot", "/proc/plot.svg"]));
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot draw /proc/plot.svg"), "{}", ran.stderr);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("\nget "), "what was measured is not lost");
}

#[test]
fn each_test_draws_its_own_keys_and_the_same_when_it_is_run_again() {
    let (_folder, server) = server();
    let missing = || {
        let args = ["bench", "-c", "1", "-n", "500", "--keys", "2000", "--warm-up", "0", "-t", "delete,get", "--json"];
        object(server.run(args))["tests"][1]["missing"].as_u64().unwrap()
    };
    let first = missing();
    assert!((50..250).contains(&first), "a fifth of the keys are gone, not all that are asked for: {first}");
    assert_eq!(missing(), first);
}

#[test]
fn a_rate_that_was_not_reached_is_told_also_of_a_number_of_requests() {
    let (_folder, server) = server();
    let said = server.run([
        "bench",
        "-n",
        "20000",
        "--keys",
        "100",
        "-c",
        "2",
        "--warm-up",
        "0",
        "-t",
        "set",
        "--rate",
        "10000000",
    ]);
    let said = said.done_text();
    assert!(said.contains("set: 10,000,000 requests/s were due, "), "{said}");
    assert!(said.contains(" after no warm-up\n"), "{said}");
    let said =
        server.run(["bench", "-n", "20", "--keys", "100", "--warm-up", "0", "-t", "set", "--rate", "100"]).done_text();
    assert!(!said.contains("were due"), "{said}");
}

#[test]
fn a_server_that_goes_away_is_a_failure_and_not_one_that_was_never_there() {
    let (_folder, server) = server();
    let child = at_its_first_test(&server, "set");
    server.kill();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("bucket boltkv-bench was left as it is"), "{}", ran.stderr);
}
