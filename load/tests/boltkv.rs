//! The generator against a boltkv server: it asks what it was told to, counts what comes, and touches nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use boltkv_load::{Error, Limit, Mix, Op, Order, Server, Target, Work, run};
use boltkv_storage::Db;
use common::{TestServer, at, measure};

/// Many small requests over few keys.
fn small(mix: &str, requests: u64) -> Work {
    let limit = Limit::Requests(requests);
    Work { mix: mix.parse().unwrap(), keys: 500, connections: 4, pipeline: 8, threads: 2, limit, ..Work::default() }
}

/// How many entries a bucket has, and the length of its longest value; `None`: there is no such bucket.
fn held(db: &Db, bucket: &str) -> Option<(usize, usize)> {
    let tx = db.begin().unwrap();
    let bucket = tx.bucket(bucket).ok()?;
    let entries: Vec<_> = bucket.iter().map(|entry| entry.unwrap().1.map_or(0, <[u8]>::len)).collect();
    Some((entries.len(), entries.into_iter().max().unwrap_or(0)))
}

#[test]
fn loading_puts_every_key_once_into_a_bucket_of_its_own_which_is_removed() {
    let server = TestServer::start();
    let place = server.server();
    place.prepare().unwrap();
    assert!(matches!(place.prepare(), Err(Error::Occupied(_))), "nobody else's");
    let work = Work { value_size: 10..=300, ..small("get", 1) };
    for order in [Order::Sequential, Order::Shuffled] {
        let loaded = measure(&place, &work.loading(order)).unwrap();
        assert_eq!((loaded.requests, loaded.failed(), loaded.of[&Op::Set].latencies.len()), (500, 0, 500));
        let (entries, longest) = held(&server.db, "bench").unwrap();
        assert!(entries == 500 && (200..=300).contains(&longest), "{entries} entries, {longest} bytes");
    }
    place.remove().unwrap();
    assert_eq!(held(&server.db, "bench"), None);
    assert!(matches!(place.remove(), Err(Error::Refused { .. })));
}

#[test]
fn what_was_asked_is_counted_kind_by_kind() {
    let server = TestServer::start();
    let place = server.server();
    place.prepare().unwrap();
    let missed = measure(&place, &small("get", 1000)).unwrap();
    assert_eq!((missed.requests, missed.failed(), missed.of[&Op::Get].missing), (1000, 0, 1000));
    measure(&place, &small("get", 1).loading(Order::Sequential)).unwrap();

    let mixed = measure(&place, &small("get:50+set:30+scan:20", 4001)).unwrap();
    assert_eq!((mixed.requests, mixed.failed(), mixed.lost, mixed.unsent), (4001, 0, 0, 0));
    assert_eq!(mixed.of[&Op::Get].missing, 0);
    let scans = &mixed.of[&Op::Scan];
    assert!(scans.entries > scans.latencies.len() * 50 && scans.entries <= scans.latencies.len() * 100);
    let kinds: u64 = mixed.of.values().map(|of| of.latencies.len()).sum();
    assert_eq!((kinds, mixed.latencies().unwrap().len()), (4001, 4001));
    assert_eq!(mixed.series.slices().iter().map(|slice| slice.answered).sum::<u64>(), 4001);

    let deleted = measure(&place, &Work { order: Order::Sequential, ..small("delete", 1000) }).unwrap();
    assert_eq!((deleted.requests, deleted.of[&Op::Delete].missing), (1000, 500), "each is there once");
    assert_eq!(held(&server.db, "bench"), Some((0, 0)));
}

#[test]
fn a_scan_of_all_brings_all_however_many_frames_it_takes() {
    let server = TestServer::start();
    let place = server.server();
    place.prepare().unwrap();
    let work = Work { keys: 3000, value_size: 500..=500, scan_length: 0, connections: 2, ..small("scan", 6) };
    measure(&place, &work.loading(Order::Shuffled)).unwrap();
    let scanned = measure(&place, &work).unwrap();
    assert_eq!((scanned.of[&Op::Scan].entries, scanned.failed()), (6 * 3000, 0));
}

