//! Servers that stall, fall silent or go away: what a generator must not hide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use boltkv_load::{Limit, Op, Target, Work};
use common::{at, measure};

/// A server of a few commands of memcached's: it answers GETs with nothing found, and calls `before` with the number of
/// each, from 1 on; where that says no, it closes the connection.
fn fake(before: impl Fn(u64) -> bool + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (before, asked) = (Arc::new(before), Arc::new(AtomicU64::new(0)));
    // Ends with the process; each connection's thread with its connection.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (before, asked) = (Arc::clone(&before), Arc::clone(&asked));
            thread::spawn(move || serve(stream, |number| before(number), &asked));
        }
    });
    address
}

fn serve(stream: TcpStream, before: impl Fn(u64) -> bool, asked: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let mut out = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        assert!(line.starts_with("get key:"), "{line}");
        if !before(asked.fetch_add(1, Ordering::Relaxed) + 1) || out.write_all(b"END\r\n").is_err() {
            return;
        }
    }
}

fn one_at_a_time(rate: Option<u64>, requests: u64) -> Work {
    let limit = Limit::Requests(requests);
    Work { connections: 1, rate, limit, ..Work::default() }
}

/// At 1,000 a second, a stall of 200 ms keeps 200 of 1,000 requests waiting, of which 20 for more than 180 ms.
#[test]
fn a_stall_is_charged_with_all_whom_it_kept_waiting() {
    const STALL: Duration = Duration::from_millis(200);
    let stalls_once = |number| {
        if number == 500 {
            thread::sleep(STALL);
        }
        true
    };
    let open = measure(&at(Target::Memcached, fake(stalls_once)), &one_at_a_time(Some(1000), 1000)).unwrap();
    let latencies = &open.of[&Op::Get].latencies;
    assert_eq!((latencies.len(), open.requests), (1000, 1000));
    assert!(latencies.value_at_quantile(0.99) > 150_000_000, "{} ns", latencies.value_at_quantile(0.99));
    assert!(latencies.value_at_quantile(0.85) > 20_000_000, "{} ns", latencies.value_at_quantile(0.85));
    assert!(latencies.max() >= 190_000_000);

    // A closed loop asks nothing meanwhile, and shows the stall in one request of a thousand.
    let closed = measure(&at(Target::Memcached, fake(stalls_once)), &one_at_a_time(None, 1000)).unwrap();
    let waited = closed.of[&Op::Get].latencies.iter_recorded();
    let waited: u64 = waited.filter(|at| at.value_iterated_to() >= 190_000_000).map(|at| at.count_at_value()).sum();
    assert!(waited >= 1);
}

#[test]
fn what_was_due_and_could_not_be_sent_is_told_and_in_the_latencies() {
    let hangs = |number| {
        if number == 100 {
            thread::sleep(Duration::from_millis(600));
        }
        true
    };
    let limit = Limit::Time(Duration::from_millis(500));
    let work = Work { limit, ..one_at_a_time(Some(1000), 0) };
    let measured = measure(&at(Target::Memcached, fake(hangs)), &work).unwrap();
    assert!(measured.unsent > 300 && measured.requests + measured.unsent + 1 == 500, "{measured:?}");
    let latencies = &measured.of[&Op::Get].latencies;
    assert_eq!(latencies.len(), 500, "also the one that was in flight at the end, and was waited for");
    assert!(latencies.value_at_quantile(0.9) > 250_000_000);
}

/// Its end comes with its last answer, in one event.
#[test]
fn a_server_that_ends_with_an_answer_is_gone_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
        asked.next().unwrap().unwrap();
        stream.write_all(b"END\r\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        asked.map_while(Result::ok).count()
    });
    let work = Work { timeout: common::PATIENCE, pipeline: 4, ..one_at_a_time(None, 1000) };
    let measured = measure(&at(Target::Memcached, address), &work).unwrap();
    server.join().unwrap();
    assert_eq!((measured.lost, measured.requests), (1, 1), "{measured:?}");
    let expected = "connection lost: the server closed the connection";
    assert!(measured.errors.keys().all(|what| what == expected), "{:?}", measured.errors);
}

#[test]
fn a_server_that_falls_silent_or_goes_away_is_an_error_for_each_request_in_flight() {
    let silent = |number: u64| {
        if number >= 50 {
            thread::sleep(common::PATIENCE);
        }
        true
    };
    let work = Work { timeout: Duration::from_millis(100), connections: 2, pipeline: 4, ..one_at_a_time(None, 1000) };
    let measured = measure(&at(Target::Memcached, fake(silent)), &work).unwrap();
    assert_eq!((measured.lost, measured.failed()), (2, 8), "{:?}", measured.errors);
    assert!(measured.errors.keys().all(|what| what == "connection lost: no answer within 100ms"));

    let measured = measure(&at(Target::Memcached, fake(|number| number < 50)), &work).unwrap();
    assert!(measured.lost == 2 && measured.requests >= 40, "{measured:?}");
    assert!(measured.errors.keys().all(|what| what.starts_with("connection lost: ")), "{:?}", measured.errors);
}
