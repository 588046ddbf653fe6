//! `boltkv import --from-redis`: what a Redis has comes over whole, with its times, also after interruptions; what cannot is
//! named; nothing that is equal is written twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::redis::{Redis, Resp};
use common::server::{PATIENCE, Server};
use serde_json::Value;

fn words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Vec<Vec<u8>> {
    words.into_iter().map(|word| word.as_ref().to_vec()).collect()
}

/// Strings with and without times, of all bytes; small hashes, and one of many steps.
fn fill(redis: &mut Resp, strings: u32, fields: u32) {
    redis.load((0..strings).map(|n| words([b"SET".to_vec(), key(n), value(n)])));
    redis.load((0..strings).step_by(10).map(|n| words([b"PEXPIREAT".to_vec(), key(n), time(n)])));
    redis.load((0..strings / 100).map(|n| {
        let hash = format!("hash:{n}").into_bytes();
        words([b"HSET".to_vec(), hash, b"a".to_vec(), value(n), vec![0, 255, b'\r'], b"".to_vec()])
    }));
    redis.load((0..fields).map(|n| words([b"HSET".to_vec(), b"large".to_vec(), key(n), value(n)])));
    redis.say("PEXPIREAT hash:0 4102444800123");
    redis.say("PEXPIREAT large 4102444800456");
    redis.load([words([&b"SET"[..], b"long", &vec![b'x'; 3_000_000]])]);
}

fn key(n: u32) -> Vec<u8> {
    [format!("key:{n}:").as_bytes(), &n.to_le_bytes(), &[0xff, 0, b'\n']].concat()
}

fn value(n: u32) -> Vec<u8> {
    [n.to_be_bytes().as_slice(), format!("-value-{n}\r\n").as_bytes(), &[0xfe; 3]].concat()
}

fn time(n: u32) -> Vec<u8> {
    (4_102_444_800_000_u64 + u64::from(n)).to_string().into_bytes()
}

/// Asks both for everything that [`fill`] has put.
#[track_caller]
fn assert_same(redis: &mut Resp, boltkv: &mut Resp, strings: u32, fields: u32) {
    let mut same = |words: &[&[u8]]| {
        let (one, other) = (redis.ask(words), boltkv.ask(words));
        let shown = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
        assert!(one == other, "{}: {} and {}", shown(&words.concat()), shown(&one), shown(&other));
    };
    for n in (0..strings).step_by(if strings > 1_000 { 37 } else { 1 }) {
        same(&[b"GET", &key(n)]);
        same(&[b"PEXPIRETIME", &key(n)]);
    }
    for n in 0..strings / 100 {
        let hash = format!("hash:{n}");
        same(&[b"HLEN", hash.as_bytes()]);
        same(&[b"HMGET", hash.as_bytes(), b"a", &[0, 255, b'\r']]);
        same(&[b"PEXPIRETIME", hash.as_bytes()]);
    }
    for n in (0..fields).step_by(41) {
        same(&[b"HGET", b"large", &key(n)]);
    }
    same(&[b"HLEN", b"large"]);
    same(&[b"PEXPIRETIME", b"large"]);
    same(&[b"GET", b"long"]);
    same(&[b"DBSIZE"]);
}

#[track_caller]
fn copy(server: &Server, addr: &str, more: &[&str]) -> Value {
    let args = ["import", "--json", "--from-redis", addr];
    serde_json::from_slice(&server.run(args.iter().chain(more)).done()).unwrap()
}

fn server(folder: &Path) -> Server {
    Server::start(&folder.join("to.db"))
}

