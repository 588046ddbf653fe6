//! What clients see of a server is what one copy of the data would show, whatever happens to the server and to their
//! connections: Porcupine, which others wrote, looks for the order that explains it.
//!
//! `BOLTKV_HISTORY_SECONDS=600 cargo test -p boltkv --test linearizable` makes a long one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use boltkv_client::{Bucket, Client, Cond, Error, ErrorCode};
use common::boltkv;
use common::peer::judge;
use common::server::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const CLIENTS: u64 = 16;
const KEYS: u64 = 24;

/// Numbers that look random, and come again with the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What all clients share.
struct Run {
    start: Instant,
    is_over: AtomicBool,
    /// So that each value is put once.
    next: AtomicU64,
}

impl Run {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap()
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8(value.to_vec()).unwrap()
}

/// What a client was told.
enum Told {
    /// This, of what was done or seen.
    Answer(Value),
    /// Nothing: it may have been done, or will be.
    Nothing,
    /// That it was not done, which says nothing of the key.
    Refused,
}

/// What came of a write.
fn outcome<T>(done: Result<T, Error>, then: impl FnOnce(T) -> Value) -> Told {
    match done {
        Ok(done) => Told::Answer(then(done)),
        Err(error) if error.code() == Some(ErrorCode::ConditionFailed) => Told::Answer(json!({ "done": false })),
        Err(error) if error.code().is_some() => Told::Refused,
        Err(_) => Told::Nothing,
    }
}

/// One request of a client, as a line of the history; `None` where there is nothing to say of it.
async fn request(run: &Run, bucket: &Bucket, client: u64, random: &mut Random) -> Option<Value> {
    let number = random.below(KEYS);
    // Some keys hold numbers.
    let (key, counts) = (format!("k{number}"), number.is_multiple_of(3));
    let value = run.next.fetch_add(1, Ordering::Relaxed).to_string();
    let mut line = json!({ "client": client, "key": key, "arg": value, "call": run.now() });
    let (op, told) = match random.below(10) {
        0..4 => match bucket.get(&key).await {
            Ok(value) => ("get", Told::Answer(json!({ "out": value.map(|value| text(&value)) }))),
            // A read that failed says nothing.
            Err(_) => return None,
        },
        4 => ("delete", outcome(bucket.delete(&key).await, |deleted| json!({ "done": deleted.existed }))),
        5..7 if counts => {
            let added = bucket.increment(&key, value.parse().unwrap()).await;
            ("add", outcome(added, |added| json!({ "out": added.value.to_string() })))
        }
        5..7 => {
            let Ok(Some(old)) = bucket.get(&key).await else { return None };
            // What was read before is no part of this request.
            line["call"] = run.now().into();
            line["old"] = text(&old).into();
            ("swap", outcome(bucket.set_if(&key, &value, Cond::IfEquals(old)).await, |_| json!({ "done": true })))
        }
        _ => ("set", outcome(bucket.set(&key, &value).await, |_| json!({}))),
    };
    line["op"] = op.into();
    line["back"] = run.now().into();
    match told {
        Told::Nothing => line["unknown"] = true.into(),
        Told::Refused => return None,
        Told::Answer(told) => line.as_object_mut().unwrap().extend(told.as_object().unwrap().clone()),
    }
    Some(line)
}

