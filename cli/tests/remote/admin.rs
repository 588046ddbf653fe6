//! The admin address: whether a server lives, whether it is ready, and what it measures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::http::{connect, get, send};
use crate::common::server::{PATIENCE, Server};
use crate::common::{boltkv, feed, run};
use boltkv_storage::Db;

/// Serves a file, with an admin address on a free port.
fn serve(db: &Path, more: &[&str]) -> Server {
    Server::start_with(db, ["--admin", "127.0.0.1:0"].iter().chain(more))
}

/// The samples of a metric, by their labels, without what is behind the point.
fn samples(server: &Server, metric: &str) -> BTreeMap<String, u64> {
    let (status, text) = get(server.admin(), "/metrics");
    assert_eq!(status, 200, "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let whole = value.split('.').next().unwrap();
        let labels = name.strip_prefix(metric)?;
        (labels.is_empty() || labels.starts_with('{')).then(|| (labels.to_owned(), whole.parse().unwrap()))
    });
    samples.collect()
}

/// The one sample of a metric without labels.
#[track_caller]
fn sample(server: &Server, metric: &str) -> u64 {
    *samples(server, metric).get("").unwrap_or_else(|| panic!("there is no {metric}"))
}

// Promises: ops-admin.
#[test]
fn a_server_that_is_open_lives_and_is_ready_also_where_it_only_reads() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    Server::start(&db).stop().done();
    for more in [&[][..], &["--read-only"]] {
        let server = serve(&db, more);
        assert_eq!(get(server.admin(), "/livez"), (200, "ok\n".into()));
        assert_eq!(get(server.admin(), "/readyz"), (200, "ready\n".into()));
        let all = "opening: ok\ndisk: ok\nshutting_down: ok\nready\n";
        assert_eq!(get(server.admin(), "/readyz?verbose"), (200, all.into()));
        assert_eq!(get(server.admin(), "/").0, 404);
        assert_eq!(send(server.admin(), "POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").0, 405);
        server.stop().done();
    }
}

// Promises: ops-admin-opening.
#[test]
fn while_a_file_is_being_opened_a_server_lives_and_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    // Opening waits for whoever holds the file.
    let held = Db::open(&db).unwrap();
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--db", &db]);
    command.args(["--lock-timeout", "60s", "--log", "boltkv_server=info"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let admin = log.find_map(|line| Some(line.unwrap().split_once("admin address=")?.1.to_owned())).unwrap();
    let opening = "opening: the database is not open yet\n";
    assert_eq!(get(&admin, "/livez"), (200, "ok\n".into()));
    assert_eq!(get(&admin, "/readyz"), (503, opening.into()));
    assert_eq!(get(&admin, "/metrics"), (503, opening.into()));
    held.close().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.ends_with(&format!(", admin on {admin}\n")), "{ready}");
    assert_eq!(get(&admin, "/readyz"), (200, "ready\n".into()));
    child.kill().unwrap();
    child.wait().unwrap();
}

// Promises: ops-admin-stopping.
#[test]
fn a_server_that_stops_says_so_until_its_last_connection_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder.path().join("a.db"), &[]);
    let value = "v".repeat(60_000);
    assert_eq!(server.text(&format!("SET k {value}\n")), "OK\n");
    // A client that asks for more than the sockets hold, and takes none of it: the server waits for it for some seconds.
    let mut greedy = connect(server.addr());
    greedy.write_all("GET k\n".repeat(1_000).as_bytes()).unwrap();
    assert_eq!(server.text("PING\n"), "PONG\n");
    server.signal("TERM");
    let stopping = loop {
        let (status, lines) = get(server.admin(), "/readyz");
        if status != 200 {
            break lines;
        }
    };
    assert_eq!(stopping, "shutting_down: the server is stopping\n");
    assert_eq!(get(server.admin(), "/livez").0, 200);
    drop(greedy);
    server.wait().done();
}