#[boltkv_needs::program("redis-server")]
// Promises: ops-from-redis.
#[test]
fn all_that_a_redis_has_comes_over_and_only_once() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start(&[]));
    let server = server(folder.path());
    let (mut from, mut to) = (redis.client(), Resp::connect(server.addr()));
    let (strings, fields) = (100_000, 20_000);
    fill(&mut from, strings, fields);
    let keys = u64::from(strings + strings / 100 + 2);
    let told = &copy(&server, &redis.addr, &[])["databases"][0];
    assert_eq!((&told["put"], &told["complete"]), (&keys.into(), &true.into()), "{told}");
    assert_eq!((&told["bucket"], &told["target_keys"]), (&"default".into(), &keys.into()));
    assert_same(&mut from, &mut to, strings, fields);

    let before = stat(&server, "txid");
    let told = &copy(&server, &redis.addr, &[])["databases"][0];
    assert_eq!((&told["put"], &told["fields"], &told["there"]), (&0.into(), &0.into(), &keys.into()), "{told}");
    // The bucket of the database is asked for, and nothing else is written.
    assert!(stat(&server, "txid") <= before + 1);

    // What has changed since, and nothing else.
    from.say("SET changed new");
    from.say("DEL hash:1");
    from.say("SET hash:1 string");
    from.say("PERSIST hash:0");
    from.ask(&[b"HDEL", b"large", &key(7)]);
    from.say("HSET large field more");
    from.ask(&[b"DEL", &key(3)]);
    from.ask(&[b"HSET", &key(3), b"now", b"hash"]);
    from.ask(&[b"PERSIST", &key(0)]);
    let told = &copy(&server, &redis.addr, &[])["databases"][0];
    assert_eq!((&told["put"], &told["there"]), (&6.into(), &(keys - 5).into()), "{told}");
    for line in ["GET changed", "GET hash:1", "PEXPIRETIME hash:0", "HLEN large", "HGET large field"] {
        assert_eq!(from.say(line), to.say(line), "{line}");
    }
    assert_eq!(to.ask(&[b"HGET", &key(3), b"now"]), b"$4\r\nhash\r\n");
    assert_eq!(to.ask(&[b"PTTL", &key(0)]), b":-1\r\n");
    assert_eq!(to.ask(&[b"HGET", b"large", &key(7)]), b"$-1\r\n");
    assert_eq!(server.stop().code, Some(0));
}

/// A figure of the server.
#[track_caller]
fn stat(server: &Server, name: &str) -> u64 {
    let stats = server.run(["stats"]).done_text();
    let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([' ', ':', '\t']));
    line.unwrap_or_else(|| panic!("{name}: {stats}")).trim().parse().unwrap()
}

#[boltkv_needs::program("redis-server")]
// Promises: ops-redis-left-out.
#[test]
fn what_boltkv_cannot_hold_is_named_and_counted_and_the_rest_is_there() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start(&[]));
    let server = server(folder.path());
    let mut from = redis.client();
    for line in ["RPUSH queue a", "RPUSH queue2 a", "SADD tags a", "ZADD board 1 a", "XADD log * a b", "SET plain v"] {
        from.say(line);
    }
    from.ask(&[b"SET", b"", b"no name"]);
    from.ask(&[b"SET", &vec![b'k'; 32_769], b"long name"]);
    from.ask(&[b"SET", &vec![b'k'; 32_768], b"just"]);
    from.ask(&[b"HSET", b"odd", &vec![b'f'; 32_769], b"long name", b"field", b"value"]);
    from.ask(&[b"HSET", b"named", b"", b"no name", b"field", b"value"]);
    let args = ["import", "--from-redis", &redis.addr];
    let said = server.run(args).failed(1);
    for part in ["of type list: ", "queue", "of type set: tags", "of type zset: board", "of type stream: log"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("7 keys were left out") && said.contains("--skip-unsupported"), "{said}");
    assert_eq!(server.run(["get", "plain"]).done_text(), "v");
    assert_eq!(server.run(["get", "--bucket", "default/odd", "field"]).done_text(), "value");
    // What has no name has one in the file, by which clients of Redis find it.
    assert_eq!(server.run(["get", "boltkv.empty"]).done_text(), "no name");
    let mut to = Resp::connect(server.addr());
    assert_eq!(to.ask(&[b"GET", b""]), from.ask(&[b"GET", b""]));
    assert_eq!(to.ask(&[b"HGETALL", b"named"]), from.ask(&[b"HGETALL", b"named"]));
    from.ask(&[b"HDEL", b"named", b"field"]);
    to.ask(&[b"HSET", b"named", b"more", b"1"]);
    let told = copy(&server, &redis.addr, &["--skip-unsupported"]);
    assert_eq!(told["databases"][0]["there"], 4, "what is equal is not written again");
    assert_eq!(to.ask(&[b"HGETALL", b"named"]), from.ask(&[b"HGETALL", b"named"]), "nor taken for a field too many");
    let left_out = &told["databases"][0]["left_out"];
    assert_eq!((&left_out["of type list"]["count"], &left_out["of type set"]["keys"][0]), (&2.into(), &"tags".into()));
    assert_eq!(left_out["keys that are too long"]["count"], 1);
    assert_eq!(left_out["with fields that are too long"]["keys"][0], "odd");
}

