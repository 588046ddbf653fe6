//! A connection that writes alone has a thread of its own, as long as it does.
//!
//! There is one test in this file: it counts threads of the whole process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::fs;

use common::{TestServer, Text, eventually};

/// Threads that serve one connection each.
fn lone_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // One may end meanwhile.
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "boltkv-lone").count()
}

fn write(client: &mut Text, times: u32) {
    for time in 0..times {
        assert_eq!(client.ask(&format!("SET k {time}")), "OK");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn who_writes_alone_has_a_thread_and_gives_it_up_among_others_and_at_its_end() {
    let server = TestServer::start();
    let [mut first, mut second] = [server.text(), server.text()];
    for _ in 0..300 {
        assert_eq!(first.ask("PING"), "PONG");
    }
    assert_eq!(lone_threads(), 0, "nothing was written");
    write(&mut first, 300);
    assert_eq!(lone_threads(), 1);
    write(&mut second, 300);
    assert_eq!(lone_threads(), 2, "the first one does nothing meanwhile");

    // From its thread it does all that it did before.
    assert_eq!(first.ask("GET k"), "299");
    assert_eq!(second.ask_all("SCAN"), ["k 299"]);
    let pings = "PING\r\n".repeat(20);
    for _ in 0..100 {
        second.send(&pings);
        (0..20).for_each(|_| assert_eq!(second.line(), "PONG"));
    }
    // Who sends bursts is served as those are, or as all are.
    eventually(|| lone_threads() == 1);

    let mut others = [server.text(), server.text()];
    let mut rounds = 0;
    while lone_threads() > 0 {
        std::thread::scope(|scope| {
            for client in others.iter_mut().chain([&mut first]) {
                scope.spawn(move || write(client, 500));
            }
        });
        rounds += 1;
        assert!(rounds < 1_000, "it shares no thread, among others");
    }

    write(&mut first, 300);
    assert_eq!(lone_threads(), 1, "alone again");
    for _ in 0..300 {
        assert_eq!(first.ask("PING"), "PONG");
    }
    eventually(|| lone_threads() == 0);
    write(&mut first, 300);
    assert_eq!(lone_threads(), 1, "it writes once more");
    first.send("QUIT\r\n");
    while first.try_line().is_some() {}
    eventually(|| lone_threads() == 0);
    // And at the server's end.
    write(&mut others[0], 300);
    assert_eq!(lone_threads(), 1);
    server.stop().unwrap();
    eventually(|| lone_threads() == 0);
}