// Promises: ops-metrics-counts.
#[test]
fn every_request_is_counted_once_under_its_command_and_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder.path().join("a.db"), &[]);
    let lines = "SET a 1\nSET b x\nSETNX a 2\nGET a\nGET missing\nEXISTS a\nMGET a b c\nINCR a 5\nINCR b\nSCAN\nCOUNT\n\
        DEL a\nBUCKET CREATE x\nBUCKET LIST\nBUCKET USE x\nBUCKET USE y\nBUCKET STAT y\nPING\nMULTI\nSET t 1\nEXEC\n\
        STATS\nHELP\nNO SUCH\nDELRANGE \"\" \"\"\n";
    server.text(lines);
    // More at once than are taken in a turn, by several connections.
    thread::scope(|scope| {
        for key in 0..8 {
            let server = &server;
            scope.spawn(move || server.text(&"GET b\n".repeat(5_000)));
            scope.spawn(move || server.text(&format!("SET k{key} v\n").repeat(100)));
        }
    });

    let counted = samples(&server, "boltkv_requests_total");
    let count = |command: &str, result: &str| {
        counted.get(&format!("{{command=\"{command}\",result=\"{result}\"}}")).copied().unwrap_or(0)
    };
    for (command, result, expected) in [
        ("GET", "KEY_NOT_FOUND", 2),
        ("BUCKET CREATE", "ok", 1),
        ("SET", "CONDITION_FAILED", 1),
        ("INCR", "ok", 1),
        ("INCR", "INCOMPATIBLE_VALUE", 1),
        ("SCAN", "ok", 2),
        ("DELETE", "ok", 1),
        ("DELRANGE", "ok", 1),
        ("BUCKET LIST", "ok", 1),
        ("BUCKET USE", "ok", 1),
        ("BUCKET USE", "BUCKET_NOT_FOUND", 1),
        ("BUCKET STAT", "BUCKET_NOT_FOUND", 1),
        ("PING", "ok", 1),
        ("TXN", "ok", 1),
        ("STATS", "ok", 1),
        ("HELP", "ok", 1),
        ("BACKUP", "ok", 0),
        ("other", "UNSUPPORTED", 1),
    ] {
        assert_eq!(count(command, result), expected, "{command} {result}: {counted:?}");
    }
    assert_eq!(count("GET", "ok"), 40_004);
    assert_eq!(count("SET", "ok"), 802);

    let times = samples(&server, "boltkv_request_duration_seconds_count");
    let kinds = [("read", 40_000 + 7), ("write", 800 + 9), ("stream", 4)];
    for (kind, expected) in kinds {
        assert_eq!(times[&format!("{{kind=\"{kind}\"}}")], expected, "{kind}");
    }
    assert_eq!(sample(&server, "boltkv_write_group_requests_sum"), 809);
    let commits = sample(&server, "boltkv_commit_duration_seconds_count");
    assert!(commits > 0 && commits <= sample(&server, "boltkv_write_group_requests_count"));
    assert!(sample(&server, "boltkv_received_bytes_total") > 8 * 5_000 * 6);
    server.stop().done();
}

// Promises: ops-metrics-resp.
#[test]
fn commands_of_redis_are_counted_under_their_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder.path().join("a.db"), &[]);
    let lines = "SET a 1\nSET a 2 NX\nGET none\nMGET a b c\nEXISTS a b\nMULTI\nSET b 1\nEXEC\nSCAN 0\nKEYS *\nHGET a f\n\
        DEL a b\nQUIT\n";
    // As arrays of words, which is how it is seen what they are.
    let mut said = Vec::new();
    for line in lines.lines() {
        write!(said, "*{}\r\n", line.split(' ').count()).unwrap();
        line.split(' ').for_each(|word| write!(said, "${}\r\n{word}\r\n", word.len()).unwrap());
    }
    let mut client = connect(server.addr());
    client.write_all(&said).unwrap();
    let mut answered = String::new();
    client.read_to_string(&mut answered).unwrap();
    assert_eq!(sample(&server, "boltkv_sent_bytes_total"), u64::try_from(answered.len()).unwrap(), "{answered}");

    let counted = samples(&server, "boltkv_requests_total");
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    let counted: BTreeMap<_, _> = counted.map(|(labels, count)| (labels.replace('"', ""), count)).collect();
    let expected = [
        ("DEL", "ok", 1),
        ("EXEC", "ok", 1),
        ("EXISTS", "ok", 1),
        ("GET", "KEY_NOT_FOUND", 1),
        ("HGET", "INCOMPATIBLE_VALUE", 1),
        ("KEYS", "ok", 1),
        ("MGET", "ok", 1),
        ("MULTI", "ok", 1),
        ("QUIT", "ok", 1),
        ("SCAN", "ok", 1),
        ("SET", "ok", 2),
    ];
    let expected = expected.map(|(command, result, n)| (format!("{{command={command},result={result}}}"), n));
    assert_eq!(counted, BTreeMap::from(expected));
    let times = samples(&server, "boltkv_request_duration_seconds_count");
    // GET, MGET, EXISTS, SCAN and HGET; KEYS; the rest but what the connection does for itself.
    assert_eq!(times.into_values().collect::<Vec<_>>(), [5, 1, 4]);
    server.stop().done();
}