#[boltkv_needs::program("redis-server")]
#[test]
fn databases_passwords_and_what_is_there_are_as_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start(&["--requirepass", "open sesame"]);
    let server = server(folder.path());
    let mut from = redis.client();
    from.ask(&[b"AUTH", b"open sesame"]);
    for line in ["SET a zero", "HSET h f zero g zero", "SELECT 3", "SET a three", "SELECT 15", "SET a fifteen"] {
        from.say(line);
    }
    let args = ["import", "--from-redis", &redis.addr];
    assert!(server.run(args).failed(1).contains("BOLTKV_REDIS_PASSWORD"));
    let url = format!("redis://:open%20sesame@{}/3", redis.addr);
    let seen = server.run(["import", "--from-redis", &url]).failed(2);
    assert!(seen.contains("see a password") && !seen.contains("sesame"), "{seen}");
    let mut by_url = server.command(["import", "--from-redis"]);
    by_url.env("BOLTKV_REDIS_URL", &url).env("REDISCLI_AUTH", "of another Redis");
    assert_eq!(by_url.output().unwrap().status.code(), Some(0), "{by_url:?}");
    let said = by_url.env("BOLTKV_REDIS_PASSWORD", "wrong").output().unwrap();
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert_eq!(server.run(["get", "--bucket", "db3", "a"]).done_text(), "three");

    server.run(["set", "a", "mine"]).done();
    server.run(["bucket", "create", "default/h"]).done();
    server.run(["set", "--bucket", "default/h", "f", "mine"]).done();
    let password = folder.path().join("password");
    std::fs::write(&password, "open sesame\n").unwrap();
    let file = ["--redis-db", "all", "--redis-password-file", password.to_str().unwrap()];
    let told = copy(&server, &redis.addr, &[&file[..], &["--if-absent"]].concat());
    let names: Vec<_> = told["databases"].as_array().unwrap().iter().map(|db| db["bucket"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "db3", "db15"]);
    assert_eq!((&told["databases"][0]["kept"], &told["databases"][0]["fields"]), (&1.into(), &1.into()), "{told}");
    let hash = |field| server.run(["get", "--bucket", "default/h", field]).done_text();
    assert_eq!(
        (server.run(["get", "a"]).done_text(), hash("f"), hash("g")),
        ("mine".into(), "mine".into(), "zero".into())
    );
    copy(&server, &redis.addr, &file);
    assert_eq!((server.run(["get", "a"]).done_text(), hash("f")), ("zero".into(), "zero".into()));
    assert!(server.run(["import", "--redis-db", "1"]).code == Some(2));
}

#[boltkv_needs::program("redis-server")]
#[test]
fn a_redis_that_tells_only_how_long_keys_have_is_asked_for_that() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start(&["--rename-command", "PEXPIRETIME", ""]);
    let server = server(folder.path());
    let (mut from, mut to) = (redis.client(), Resp::connect(server.addr()));
    for line in ["SET a 1", "PEXPIREAT a 4102444800000", "HSET h f v", "PEXPIREAT h 4102444800000", "SET b 2"] {
        from.say(line);
    }
    copy(&server, &redis.addr, &[]);
    for key in ["a", "h"] {
        let at: i64 = to.say(&format!("PEXPIRETIME {key}"))[1..].trim_end().parse().unwrap();
        assert!((at - 4_102_444_800_000).abs() < 2_000, "{key}: {at}");
    }
    assert_eq!(to.say("PEXPIRETIME b"), ":-1\r\n");
    let told = &copy(&server, &redis.addr, &[])["databases"][0];
    assert_eq!((&told["put"], &told["there"]), (&0.into(), &3.into()), "{told}");
}

