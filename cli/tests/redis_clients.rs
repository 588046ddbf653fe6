//! Clients of Redis, each as it is ordinarily installed, against a server: a program for each, in its own language, that
//! ends with 1 at the first surprise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::server::Server;
use common::{feed, run};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_clients");

/// A server on a file of its own, and the folder that goes with it.
struct Served {
    server: Server,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start() -> Self {
        Self::start_with(|_| Vec::new())
    }

    /// With more options, which may need files in the folder.
    fn start_with(options: impl FnOnce(&Path) -> Vec<OsString>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        // A port of Redis' dialect alone: redis-benchmark's first words are a line.
        let server = Server::spawn(
            common::boltkv(args!["serve", "--listen", "redis://127.0.0.1:0", "--db"])
                .arg(folder.path().join("app.db"))
                .args(options),
        );
        Self { server, _folder: folder }
    }

    fn host_and_port(&self) -> (&str, &str) {
        self.server.addr().trim_start_matches("redis://").rsplit_once(':').unwrap()
    }

    /// A program of Redis' own, which takes its place in this way.
    fn of_redis<A: AsRef<OsStr>>(&self, program: &str, args: impl IntoIterator<Item = A>) -> Command {
        let (host, port) = self.host_and_port();
        let mut command = patient(program);
        command.args(["-h", host, "-p", port]).args(args);
        command
    }

    /// What redis-cli prints, given this on its standard input.
    #[track_caller]
    fn cli(&self, args: &[&str], input: &str) -> String {
        feed(&mut self.of_redis("redis-cli", args), input.as_bytes()).done_text()
    }
}

/// A command that is ended when it hangs, as a client does that waits for an answer.
fn patient(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).stdin(Stdio::null());
    command
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The folder where the libraries of a language are installed: once, until the file that names their versions changes.
/// `None`, said on standard error, where they cannot be had; a failure with `BOLTKV_REQUIRE_TOOLS=1`.
fn installed(language: &str, versions: &str, install: impl FnOnce(&Path) -> Result<(), String>) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redis-clients").join(language);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    // Two runs may want it at the same time: one installs, the other finds it done.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = fs::read(Path::new(PROGRAMS).join(language).join(versions)).unwrap();
    let done = folder.join("installed");
    if fs::read(&done).is_ok_and(|found| found == wanted) {
        return Some(folder);
    }
    // What is left of one that was not finished would be in the way.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    match install(&folder) {
        Ok(()) => fs::write(done, wanted).map(|()| folder).ok(),
        Err(why) => {
            let required = std::env::var("BOLTKV_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(!required, "BOLTKV_REQUIRE_TOOLS=1, but there are no libraries of {language}: {why}");
            // What `eprintln!` prints of a test that passes is swallowed.
            let skipped = format!("skipped: no libraries of {language}: {why}\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes());
            None
        }
    }
}

/// Runs a step of an installation.
fn step(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    output.status.success().then_some(()).ok_or_else(|| format!("{command:?}: {}", said(&output)))
}