#[test]
fn what_a_server_is_and_holds_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let server = serve(&db, &["--max-connections", "7"]);
    server.run(["set", "k", "v"]).done();
    let mut idle = connect(server.addr());
    idle.write_all(b"PING\n").unwrap();
    idle.read_exact(&mut [0; 5]).unwrap();
    for (metric, expected) in [
        ("boltkv_connections", 1),
        ("boltkv_connections_limit", 7),
        ("boltkv_connections_accepted_total", 2),
        ("boltkv_file_size_bytes", std::fs::metadata(&db).unwrap().len()),
        ("boltkv_writable", 1),
        ("boltkv_backups", 0),
        // The first write has the file say that its journal may hold more.
        ("boltkv_checkpoints_total", 1),
    ] {
        assert_eq!(sample(&server, metric), expected, "{metric}");
    }
    for metric in ["boltkv_txid", "boltkv_journal_bytes", "boltkv_memory_limit_bytes", "boltkv_syncs_total"] {
        assert!(sample(&server, metric) >= 1, "{metric}");
    }
    assert_eq!(samples(&server, "boltkv_file_system_free_bytes").len(), 2);
    if cfg!(target_os = "linux") {
        assert!(sample(&server, "process_resident_memory_bytes") > 100_000);
        assert!(sample(&server, "process_open_fds") > 3);
    }
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(samples(&server, "boltkv_build_info")[&version], 1);
}

// Promises: ops-metrics-format.
#[boltkv_needs::program("promtool")]
#[test]
fn prometheus_finds_nothing_to_say_about_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder.path().join("a.db"), &[]);
    server.text("SET k v\nGET k\nSCAN\nNO SUCH\n");
    let (_, text) = get(server.admin(), "/metrics");
    let checked = feed(Command::new("promtool").args(["check", "metrics"]), text.as_bytes());
    assert_eq!((checked.code, checked.text().as_str(), checked.stderr.as_str()), (Some(0), "", ""));
}

// Promises: ops-admin-limits.
#[test]
fn strangers_who_are_slow_or_many_keep_no_probe_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&folder.path().join("a.db"), &[]);
    let mut slow = connect(server.admin());
    slow.write_all(b"GET /livez HTTP/1.1\r\nHost: ").unwrap();
    let mut many: Vec<_> = (0..200).map(|_| connect(server.admin())).collect();
    // Those that came first have made room.
    assert_eq!(get(server.admin(), "/livez"), (200, "ok\n".into()));
    let mut rest = Vec::new();
    assert_eq!(slow.read_to_end(&mut rest).unwrap_or(0), 0, "it is not answered");
    // The last ones end by themselves: nothing of their request has come.
    assert_eq!(many.pop().unwrap().read_to_end(&mut rest).unwrap_or(0), 0);
    // One that is alone, and slow, is not waited for either.
    drop(many);
    let mut slow = connect(server.admin());
    slow.write_all(b"GET /livez HTTP/1.1\r\nHost: ").unwrap();
    slow.read_to_end(&mut rest).unwrap();
    let said = String::from_utf8_lossy(&rest);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{said}");
    let long = format!("GET /livez HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(10_000));
    assert_eq!(send(server.admin(), &long).0, 431);
    server.stop().done();
}

/// What a page answers to this token.
fn get_with(server: &Server, page: &str, token: &str) -> (u16, String) {
    send(server.admin(), &format!("GET {page} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"))
}

