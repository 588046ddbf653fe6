//! `boltkv watch`: what is committed, on lines and as JSON; and watchers that are killed and go on, beside writers and servers
//! that are killed, too: none misses anything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::server::{PATIENCE, Server};
use boltkv_client::{Change, ChangeKind, Client, WatchPosition, Watched, Watching};
use tokio::time::timeout;

/// A watch that runs, and its lines.
struct Watcher {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watcher {
    fn start(server: &Server, args: &[&str]) -> Self {
        let mut child =
            server.command([&["watch"], args].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("there is a line").unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// Promises: ops-watch.
#[test]
fn what_is_committed_is_printed_and_gone_on_with_from_any_position() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("a.db"));
    let mut watcher = Watcher::start(&server, &["--bucket", "/"]);
    let start = watcher.line();
    assert!(start.starts_with("-- ") && start.ends_with(" the watch begins"), "{start}");
    let asked = [
        "BUCKET CREATE a",
        "BUCKET USE a\nSET k \"v  \"",
        "BUCKET USE a\nDELETE k",
        "BUCKET USE a\nSET \"x y\" 1",
        "BUCKET USE a\nDELRANGE a z",
        "BUCKET SEQUENCE a 7",
        "BUCKET CREATE b",
        "BUCKET MOVE a b/a",
        "BUCKET DELETE b",
    ];
    for lines in asked {
        let answer = server.text(&format!("{lines}\n"));
        assert!(!answer.contains("ERR"), "{lines}: {answer}");
    }
    let expected = [
        "CREATE a",
        "PUT a k \"v  \"",
        "DELETE a k",
        "PUT a \"x y\" 1",
        "DELETE-RANGE a \"x y\" \"x y\"",
        "SEQUENCE a 7",
        "CREATE b",
        "MOVE a b/a",
        "DROP b",
    ];
    let mut positions = Vec::new();
    for expected in expected {
        let head = watcher.line();
        positions.push(head.split(' ').nth(1).unwrap().to_owned());
        assert!(head.ends_with('Z'), "{head}");
        assert_eq!(watcher.line(), expected);
    }
    for (index, position) in positions.iter().enumerate().take(positions.len() - 1) {
        let printed = server.run(["watch", "-b", "/", "--from", position, "-n", "1"]).done_text();
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!(lines[0], format!("-- {position} the watch begins"));
        assert_eq!(lines[2], expected[index + 1]);
    }
    let json = server.run(["watch", "--bucket=/", "--from=oldest", "--json", "--limit", "2"]).done_text();
    let last = json.lines().last().unwrap();
    assert!(last.contains(r#""changes":[{"change":"put","bucket":["YQ=="],"key":"aw==","value":"diAg"}]"#), "{last}");
    let keys = server.run(["watch", "-ba", "k", "--from=oldest", "--keys-only", "-n2"]).done_text();
    assert!(keys.contains("\nPUT a k\n") || keys.contains("\nCREATE a\n"), "{keys}");
    let by_flag = server.run(["watch", "-ba", "--prefix=k", "--from=oldest", "--keys-only", "-n2"]).done_text();
    assert_eq!(by_flag, keys);
}

#[test]
fn what_is_not_kept_and_a_server_without_a_journal_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&folder.path().join("a.db"), ["--journal", "off"]);
    assert!(server.run(["watch"]).failed(1).contains("no journal"));
    drop(server);
    let server = Server::start(&folder.path().join("b.db"));
    let refused = server.run(["watch", "--from", "00000000000000ff:3"]).failed(1);
    let (said, oldest) = refused.trim_end().rsplit_once("; the oldest position that is kept is ").unwrap();
    assert!(said.contains("SNAPSHOT_EXPIRED"), "{refused}");
    server.run(["set", "k", "v"]).done();
    let kept = server.run(["watch", "--from", oldest, "--limit=2"]).done_text();
    assert!(kept.contains("\nPUT default k v\n"), "{kept}");
    assert_eq!(server.run(["watch", "--from", "3"]).code, Some(2));
}

const WRITERS: u64 = 8;
const KEYS: u64 = 50;

/// What a watcher knows of the state: keys and values by bucket and key.
type State = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn follow(state: &mut State, watched: &Watched) {
    for Change { kind, path, key, value } in &watched.changes {
        let at = (path.to_string(), key.to_vec());
        match kind {
            ChangeKind::Put => _ = state.insert(at, value.to_vec()),
            ChangeKind::Deleted => assert!(state.remove(&at).is_some(), "{at:?} was not there"),
            ChangeKind::RangeDeleted => {
                state.retain(|(bucket, key), _| *bucket != at.0 || *key < at.1 || *key > value.to_vec());
            }
            ChangeKind::BucketCreated => {}
            other => panic!("nobody did {other:?}"),
        }
    }
}

/// Writes until the server is gone, or the end.
async fn write(client: Client, writer: u64, random: u64, is_over: Arc<AtomicBool>) {
    let bucket = client.bucket(&format!("w/{writer}")).unwrap();
    for number in 0_u64.. {
        let key = ((random ^ number.wrapping_mul(7_919)) % KEYS).to_string();
        let value = format!("{random}.{number} ").repeat(usize::try_from(number % 40).unwrap());
        let done = match number % 7 {
            3 => bucket.delete(&key).await.map(drop),
            5 => client.transaction().set(&bucket, &key, &value).set(&bucket, "both", &value).commit().await.map(drop),
            6 if number % 10 == 1 => bucket.delete_range().prefix("1").run().await.map(drop),
            _ => bucket.set(&key, &value).await.map(drop),
        };
        if done.is_err() || is_over.load(Ordering::Relaxed) {
            return;
        }
    }
}

async fn read(client: &Client) -> State {
    let mut state = State::new();
    for writer in 0..WRITERS {
        let path = format!("w/{writer}");
        let mut entries = client.bucket(&path).unwrap().scan().stream().await.unwrap();
        while let Some(entry) = entries.next().await {
            let entry = entry.unwrap();
            state.insert((path.clone(), entry.key.to_vec()), entry.value.to_vec());
        }
    }
    state
}

/// What a watch tells until its server is gone.
async fn until_killed(mut watching: Watching) -> Vec<Watched> {
    let mut told = Vec::new();
    while let Some(Ok(watched)) = watching.next().await {
        told.push(watched);
    }
    told
}

/// One life of a server: eight writers, and a watcher that is given up and begun again so many times. Where the server is killed, another
/// watch is under way.
async fn life(
    db: &Path,
    args: &[&str],
    state: &mut State,
    at: &mut Option<WatchPosition>,
    resumes: u64,
    random: u64,
) -> bool {
    let server = Server::start_with(db, args);
    let client = Client::connect(server.addr()).await.unwrap();
    for writer in 0..WRITERS {
        client.bucket(&format!("w/{writer}")).unwrap().create_if_missing().await.unwrap();
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let client = Client::connect(server.addr()).await.unwrap();
        writers.push(tokio::spawn(write(
            client,
            writer,
            random.rotate_left(8 * u32::try_from(writer).unwrap()),
            Arc::clone(&is_over),
        )));
    }
    for resume in 0..resumes {
        let anew = Client::connect(server.addr()).await.unwrap();
        let watch = at.map_or_else(|| anew.watch().from_oldest(), |at| anew.watch().after(at));
        let mut watching = watch.stream().await.unwrap();
        for _ in 0..=(random >> (resume % 60)) % 50 {
            let told = timeout(PATIENCE, watching.next()).await.expect("something is written").unwrap().unwrap();
            follow(state, &told);
            *at = Some(told.position);
        }
    }
    if !random.is_multiple_of(3) {
        let watch = client.watch().after(at.unwrap()).patience(Duration::ZERO);
        let last = tokio::spawn(until_killed(watch.stream().await.unwrap()));
        tokio::time::sleep(Duration::from_micros(random % 20_000)).await;
        server.kill();
        for told in timeout(PATIENCE, last).await.expect("a watch ends with its server").unwrap() {
            follow(state, &told);
            *at = Some(told.position);
        }
        for writer in writers {
            timeout(PATIENCE, writer).await.expect("a writer ends with its server").unwrap();
        }
        return true;
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        timeout(PATIENCE, writer).await.unwrap().unwrap();
    }
    // All that was written is told, and what was told is all that was written.
    client.bucket("w/0").unwrap().set("the end", random.to_string()).await.unwrap();
    let mut watching = client.watch().after(at.unwrap()).stream().await.unwrap();
    loop {
        let told = timeout(PATIENCE, watching.next()).await.unwrap().unwrap().unwrap();
        follow(state, &told);
        *at = Some(told.position);
        if told.changes.iter().any(|change| change.key == "the end" && change.value == random.to_string()) {
            break;
        }
    }
    assert!(*state == read(&client).await, "after {at:?}");
    server.kill();
    false
}

/// Watchers begun again so many times; the state is compared at the end of some lives, and of the last.
async fn lives(args: &[&str], resumes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("a.db");
    let (mut state, mut at, chance) = (State::new(), None, RandomState::new());
    let (mut done, mut killed) = (0, 0);
    for round in 0.. {
        let is_last = done >= resumes;
        let random = chance.hash_one(round);
        // The first server is killed, and the last one ends in order.
        let random = match round {
            0 => random - random % 3 + 1,
            _ if is_last => random - random % 3,
            _ => random,
        };
        killed += u64::from(life(&db, args, &mut state, &mut at, 5, random).await);
        done += 5;
        if is_last {
            break;
        }
    }
    assert!(killed > 0);
}

// Promises: wire-watch, wire-watch-durable, ops-watch.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_is_begun_again_beside_kills_builds_the_final_state() {
    lives(&["--journal-keep=1GiB", "--journal-size=1MiB"], 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_where_writes_are_synced_late() {
    lives(&["--journal-keep=1GiB", "--journal-size=1MiB", "--durability=interval=10ms"], 40).await;
}