async fn client(run: Arc<Run>, number: u64, addr: SocketAddr, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut lines = Vec::new();
    // It connects anew by itself; what it does not know the outcome of, it says.
    let client = loop {
        match Client::builder(addr.to_string()).timeout(Duration::from_secs(2)).connect().await {
            Ok(client) => break client,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let bucket = client.bucket("b").unwrap();
    while !run.is_over.load(Ordering::Relaxed) {
        if let Some(line) = request(&run, &bucket, number, &mut random).await {
            writeln!(lines, "{line}").unwrap();
        }
    }
    lines
}

/// Goes between clients and the server: is slow at times, and cuts connections.
async fn between(listener: TcpListener, server: SocketAddr, seed: u64) {
    let mut random = Random(seed);
    while let Ok((mut here, _)) = listener.accept().await {
        let mut random = Random(random.below(1 << 30));
        tokio::spawn(async move {
            let mut there = TcpStream::connect(server).await?;
            let (mut up, mut down) = ([0; 4096], [0; 4096]);
            for _ in 0..50 + random.below(3_000) {
                if random.below(100) == 0 {
                    tokio::time::sleep(Duration::from_millis(random.below(30))).await;
                }
                tokio::select! {
                    read = here.read(&mut up) => match read? {
                        0 => break,
                        len => there.write_all(&up[..len]).await?,
                    },
                    read = there.read(&mut down) => match read? {
                        0 => break,
                        len => here.write_all(&down[..len]).await?,
                    },
                }
            }
            Ok::<_, std::io::Error>(())
        });
    }
}

/// A history of so long, over a server that is killed and stopped for a moment.
async fn history(time: Duration, seed: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let mut random = Random(seed);
    let mut server = Server::start(&db);
    server.run(["bucket", "create", "b"]).done();
    let addr: SocketAddr = server.addr().parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let cutting = tokio::spawn(between(listener, addr, random.below(1 << 30)));
    let run = Arc::new(Run { start: Instant::now(), is_over: AtomicBool::new(false), next: AtomicU64::new(1) });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let to = if number % 2 == 0 { addr } else { proxy };
            tokio::spawn(client(Arc::clone(&run), number, to, random.below(1 << 30)))
        })
        .collect();
    while run.start.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(200 + random.below(600))).await;
        if random.below(2) == 0 {
            server.signal("STOP");
            tokio::time::sleep(Duration::from_millis(random.below(150))).await;
            server.signal("CONT");
        } else {
            server.kill();
            server = Server::spawn(&mut boltkv(args!["serve", "--listen", addr.to_string(), "--db", &db]));
        }
    }
    run.is_over.store(true, Ordering::Relaxed);
    let mut out = Vec::new();
    for client in clients {
        out.extend(client.await.unwrap());
    }
    cutting.abort();
    server.stop();
    out
}

// Promises: wire-read, wire-cond, wire-increment.
#[boltkv_needs::program("go")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_an_order_that_explains_what_clients_saw() {
    let Some(judge) = judge() else { return };
    let seconds = std::env::var("BOLTKV_HISTORY_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    let seed = RandomState::new().hash_one(0);
    let history = history(Duration::from_secs(seconds), seed).await;
    let judged = judge.judge(&history);
    let kept = std::env::temp_dir().join(format!("boltkv-history-{seed:x}.json"));
    if judged.code != Some(0) {
        std::fs::write(&kept, &history).unwrap();
    }
    assert_eq!(judged.code, Some(0), "{}; the history is in {}", judged.text(), kept.display());
    let unknown = history.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\"unknown\":true}")).count();
    let requests = history.split(|byte| *byte == b'\n').count() - 1;
    println!("{requests} requests, of {unknown} of which the outcome is unknown");
    assert!(unknown > 0, "the server was killed under them: {}", judged.text());
}

/// A judge that finds everything in order says nothing.
#[boltkv_needs::program("go")]
#[test]
fn a_history_that_no_order_explains_is_refused() {
    let Some(judge) = judge() else { return };
    let line = |op: &str, call: u64, back: u64, more: Value| {
        let mut line = json!({ "client": 0, "key": "k", "op": op, "arg": "1", "call": call, "back": back });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let set = line("set", 0, 10, json!({}));
    let old = line("get", 20, 30, json!({ "out": null }));
    let new = line("get", 20, 30, json!({ "out": "1" }));
    let lost = line("set", 0, 10, json!({ "unknown": true }));
    let stale = judge.judge([set.clone(), old.clone()].concat().as_bytes());
    assert_eq!(stale.code, Some(1), "{}", stale.text());
    assert_eq!(judge.judge([set, new.clone()].concat().as_bytes()).code, Some(0));
    for seen in [old, new] {
        assert_eq!(judge.judge([lost.clone(), seen].concat().as_bytes()).code, Some(0), "it may have been done or not");
    }
    let twice = [line("add", 0, 10, json!({ "out": "1" })), line("add", 20, 30, json!({ "out": "1" }))];
    assert_eq!(judge.judge(twice.concat().as_bytes()).code, Some(1), "one of them was lost");
}
