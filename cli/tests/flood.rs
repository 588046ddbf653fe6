//! However strangers flood it, the server's memory stays within what it was told, and it goes on serving.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use common::server::{PATIENCE, Server};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// What the server is told.
const MAX_FRAME: usize = 4 * MIB;
const MEMORY: usize = 16 * MIB;
/// What it may grow by under any flood, allocator and all.
const MOST_GROWTH: usize = 64 * MIB;
/// A client that is not read for so long has filled all that takes anything.
const STUCK: Duration = Duration::from_millis(200);

/// The most private memory that a process has while this lives, in bytes.
struct Watch {
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn start(process: u32) -> Self {
        let (most, stop) = (Arc::new(AtomicU64::new(anonymous(process))), Arc::new(AtomicBool::new(false)));
        let (seen, stopped) = (Arc::clone(&most), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                seen.fetch_max(anonymous(process), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self { most, stop, thread: Some(thread) }
    }

    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        usize::try_from(self.most.load(Ordering::Relaxed)).unwrap()
    }
}

/// The memory of a process that belongs to no file, in bytes.
fn anonymous(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn frame(id: u32, op: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(6 + body.len()).unwrap();
    [&len.to_be_bytes()[..], &id.to_be_bytes(), &[op, 0], body].concat()
}

fn set(id: u32, bucket: &[u8], key: &[u8], value_len: usize) -> Vec<u8> {
    let str16 = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let value = vec![b'v'; value_len];
    let len = u32::try_from(value_len).unwrap().to_be_bytes();
    frame(id, 0x11, &[&[1][..], &str16(bucket), &str16(key), &len, &value, &[0]].concat())
}

fn get(id: u32, bucket: &[u8], key: &[u8]) -> Vec<u8> {
    let str16 = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    frame(id, 0x10, &[&[1][..], &str16(bucket), &str16(key)].concat())
}

fn text(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(server.addr()).unwrap();
    socket.set_write_timeout(Some(STUCK)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A connection that has said HELLO.
fn binary(server: &Server) -> TcpStream {
    let mut socket = text(server);
    socket.write_all(&frame(1, 0x01, b"BKV1\x01\x01\0\0\0\0\0\0\0\0")).unwrap();
    replies(&mut socket, 1);
    socket
}

/// Sends until all is sent or the server has taken nothing for a while.
fn stuff(socket: &mut TcpStream, bytes: &[u8]) {
    match socket.write_all(bytes) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
        Err(error) => panic!("the server closed a connection: {error}"),
    }
}

/// Floods a server of a small memory, and answers by how many bytes it grew. The sockets are open till the end.
#[track_caller]
fn flood(flood: impl FnOnce(&Server) -> Vec<TcpStream>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let limits =
        [format!("--max-frame={MAX_FRAME}"), format!("--memory={MEMORY}"), "--max-connections=5000".to_owned()];
    let server = Server::start_with(&folder.path().join("flood.db"), limits);
    assert_eq!(server.text("SET warm up\nGET warm\n"), "OK\nup\n");
    let before = usize::try_from(anonymous(server.id())).unwrap();
    let watch = Watch::start(server.id());
    let sockets = flood(&server);
    let grown = watch.end().saturating_sub(before);
    assert!(grown < MOST_GROWTH, "it grew by {} KiB", grown / KIB);
    drop(sockets);
    assert_eq!(server.text("GET warm\n"), "up\n");
    assert_eq!(server.stop().code, Some(0));
    grown
}

// Promises: ops-memory.
#[test]
fn by_small_requests_without_pause() {
    flood(|server| {
        let pings: Vec<u8> = (2..100_000).flat_map(|id| frame(id, 0x02, b"")).collect();
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let (mut socket, pings) = (binary(server), pings.clone());
                let mut replies = socket.try_clone().unwrap();
                let reader = thread::spawn(move || {
                    let mut buffer = vec![0; 64 * KIB];
                    while replies.read(&mut buffer).is_ok_and(|len| len > 0) {}
                });
                thread::spawn(move || {
                    (0..3).for_each(|_| stuff(&mut socket, &pings));
                    socket.shutdown(std::net::Shutdown::Write).unwrap();
                    reader.join().unwrap();
                    socket
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
}

#[test]
fn by_lines_of_quoted_words() {
    flood(|server| {
        let line = format!("MGET {}\n", "\"\\n\" ".repeat(12_000));
        let sockets = (0..50).map(|_| text(server));
        sockets
            .map(|mut socket| {
                stuff(&mut socket, line.repeat(20).as_bytes());
                socket
            })
            .collect()
    });
}

#[test]
fn by_frames_one_byte_short() {
    flood(|server| {
        let whole = set(2, b"default", b"k", MAX_FRAME - 100);
        let sockets = (0..60).map(|_| binary(server));
        sockets
            .map(|mut socket| {
                stuff(&mut socket, &whole[..whole.len() - 1]);
                socket
            })
            .collect()
    });
}

#[test]
fn by_replies_that_nobody_reads() {
    flood(|server| {
        let mut writer = binary(server);
        writer.set_write_timeout(Some(PATIENCE)).unwrap();
        writer.write_all(&set(2, b"default", b"large", MAX_FRAME - 100)).unwrap();
        writer.read_exact(&mut [0; 18]).unwrap();
        let gets: Vec<u8> = (3..23).flat_map(|id| get(id, b"default", b"large")).collect();
        let sockets = (0..60).map(|_| binary(server));
        sockets
            .map(|mut socket| {
                stuff(&mut socket, &gets);
                socket
            })
            .collect()
    });
}

#[test]
fn by_writes_with_long_paths() {
    flood(|server| {
        let senders: Vec<_> = (0..20)
            .map(|n| {
                let mut socket = binary(server);
                thread::spawn(move || {
                    let bucket = vec![b'a' + n; 30_000];
                    for id in 2..500 {
                        stuff(&mut socket, &set(id, &bucket, b"k", 10));
                    }
                    socket
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
}

/// A request of a client of Redis.
fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Floods a server by so many clients of Redis who all send the same and read nothing.
#[track_caller]
fn flood_by_clients_of_redis(count: usize, sent: &[u8]) {
    flood(|server| {
        let sockets = (0..count).map(|_| text(server));
        sockets
            .map(|mut socket| {
                stuff(&mut socket, sent);
                socket
            })
            .collect()
    });
}

#[test]
fn by_arrays_half_of_which_comes() {
    let whole = array(&[b"SET", b"k", &vec![b'v'; MAX_FRAME - 100]]);
    flood_by_clients_of_redis(30, &whole[..MAX_FRAME / 2]);
    flood_by_clients_of_redis(30, &whole[..whole.len() - 1]);
}

#[test]
fn by_arrays_of_many_words() {
    let words = "$1\r\na\r\n".repeat(130_000);
    flood_by_clients_of_redis(60, format!("*131072\r\n{words}").as_bytes());
    flood_by_clients_of_redis(60, &array(&[&b"MGET"[..]; 1_000]).repeat(50));
}

#[test]
fn by_replies_to_clients_of_redis_that_nobody_reads() {
    let long = vec![b'e'; 100_000];
    let asked: [&[&[u8]]; 4] = [&[b"COMMAND", b"DOCS"], &[b"INFO"], &[b"ECHO", &long], &[b"COMMAND"]];
    flood_by_clients_of_redis(60, &asked.map(array).concat().repeat(200));
}

#[test]
fn by_transactions_that_are_not_done() {
    let set = array(&[b"SET", b"k", &vec![b'v'; 100_000]]);
    flood_by_clients_of_redis(60, &[array(&[b"MULTI"]), set.repeat(30)].concat());
    let watches: Vec<u8> = (0..5_000).flat_map(|n| array(&[b"WATCH", format!("{n:01000}").as_bytes()])).collect();
    flood_by_clients_of_redis(20, &watches);
}

#[test]
fn by_connections_that_do_nothing() {
    let (count, each) = (900, 4 * KIB);
    let grown = flood(|server| (0..count).map(|n| if n % 2 == 0 { text(server) } else { binary(server) }).collect());
    assert!(grown < count * each, "an idle connection takes {} bytes", grown / count);
}

/// How many connections come at once where a process may have so many files open.
const CROWD: u64 = 8_000;
/// What may stay of what a crowd took when it has left.
const MOST_LEFT: u64 = 8 * 1024 * 1024;

/// How many connections this process may have, at most `CROWD`, and has room for from now on.
fn crowd() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    usize::try_from(maximum.map_or(CROWD, |most| CROWD.min(most - 200))).unwrap()
}

/// Has a crowd come to a server and leave, and waits until what it took has been returned.
#[track_caller]
fn come_and_leave(come: impl FnOnce(&Server) -> Vec<TcpStream>) {
    let folder = tempfile::tempdir().unwrap();
    // What is new stays in memory, and is no connection's.
    let server = Server::start_with(&folder.path().join("crowd.db"), ["--memory=256MiB", "--journal-memory=0"]);
    assert_eq!(server.text("SET warm up\nGET warm\n"), "OK\nup\n");
    let before = anonymous(server.id());
    let more = || anonymous(server.id()).saturating_sub(before) / 1024;
    let crowd = come(&server);
    let with_them = more();
    drop(crowd);
    let gone = Instant::now();
    while more() > MOST_LEFT / 1024 {
        assert!(gone.elapsed() < PATIENCE, "{} KiB stay when all have left", more());
        thread::sleep(Duration::from_millis(50));
    }
    println!("{} KiB alone, {with_them} more with all of them, {} {:?} later", before / 1024, more(), gone.elapsed());
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-memory-returned.
#[test]
fn memory_of_thousands_of_connections_is_returned_when_they_have_left() {
    let crowd = crowd();
    come_and_leave(|server| {
        let each = |n| {
            if n % 2 == 0 {
                return binary(server);
            }
            let mut socket = text(server);
            socket.write_all(b"GET warm\n").unwrap();
            socket.read_exact(&mut [0; 3]).unwrap();
            socket
        };
        (0..crowd).map(each).collect()
    });
}

// Promises: ops-memory-returned.
#[test]
fn memory_of_requests_in_flight_is_returned_when_they_are_done() {
    let crowd = crowd() / 4;
    come_and_leave(|server| {
        let sets = (2..10).flat_map(|id| set(id, b"default", &[b'k', id.to_be_bytes()[3]], 1000));
        let gets = (10..50).flat_map(|id| get(id, b"default", b"warm"));
        let requests: Vec<u8> = sets.chain(gets).collect();
        let mut sockets: Vec<_> = (0..crowd).map(|_| binary(server)).collect();
        for socket in &mut sockets {
            socket.write_all(&requests).unwrap();
        }
        for socket in &mut sockets {
            replies(socket, 48);
        }
        sockets
    });
}

// Promises: ops-memory-returned.
#[test]
fn memory_of_large_writes_is_returned_when_they_are_done() {
    come_and_leave(|server| {
        let write = set(2, b"default", b"large", 8 * MIB);
        let senders: Vec<_> = (0..16)
            .map(|_| {
                let (mut socket, write) = (binary(server), write.clone());
                socket.set_write_timeout(Some(PATIENCE)).unwrap();
                thread::spawn(move || {
                    socket.write_all(&write).unwrap();
                    replies(&mut socket, 1);
                    socket
                })
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
}

/// Reads so many replies.
fn replies(socket: &mut TcpStream, count: usize) {
    for _ in 0..count {
        let mut header = [0; 4];
        socket.read_exact(&mut header).unwrap();
        let mut rest = vec![0; u32::from_be_bytes(header) as usize];
        socket.read_exact(&mut rest).unwrap();
    }
}
