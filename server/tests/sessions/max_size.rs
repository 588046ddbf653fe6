//! A file that may not grow past a size: which writes are refused, and what goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{create, delete, delete_bucket, get, set};
use crate::common::{Binary, TestFile, TestServer};
use boltkv_protocol::{ErrorCode, Reply};
use boltkv_server::{Config, Listen, Server};
use boltkv_storage::{Durability, JournalOptions, Options};

const MAX: u64 = 2 << 20;

/// Fills the bucket until a write is refused; how many keys it has then.
fn fill(client: &mut Binary) -> u32 {
    for n in 0.. {
        match client.ask(&set("b", &n.to_string(), vec![7; 9000])) {
            Reply::Written { .. } => {}
            Reply::Error(error) => {
                assert_eq!(error.code, ErrorCode::NoSpace);
                assert!(error.message.contains(&MAX.to_string()), "{}", error.message);
                return n;
            }
            other => panic!("{other:?}"),
        }
    }
    unreachable!("there are more numbers than room")
}

// Promises: ops-max-size.
#[test]
fn a_full_file_takes_deletions_answers_reads_and_has_room_again() {
    let file = TestFile::new();
    // A checkpoint is not near by itself: what is freed comes back because it is wanted.
    let options = Options::new().page_size(4096).durability(Durability::Never).journal(JournalOptions::new());
    let options = options.max_size(MAX).max_size_reserve(MAX / 16);
    let server = TestServer::serve(options.clone().open(&file.path).unwrap(), |_| {});
    let mut client = server.binary();
    client.write(&create("b"));
    let keys = fill(&mut client);
    assert!(keys > 100, "{keys}");
    assert_eq!(client.value("b", "0").unwrap().len(), 9000);
    for n in 0..keys {
        // A value takes the place of one that is as long.
        client.write(&set("b", &n.to_string(), vec![8; 9000]));
    }
    let stats = server.text().ask_all("STATS");
    assert!(stats.contains(&format!("max_size {MAX}")), "{stats:?}");
    assert!(stats.contains(&"writable 1".to_owned()));
    for n in 0..keys {
        client.write(&delete("b", &n.to_string()));
    }
    let again = fill(&mut client);
    assert!(again >= keys * 9 / 10, "{again} after {keys}");
    client.write(&delete_bucket("b"));
    client.write(&create("b"));
    assert!(fill(&mut client) >= keys * 9 / 10);
    server.stop().unwrap();
    drop(options.open(&file.path).unwrap());
    assert!(file.path.metadata().unwrap().len() <= MAX);
}

#[test]
fn what_finds_no_room_beside_a_deletion_is_refused_alone() {
    let options = Options::new().page_size(4096).max_size(MAX).max_size_reserve(MAX / 16);
    let server = TestServer::serve(options.open_in_memory().unwrap(), |_| {});
    let mut client = server.binary();
    client.write(&create("b"));
    fill(&mut client);
    let requests = [set("b", "new", vec![7; 60_000]), delete("b", "0"), get("b", "1")];
    let ids = client.send_all(&requests);
    for _ in &ids {
        let frame = client.frame();
        let refused = ids[0] == frame.id;
        assert_eq!(frame.op, if refused { ErrorCode::NoSpace.to_u8() } else { 0 }, "{frame:?}");
    }
}

#[tokio::test]
async fn a_server_is_told_how_large_the_file_may_be() {
    let file = TestFile::new();
    let mut config = Config::for_file(&file.path);
    config.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
    config.max_size = Some(MAX);
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr().unwrap();
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Binary::connect(address);
        client.hello();
        client.write(&create("b"));
        client.ask_code(&set("b", "large", vec![7; 4 << 20]))
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async { drop(stopped.await) }));
    assert_eq!(client.await.unwrap(), ErrorCode::NoSpace);
    drop(stop);
    running.await.unwrap().unwrap();
}