// Promises: ops-admin-token.
#[test]
fn where_there_are_tokens_the_metrics_ask_for_one_and_the_probes_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let token = run(args!["token", "create", "--tokens", &tokens, "prometheus"]).text();
    let server = serve(&folder.path().join("a.db"), &["--tokens", tokens.to_str().unwrap()]);
    for page in ["/livez", "/readyz"] {
        assert_eq!(get(server.admin(), page).0, 200, "{page}");
    }
    assert_eq!(get(server.admin(), "/metrics"), (401, "this server asks for a token\n".into()));
    assert_eq!(get_with(&server, "/metrics", "wrong"), (401, "the token is wrong\n".into()));
    let (status, text) = get_with(&server, "/metrics", token.trim());
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\nboltkv_authentication_failures_total 2\n"), "{text}");
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-metrics-wrong-token.
#[test]
fn a_wrong_token_is_counted_under_what_has_said_it() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let token = run(args!["token", "create", "--tokens", &tokens, "a", "--right", "read"]).done_text();
    let server = serve(&folder.path().join("a.db"), &["--tokens", tokens.to_str().unwrap()]);
    server.text(&format!("AUTH {token}PING\nAUTH wrong\n"));
    server.text("GET k\nAUTH wrong\n");
    server.text("*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n");
    server.run(["get", "k"]).failed(1);
    let (_, text) = get_with(&server, "/metrics", token.trim());
    for (command, result, count) in [
        ("AUTH", "ok", 1),
        ("AUTH", "UNAUTHENTICATED", 3),
        ("HELLO", "UNAUTHENTICATED", 1),
        ("PING", "ok", 1),
        ("other", "UNAUTHENTICATED", 1),
    ] {
        let line = format!("\nboltkv_requests_total{{command=\"{command}\",result=\"{result}\"}} {count}\n");
        assert!(text.contains(&line), "{command} {result}: {text}");
    }
    assert_eq!(server.stop().code, Some(0));
}

/// Prometheus with a configuration of its own, which ends with this.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// Promises: ops-metrics-scraped.
#[boltkv_needs::program("prometheus")]
#[test]
fn prometheus_itself_takes_what_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let token = run(args!["token", "create", "--tokens", &tokens, "prometheus"]).text();
    let server = serve(&folder.path().join("a.db"), &["--tokens", tokens.to_str().unwrap()]);
    let config = format!(
        "scrape_configs:\n- job_name: boltkv\n  scrape_interval: 100ms\n  scrape_timeout: 100ms\n  authorization: \
         {{credentials: {}}}\n  static_configs: [{{targets: ['{}']}}]\n",
        token.trim(),
        server.admin(),
    );
    std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
    // It cannot choose a port itself. One that was free a moment ago is, most likely.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = Command::new("prometheus");
    command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"]);
    command.arg(format!("--web.listen-address={free}")).current_dir(folder.path());
    let _prometheus = Prometheus(command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let scraped = "/api/v1/query?query=boltkv_requests_total%7Bcommand%3D%22GET%22%7D";
    let given_up = Instant::now() + PATIENCE;
    loop {
        let answer = TcpStream::connect(&*free).map(|_| send(&free, &format!("GET {scraped} HTTP/1.0\r\n\r\n")).1);
        if answer.as_ref().is_ok_and(|text| text.contains("\"job\":\"boltkv\"") && text.contains("\"GET\"")) {
            break;
        }
        assert!(Instant::now() < given_up, "it was not scraped: {answer:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

// Promises: ops-admin-loopback.
#[test]
fn beyond_loopback_it_is_refused_unless_that_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let refused = run(args!["serve", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0", "--db", &db]).failed(2);
    assert!(refused.contains("0.0.0.0:0") && refused.contains("--insecure"), "{refused}");
    let taken = serve(&db, &[]);
    let other = folder.path().join("b.db");
    let refused = run(args!["serve", "--listen", "127.0.0.1:0", "--admin", taken.admin(), "--db", &other]).failed(3);
    assert!(refused.contains("could not listen on"), "{refused}");
    assert!(!other.exists(), "it is tried before the file is made");
    let server = Server::start_with(&other, ["--admin", "0.0.0.0:0", "--insecure"]);
    assert!(server.admin().starts_with("0.0.0.0:"));
}
