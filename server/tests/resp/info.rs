//! INFO of the Redis dialect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{Resp, TestServer};
use boltkv_server::Clock;
use boltkv_storage::Options;

// Promises: resp-info.
#[test]
fn figures_are_told_by_the_names_that_programs_look_for() {
    let server = TestServer::start();
    let mut client = server.resp();
    client.say("SET k v");
    let info = client.say("INFO");
    for name in [
        "redis_version:7",
        "redis_mode:standalone",
        "arch_bits:64",
        "process_id:",
        "tcp_port:",
        "uptime_in_seconds:",
        "connected_clients:1",
        "maxclients:10000",
        "used_memory:",
        "used_memory_human:",
        "maxmemory:0",
        "loading:0",
        "aof_enabled:1",
        "rdb_last_save_time:",
        "total_connections_received:1",
        "total_commands_processed:",
        "rejected_connections:0",
        "role:master",
        "connected_slaves:0",
        "cluster_enabled:0",
        "used_cpu_user:",
        "boltkv_version:",
        "db0:keys=1,expires=0,avg_ttl=0",
    ] {
        assert!(info.contains(&format!("\r\n{name}")), "{name} in {info}");
    }
    assert_eq!(client.say("INFO cluster nothing"), "# Cluster\r\ncluster_enabled:0\r\n");
    assert_eq!(client.say("INFO nothing"), "");
    let connections = |client: &mut Resp| {
        let stats = client.say("INFO stats");
        stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap().to_owned()
    };
    assert_eq!((connections(&mut client), client.say("CONFIG RESETSTAT")), ("1".into(), "OK".into()));
    assert_eq!(connections(&mut client), "0");
    let saved: u64 = client.say("LASTSAVE").parse().unwrap();
    let now: u64 = client.ask(&["TIME"]).texts()[0].parse().unwrap();
    assert!(now.abs_diff(saved) < 3_600, "{now} {saved}");
}

// Promises: resp-estimate.
#[test]
fn many_keys_are_estimated_and_few_are_counted() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let mut client = server.resp();
    let mut put = |from: usize, to: usize| {
        let value = |n: usize| "v".repeat(1 + n % 200);
        let pairs: Vec<_> = (from..to).map(|n| format!("k{} {}", n * 7_919 % 1_000_003, value(n))).collect();
        assert_eq!(client.say(&format!("MSET {}", pairs.join(" "))), "OK");
        client.say("INFO keyspace")
    };
    assert_eq!(put(0, 1_000), "# Keyspace\r\ndb0:keys=1000,expires=0,avg_ttl=0\r\n");
    let told = put(1_000, 1_001);
    assert!(told.ends_with(",expires=0,avg_ttl=0,estimated=1\r\n"), "{told}");
    let figures = |told: &str| {
        let numbers = told.split(['=', ',', '\r']).filter_map(|word| word.parse::<f64>().ok());
        numbers.collect::<Vec<_>>()
    };
    let is_near = |told: f64, true_one: f64| (told - true_one).abs() < 0.05 * true_one;
    assert!(is_near(figures(&told)[0], 1_001.0), "{told}");
    for from in (1_001..60_000).step_by(10_000) {
        put(from, from + 10_000);
    }
    // Half of the keys between two others are gone in 100 s.
    let expiring: Vec<_> = client.ask(&["KEYS", "k[3-6]*"]).texts();
    let lines: Vec<_> = expiring.iter().map(|key| format!("EXPIRE {key} 100")).collect();
    client.tell_all(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let told = client.say("INFO keyspace");
    assert_eq!(client.say("INFO keyspace"), told, "it does not jump");
    let [keys, expires, left, 1.0] = figures(&told)[..] else { panic!("{told}") };
    let all: f64 = client.say("DBSIZE").parse().unwrap();
    assert!(is_near(keys, all) && is_near(left, 100_000.0), "{told} of {all}");
    let expiring = f64::from(u32::try_from(expiring.len()).unwrap());
    assert!(is_near(expires, expiring), "{told} of {expiring}");
}

#[test]
fn what_goes_on_is_told() {
    let server = TestServer::start();
    let mut client = server.resp();
    let figure = |client: &mut Resp, name: &str| {
        let info = client.say("INFO");
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("it is told").to_owned()
    };
    let gets = |client: &mut Resp| ["keyspace_hits", "keyspace_misses"].map(|name| figure(client, name));
    client.tell_all(&["GET nothing", "SET k v", "GET k", "GET k", "GET nothing", "HSET h f v", "GET h"]);
    assert_eq!(gets(&mut client), ["2", "2"]);
    assert_eq!(server.text().ask("GET k"), "v");
    assert_eq!(gets(&mut client), ["3", "2"]);
    let number = |client: &mut Resp, name: &str| figure(client, name).parse::<f64>().unwrap();
    let own = number(&mut client, "used_memory");
    assert!(own > 100_000.0 && number(&mut client, "used_memory_rss") > own);
    // So many that it is more than nothing, even if it takes minutes.
    client.tell_all(&["PING"; 1_000]);
    assert!(number(&mut client, "instantaneous_ops_per_sec") >= 1.0);
    assert!(number(&mut client, "instantaneous_input_kbps") > 0.0);
    assert!(number(&mut client, "instantaneous_output_kbps") > 0.0);
    assert_eq!(client.say("CONFIG RESETSTAT"), "OK");
    assert_eq!(gets(&mut client), ["0", "0"]);
}

#[test]
fn what_has_expired_is_not_counted() {
    let clock = Clock::by_hand(1_000_000);
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db.clone(), |config| config.clock = clock.clone());
    let mut client = server.resp();
    for line in ["SET a 1 PX 1000", "SET b 1 PX 3000", "SET c 1", "SELECT 1", "SET gone 1 PX 100"] {
        client.say(line);
    }
    client.say("SELECT 0");
    client.say("HSET h stays 12345 goes 123456789");
    let mut text = server.text();
    assert_eq!((text.ask("BUCKET USE default/h"), text.ask("PEXPIRE goes 500")), ("OK".into(), "1".into()));
    assert_eq!(
        client.say("INFO keyspace"),
        "# Keyspace\r\ndb0:keys=4,expires=2,avg_ttl=2000\r\ndb1:keys=1,expires=1,avg_ttl=100\r\n"
    );
    assert_eq!(client.say("MEMORY USAGE h"), "24");
    drop(text);
    server.stop().unwrap();
    // Nobody removes anything here.
    let server = TestServer::serve(db, |config| {
        config.clock = clock.clone();
        config.read_only = true;
    });
    clock.set(1_001_000);
    let mut client = server.resp();
    assert_eq!(client.say("INFO keyspace"), "# Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=2000\r\n");
    assert_eq!(client.say("MEMORY USAGE h"), "11");
}