/// Begins to copy, and waits until some of it is there.
fn begun(server: &Server, addr: &str, keys: u64) -> Child {
    let mut command = server.command(["import", "--from-redis", addr]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut to, given_up) = (Resp::connect(server.addr()), Instant::now() + PATIENCE);
    while to.say("DBSIZE").trim_start_matches(':').trim_end().parse::<u64>().unwrap() < keys {
        assert!(Instant::now() < given_up, "nothing comes");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[track_caller]
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[boltkv_needs::program("redis-server")]
// Promises: ops-redis-again.
#[test]
fn a_copy_that_is_interrupted_goes_on_by_the_same_command() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start(&[]));
    let server = server(folder.path());
    let (mut from, mut to) = (redis.client(), Resp::connect(server.addr()));
    fill(&mut from, 40_000, 3_000);
    let child = begun(&server, &redis.addr, 2_000);
    let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -INT {}", child.id())).status().unwrap();
    assert!(sent.success());
    let (code, said) = ended(child);
    assert!(code == Some(130) && said.contains("the same command goes on"), "{code:?} {said}");
    let told = &copy(&server, &redis.addr, &[])["databases"][0];
    assert!(told["there"].as_u64().unwrap() >= 1_000 && told["put"].as_u64().unwrap() > 0, "{told}");
    assert_same(&mut from, &mut to, 40_000, 3_000);
}

#[boltkv_needs::program("redis-server")]
#[test]
fn a_server_that_is_killed_and_started_again_is_waited_for_and_a_redis_that_dies_ends_it() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start(&[]));
    let server = server(folder.path());
    let mut from = redis.client();
    fill(&mut from, 40_000, 3_000);
    let addr = server.addr().to_owned();
    let child = begun(&server, &redis.addr, 2_000);
    server.kill();
    let file = folder.path().join("to.db");
    let again = Server::spawn(&mut common::boltkv(args!["serve", "--listen", &addr, "--db", &file]));
    assert_eq!(ended(child), (Some(0), String::new()));
    assert_same(&mut from, &mut Resp::connect(&addr), 40_000, 3_000);

    let other = Server::start(&folder.path().join("other.db"));
    let child = begun(&other, &redis.addr, 2_000);
    drop((from, redis));
    let (code, said) = ended(child);
    assert!(code == Some(3) && said.contains("is lost") && said.contains("goes on"), "{code:?} {said}");
    assert_eq!(again.stop().code, Some(0));
}

#[test]
fn another_boltkv_is_copied_too_and_what_is_no_redis_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let source = Server::start(&folder.path().join("from.db"));
    let server = server(folder.path());
    let (mut from, mut to) = (Resp::connect(source.addr()), Resp::connect(server.addr()));
    from.load((0..500).map(|n| words([b"SET".to_vec(), key(n), value(n)])));
    from.load((0..5).map(|n| words([b"HSET".to_vec(), format!("hash:{n}").into(), b"a".to_vec(), value(n)])));
    from.load((0..700).map(|n| words([b"HSET".to_vec(), b"large".to_vec(), key(n), value(n)])));
    source.run(["bucket", "create", "default/tree/twig"]).done();
    let said = server.run(["import", "--from-redis", source.addr()]).failed(1);
    assert!(said.contains("of type bucket: tree"), "{said}");
    for n in 0..500 {
        assert_eq!(from.ask(&[b"GET", &key(n)]), to.ask(&[b"GET", &key(n)]));
    }
    assert_eq!(to.say("HLEN large"), ":700\r\n");

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert!(server.run(["import", "--from-redis", &nobody]).failed(3).contains("could not connect to the Redis"));
    let odd = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = odd.local_addr().unwrap().to_string();
    let says = std::thread::spawn(move || {
        let (mut stream, _) = odd.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        std::io::Read::read_to_end(&mut stream, &mut Vec::new()).unwrap();
    });
    let said = server.run(["import", "--from-redis", &addr]).failed(3);
    assert!(said.contains("does not speak Redis' protocol"), "{said}");
    says.join().unwrap();
}
