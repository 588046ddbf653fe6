//! A shrinking on a connection that other threads would serve from now on: what it is told by, a clock among it, belongs to the
//! threads that it began on, and those may end when their connection leaves them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{create, ping, set};
use crate::common::{Binary, TestServer};
use boltkv_protocol::{Expect, Reply, Request, StreamRequest};
use boltkv_storage::{Db, Options};

/// Turns in a row that are certainly a habit, whatever of.
const TURNS: u32 = 200;
/// Requests that are certainly a burst.
const AT_ONCE: usize = 40;
/// Frames that a stream sends while there is nothing new to tell: a second lies between two of them.
const TICKS: usize = 2;

/// A database of which half is free, at its beginning.
fn half_empty() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("gone")?.put("large", vec![7; 8 << 20])).unwrap();
    db.update(|tx| {
        let mut kept = tx.create_bucket("kept")?;
        (0..4000_u32).try_for_each(|key| kept.put(key.to_be_bytes(), vec![8; 1000]))
    })
    .unwrap();
    db.update(|tx| tx.delete_bucket("gone")).unwrap();
    db
}

/// A connection on which a shrinking may be under way.
struct Client {
    client: Binary,
    shrinking: Option<u32>,
}

impl Client {
    fn write_alone(&mut self) {
        for _ in 0..TURNS {
            self.client.write(&set("b", "k", "v"));
        }
    }

    /// Sends so many PINGs at once, as often as a habit takes, and is answered; answers how many frames of the shrinking came in
    /// between.
    fn ping(&mut self, at_once: usize) -> usize {
        (0..TURNS).map(|_| self.ping_once(at_once)).sum()
    }

    fn ping_once(&mut self, at_once: usize) -> usize {
        let mut left = self.client.send_all(&vec![ping(b"x"); at_once]);
        let mut told = 0;
        while !left.is_empty() {
            let frame = self.client.frame();
            if Some(frame.id) == self.shrinking {
                assert!(frame.op == 0 && frame.has_more(), "it has ended: {frame:?}");
                told += 1;
            } else {
                left.retain(|id| *id != frame.id);
            }
        }
        told
    }

    fn begin(&mut self) {
        self.shrinking = Some(self.client.send_all(&[Request::Stream(StreamRequest::Shrink)])[0]);
        assert!(self.told().is_none(), "nothing can be moved yet");
    }

    /// What the next frame of the shrinking tells: its sizes before and after, if it is the last.
    fn told(&mut self) -> Option<(u64, u64)> {
        let frame = self.client.frame();
        assert_eq!(Some(frame.id), self.shrinking);
        match Reply::decode(Expect::Shrink, frame).unwrap() {
            Reply::Shrinking { .. } => None,
            Reply::Shrunk { before, after, .. } => Some((before, after)),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for frames that only the clock brings.
    fn tick(&mut self) {
        (0..TICKS).for_each(|_| assert_eq!(self.told(), None));
    }

    fn end(&mut self) {
        let (before, after) = (0..).find_map(|_| self.told()).unwrap();
        assert!(after < before, "{before} bytes, {after} now");
        self.shrinking = None;
    }
}

// Promises: wire-shrink.
#[test]
fn a_shrinking_is_told_of_to_its_end_whatever_its_client_sends_meanwhile() {
    type Sends = fn(&mut Client);
    let (bursts, singly): (Sends, Sends) = (|client| _ = client.ping(AT_ONCE), |client| _ = client.ping(1));
    // What the connection is served by when it begins, and what would have it served by others. The first has a thread of its
    // own, which would end.
    let cases: [[Sends; 2]; 4] =
        [[Client::write_alone, singly], [Client::write_alone, bursts], [singly, bursts], [bursts, singly]];
    for (number, [before, meanwhile]) in cases.into_iter().enumerate() {
        let server = TestServer::serve(half_empty(), |_| {});
        let mut client = Client { client: server.binary(), shrinking: None };
        client.client.write(&create("b"));
        before(&mut client);
        // While another one writes, nothing is moved: all that is told comes by the clock.
        let writing = server.db.begin_mut().unwrap();
        client.begin();
        meanwhile(&mut client);
        client.tick();
        drop(writing);
        client.end();
        // And then it may be handed over.
        meanwhile(&mut client);
        assert_eq!(client.client.ping(b"x"), "x", "case {number}");
        client.write_alone();
        server.assert_serving();
        assert!(server.db.check().unwrap().is_empty());
    }
}
