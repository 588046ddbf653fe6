//! WATCH: asking for one, and what comes of it.

use boltkv_protocol::{
    Change, ChangeKind, Changes, ErrorReply, Expect, Reply, Request, StreamRequest, Watch, WatchFrom, WatchPosition,
};

use super::Binary;
use super::binary::path;

pub fn watch(from: WatchFrom, bucket: &str, prefix: &'static str) -> Watch {
    Watch { from, path: path(bucket), prefix: prefix.into(), keys_only: false }
}

pub fn request(watch: Watch) -> Request {
    Request::Stream(StreamRequest::Watch(watch))
}

pub fn all(from: WatchFrom) -> Request {
    request(watch(from, "/", ""))
}

/// The next frame of a watch.
pub fn frame(client: &mut Binary) -> Result<Changes, ErrorReply> {
    let frame = client.frame();
    let has_more = frame.has_more();
    match Reply::decode(Expect::Watch, frame).unwrap() {
        Reply::Changes(changes) => {
            assert!(has_more, "a watch has no last frame");
            Ok(changes)
        }
        Reply::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Begins a watch; where it begins.
pub fn begin(client: &mut Binary, request: Request) -> WatchPosition {
    client.send_all(&[request]);
    let first = frame(client).unwrap();
    assert!(first.changes.is_empty() && first.time_ms == 0);
    first.position
}

/// The next transaction with changes, whole; in how many frames it came.
pub fn transaction(client: &mut Binary) -> (Changes, usize) {
    let (mut whole, mut frames) = (None::<Changes>, 0);
    loop {
        let next = frame(client).unwrap();
        if next.changes.is_empty() {
            assert!(whole.is_none(), "in the middle of a transaction");
            continue;
        }
        frames += 1;
        let is_whole = next.is_whole;
        match &mut whole {
            None => whole = Some(next),
            Some(whole) => {
                assert_eq!((whole.position, whole.time_ms), (next.position, next.time_ms));
                whole.changes.extend(next.changes);
            }
        }
        if is_whole {
            return (whole.unwrap(), frames);
        }
    }
}

/// Kind, path, key and value of each change.
pub fn told(changes: &Changes) -> Vec<(ChangeKind, String, &[u8], &[u8])> {
    changes
        .changes
        .iter()
        .map(|Change { kind, path, key, value }| (*kind, path.to_string(), &key[..], &value[..]))
        .collect()
}