#[test]
#[boltkv_needs::program("python3")]
fn redis_py_finds_what_it_expects() {
    let programs = Path::new(PROGRAMS).join("python");
    let found = installed("python", "requirements.txt", |folder| {
        step(patient("python3").args(["-m", "venv"]).arg(folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        step(patient(folder.join("bin/python")).args(pip).arg(programs.join("requirements.txt")))
    });
    let Some(folder) = found else { return };
    let served = Served::start();
    let (host, port) = served.host_and_port();
    succeeds(patient(folder.join("bin/python")).arg(programs.join("client.py")).args([host, port]));
}

#[test]
#[boltkv_needs::program("go")]
fn go_redis_finds_what_it_expects() {
    let go = || {
        let mut go = patient("go");
        go.current_dir(Path::new(PROGRAMS).join("go")).env_remove("GOFLAGS").env("GOWORK", "off");
        go
    };
    let Some(folder) = installed("go", "go.sum", |_| step(go().args(["mod", "download"]))) else { return };
    let program = folder.join("client");
    // Go itself knows whether it has to be built anew.
    succeeds(go().args(["build", "-mod=readonly", "-o"]).arg(&program).arg("."));
    let served = Served::start();
    let (host, port) = served.host_and_port();
    succeeds(patient(program).arg(format!("{host}:{port}")));
}

/// The folder with node's libraries, into which the programs are put: node looks for libraries beside a program.
fn of_node(program: &str) -> Option<PathBuf> {
    let programs = Path::new(PROGRAMS).join("node");
    let folder = installed("node", "package-lock.json", |folder| {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(programs.join(file), folder.join(file)).map_err(|error| error.to_string())?;
        }
        step(patient("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder))
    })?;
    let copy = folder.join(program);
    fs::copy(programs.join(program), &copy).unwrap();
    Some(copy)
}

#[test]
#[boltkv_needs::program("node", "npm")]
fn ioredis_finds_what_it_expects() {
    let Some(program) = of_node("io.js") else { return };
    let served = Served::start();
    let (host, port) = served.host_and_port();
    succeeds(patient("node").arg(program).args([host, port]));
}

#[test]
#[boltkv_needs::program("node", "npm")]
fn ioredis_is_told_that_its_token_is_wrong() {
    let Some(program) = of_node("io-wrong-token.js") else { return };
    let served = Served::start_with(|folder| {
        let tokens = folder.join("tokens");
        run(args!["token", "create", "somebody", "--right", "read", "--tokens", &tokens]).done();
        args!["--tokens", tokens].to_vec()
    });
    let (host, port) = served.host_and_port();
    succeeds(patient("node").arg(program).args([host, port]));
}

#[test]
#[boltkv_needs::program("node", "npm")]
fn node_redis_finds_what_it_expects() {
    let Some(program) = of_node("node.js") else { return };
    let served = Served::start();
    let (host, port) = served.host_and_port();
    succeeds(patient("node").arg(program).args([host, port]));
}

#[test]
#[boltkv_needs::program("java", "javac", "mvn")]
fn jedis_finds_what_it_expects() {
    let programs = Path::new(PROGRAMS).join("java");
    let found = installed("java", "pom.xml", |folder| {
        // A copy: Maven puts a folder beside it.
        let pom = folder.join("pom.xml");
        fs::copy(programs.join("pom.xml"), &pom).map_err(|error| error.to_string())?;
        let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
        let mut maven = patient("mvn");
        maven.args(["--quiet", "--batch-mode", "--file"]).arg(pom).arg(goal);
        step(maven.arg(format!("-DoutputDirectory={}", folder.join("jars").display())))
    });
    let Some(folder) = found else { return };
    let (jars, classes) = (folder.join("jars/*"), folder.join("classes"));
    let with_jars = |path: &Path| format!("{}:{}", path.display(), jars.display());
    let compiler = ["-Xlint:all", "-Werror", "-encoding", "UTF-8", "-d"];
    let source = programs.join("Client.java");
    succeeds(patient("javac").args(compiler).arg(&classes).arg("-cp").arg(&jars).arg(source));
    let served = Served::start();
    let (host, port) = served.host_and_port();
    succeeds(patient("java").args(["-cp", &with_jars(&classes), "Client", host, port]));
}

#[test]
#[boltkv_needs::program("redis-cli")]
fn redis_cli_puts_thousands_of_commands_and_looks_through_them() {
    let served = Served::start();
    let commands: Vec<_> = (0..10_000).map(|number| format!("SET key:{number} {number}\r\n")).collect();
    let piped = served.cli(&["--pipe"], &commands.concat());
    assert!(piped.ends_with("errors: 0, replies: 10000\n"), "{piped}");
    assert_eq!(served.cli(&["DBSIZE"], ""), "10000\n");
    let mut keys: Vec<_> = served.cli(&["--scan"], "").lines().map(str::to_owned).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 10_000);
    let some = served.cli(&["--scan", "--pattern", "key:999?"], "");
    assert_eq!(some.lines().count(), 10, "{some}");
    served.cli(&["-x", "HSET", "large", "field"], &"v".repeat(1000));
    served.cli(&["-x", "SET", "largest"], &"v".repeat(1000));
    for (option, summary) in [("--bigkeys", "1 hashs with 1 fields"), ("--memkeys", "1 hashs with ")] {
        let found = served.cli(&[option], "");
        assert!(found.contains("Sampled 10002 keys in the keyspace!") && found.contains(summary), "{found}");
        assert!(found.contains("Biggest string found '\"largest\"' has "), "{found}");
    }
}

#[test]
#[boltkv_needs::program("redis-cli")]
fn redis_cli_prints_answers_in_each_of_its_ways() {
    let served = Served::start();
    let cli = |args: &[&str]| served.cli(args, "");
    assert_eq!(served.cli(&["-x", "SET", "from input"], "a\r\nb"), "OK\n");
    assert_eq!(cli(&["GET", "from input"]), "a\r\nb\n");
    assert_eq!(served.cli(&[], "SET lines 1\nINCR lines\nNONSENSE\n").lines().take(2).collect::<Vec<_>>(), ["OK", "2"]);
    assert_eq!(cli(&["HSET", "h", "a", "1", "b", "2"]), "2\n");
    assert_eq!(cli(&["--no-raw", "HGETALL", "h"]), "1) \"a\"\n2) \"1\"\n3) \"b\"\n4) \"2\"\n");
    assert_eq!(cli(&["-3", "--no-raw", "HGETALL", "h"]), "1# \"a\" => \"1\"\n2# \"b\" => \"2\"\n");
    assert_eq!(cli(&["-3", "--no-raw", "GET", "none"]), "(nil)\n");
    assert_eq!(cli(&["--csv", "HGETALL", "h"]), "\"a\",\"1\",\"b\",\"2\"\n");
    assert_eq!(cli(&["--json", "HGETALL", "h"]), "{\"a\":\"1\",\"b\":\"2\"}\n");
    assert_eq!(cli(&["--json", "MGET", "lines", "none"]), "[\"2\",null]\n");
    assert_eq!(cli(&["-n", "5", "DBSIZE"]), "0\n");
    let failed = feed(&mut served.of_redis("redis-cli", ["-e", "INCR", "h"]), b"");
    assert_eq!((failed.code, failed.stderr.starts_with("WRONGTYPE")), (Some(1), true), "{failed:?}");
}

#[test]
#[boltkv_needs::program("redis-cli")]
fn redis_cli_measures_and_watches() {
    let served = Served::start();
    let measured = served.cli(&["--latency", "-i", "0.3"], "");
    assert_eq!(measured.split_whitespace().count(), 4, "{measured}");
    // It goes on until it is ended; `timeout`, which would be in between, is told to.
    let mut stat = served.of_redis("redis-cli", ["--stat", "-i", "0.1"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(stat.stdout.take().unwrap()).lines().take(5).collect::<Result<Vec<_>, _>>().unwrap();
    let ended = Command::new("sh").arg("-c").arg(format!("kill {}", stat.id())).status().unwrap();
    assert!(ended.success());
    stat.wait().unwrap();
    assert!(lines[1].starts_with("keys ") && lines[4].starts_with("0 "), "{lines:?}");
}

#[test]
#[boltkv_needs::program("redis-cli", "script")]
fn redis_cli_is_of_use_on_a_terminal() {
    let served = Served::start();
    let (host, port) = served.host_and_port();
    // On a terminal it asks for the documentation of all commands first, for its hints.
    let mut terminal = patient("script");
    terminal.args(["--quiet", "--return", "--command", &format!("redis-cli -h {host} -p {port}"), "/dev/null"]);
    let output = feed(terminal.env("TERM", "dumb"), b"SET greeting hello\nGET greeting\nhelp getex\nquit\n");
    let text = output.text();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(text.contains("\"hello\"") && text.contains("summary:"), "{text}");
}

#[test]
#[boltkv_needs::program("redis-benchmark")]
fn redis_benchmark_meets_no_error() {
    let served = Served::start();
    for depth in ["1", "16"] {
        let load = ["-P", depth, "-n", "2000", "-c", "20", "--csv", "-t", "ping,set,get,incr,hset,mset"];
        let output = served.of_redis("redis-benchmark", load).output().unwrap();
        let text = said(&output);
        assert!(output.status.success() && !text.contains("rror"), "{text}");
        // A line of names, and one for each test, PING's twice: as a line of text, and as an array.
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 8, "{text}");
    }
}
