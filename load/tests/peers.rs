//! The generator against the real Redis and memcached.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::process::Command;

use boltkv_load::{Error, Limit, Op, Order, Target, Work};
use common::other::Peer;
use common::{at, measure};

fn work(mix: &str, requests: u64) -> Work {
    let limit = Limit::Requests(requests);
    Work { mix: mix.parse().unwrap(), keys: 300, connections: 3, pipeline: 5, limit, ..Work::default() }
}

/// Loads, asks for everything, deletes; and finds the place occupied meanwhile, and free again afterwards.
fn everything(peer: &Peer, target: Target) {
    let place = at(target, peer.address);
    place.prepare().unwrap();
    let loaded = measure(&place, &work("get", 1).loading(Order::Shuffled)).unwrap();
    assert_eq!((loaded.requests, loaded.failed()), (300, 0));
    assert!(matches!(place.prepare(), Err(Error::Occupied(_))));
    let mixed = measure(&place, &work("get:80+set:20", 3000)).unwrap();
    assert_eq!((mixed.requests, mixed.failed(), mixed.of[&Op::Get].missing), (3000, 0, 0));
    let large = Work { value_size: 100_000..=200_000, ..work("get:50+set:50", 300) };
    let large = measure(&place, &large).unwrap();
    assert_eq!((large.requests, large.failed(), large.of[&Op::Get].missing), (300, 0, 0));
    let deleted = measure(&place, &Work { order: Order::Sequential, ..work("delete", 600) }).unwrap();
    assert_eq!((deleted.requests, deleted.of[&Op::Delete].missing), (600, 300));
    measure(&place, &work("get", 1).loading(Order::Shuffled)).unwrap();
    place.remove().unwrap();
    place.prepare().unwrap();
}

#[boltkv_needs::program("redis-server")]
#[test]
fn redis_is_loaded_asked_and_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(|port| {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.path());
        command
    });
    assert!(at(Target::Redis, peer.address).version().unwrap().contains("is "), "Redis 7.0");
    everything(&peer, Target::Redis);

    // Another database has nothing to do with it, and scans bring all.
    let mut place = at(Target::Redis, peer.address);
    measure(&place, &work("get", 1).loading(Order::Sequential)).unwrap();
    place.database = 3;
    place.prepare().unwrap();
    let scan = Work { keys: 2500, scan_length: 0, connections: 2, pipeline: 1, ..work("scan", 4) };
    measure(&place, &scan.loading(Order::Sequential)).unwrap();
    assert_eq!(measure(&place, &scan).unwrap().of[&Op::Scan].entries, 4 * 2500);
    let steps = measure(&place, &Work { scan_length: 100, ..scan }).unwrap();
    assert!(steps.of[&Op::Scan].entries >= 400 && steps.failed() == 0);
    place.remove().unwrap();
    place.database = 0;
    assert!(matches!(place.prepare(), Err(Error::Occupied(_))), "only database 3 was emptied");
}

#[boltkv_needs::program("memcached")]
#[test]
fn memcached_is_loaded_asked_and_emptied() {
    let peer = Peer::start(|port| {
        let mut command = Command::new("memcached");
        command.args(["-l", "127.0.0.1", "-u", "nobody", "-p", &port.to_string()]);
        command
    });
    let place = at(Target::Memcached, peer.address);
    assert!(place.version().unwrap().starts_with("memcached 1."));
    assert!(matches!(measure(&place, &work("scan", 1)), Err(Error::Impossible(_))));
    everything(&peer, Target::Memcached);
}