#[test]
fn values_as_long_as_a_frame_may_be_pass_and_longer_ones_are_errors() {
    let server = TestServer::start_with(|config| config.limits.max_frame = 4 << 20);
    let place = server.server();
    place.prepare().unwrap();
    let work = Work { keys: 4, connections: 2, pipeline: 1, value_size: 4_000_000..=4_000_000, ..small("get", 20) };
    assert_eq!(measure(&place, &work.loading(Order::Sequential)).unwrap().failed(), 0);
    let got = measure(&place, &work).unwrap();
    assert_eq!((got.requests, got.of[&Op::Get].missing), (20, 0));
    let over = Work { mix: Mix::only(Op::Set), value_size: 5_000_000..=5_000_000, ..work };
    let over = measure(&place, &over).unwrap();
    assert_eq!((over.requests, over.lost), (0, 2));
    assert!(over.errors.keys().all(|what| what.contains("over the server's limit of 4194304")), "{:?}", over.errors);
}

#[test]
fn errors_are_counted_by_what_the_server_says() {
    let server = TestServer::start();
    let refused = measure(&server.server(), &small("get", 100)).unwrap();
    assert_eq!((refused.requests, refused.failed(), refused.lost), (0, 100, 0));
    assert_eq!(refused.errors.len(), 1, "{:?}", refused.errors);
}

#[test]
fn an_open_loop_sends_what_is_due_and_no_more() {
    let server = TestServer::start();
    let place = server.server();
    place.prepare().unwrap();
    let limit = Limit::Time(Duration::from_millis(500));
    let paced = measure(&place, &Work { rate: Some(2000), limit, ..small("get", 1) }).unwrap();
    let sent = paced.of[&Op::Get].latencies.len();
    assert_eq!((sent, paced.failed()), (1000, 0), "each once, in time or not");
    assert_eq!(paced.elapsed, Duration::from_millis(500));
}

#[test]
fn a_run_that_is_stopped_says_what_it_has() {
    let server = TestServer::start();
    let place = server.server();
    place.prepare().unwrap();
    let stop = AtomicBool::new(false);
    let mut told = 0;
    let measured = run(&place, &Work { limit: Limit::Time(common::PATIENCE), ..small("get", 1) }, &stop, &mut |live| {
        told = live.answered;
        stop.store(told > 0, std::sync::atomic::Ordering::Relaxed);
    });
    let measured = measured.unwrap();
    assert!(measured.interrupted && told > 0 && measured.requests >= told);
    assert!(measured.elapsed < common::PATIENCE && measured.failed() == 0);
}

#[test]
fn who_is_not_there_or_somebody_else_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = measure(&at(Target::Boltkv, free), &small("get", 1));
    assert!(matches!(nobody, Err(Error::Connect { .. })), "{nobody:?}");
    let server = TestServer::start();
    let other = at(Target::Memcached, server.address).version();
    assert!(matches!(other, Err(Error::Protocol { .. } | Error::Refused { .. })), "{other:?}");
    assert!(server.server().version().unwrap().starts_with("boltkv/"));
}

#[test]
fn asked_as_redis_is_boltkv_is_loaded_asked_and_emptied() {
    let server = TestServer::start();
    let place = Server { database: 3, ..server.resp() };
    assert!(place.version().unwrap().starts_with("boltkv"));
    place.prepare().unwrap();
    let work = Work { pipeline: 5, ..small("get", 1) };
    let loaded = measure(&place, &work.loading(Order::Shuffled)).unwrap();
    assert_eq!((loaded.requests, loaded.failed()), (work.keys, 0));
    assert!(matches!(place.prepare(), Err(Error::Occupied(_))));
    assert_eq!(held(&server.db, "db3").map(|(keys, _)| keys as u64), Some(work.keys), "a database is a bucket");
    let mixed = measure(&place, &Work { pipeline: 5, ..small("get:80+set:20", 3000) }).unwrap();
    assert_eq!((mixed.requests, mixed.failed(), mixed.of[&Op::Get].missing), (3000, 0, 0));
    let scan = Work { scan_length: 0, connections: 2, pipeline: 1, ..small("scan", 4) };
    assert_eq!(measure(&place, &scan).unwrap().of[&Op::Scan].entries, 4 * work.keys);
    let deleted = measure(&place, &Work { order: Order::Sequential, ..small("delete", 2 * work.keys) }).unwrap();
    assert_eq!((deleted.requests, deleted.of[&Op::Delete].missing), (2 * work.keys, work.keys));
    measure(&place, &work.loading(Order::Shuffled)).unwrap();
    place.remove().unwrap();
    place.prepare().unwrap();
}
