//! What holds for any bytes: nothing panics, and what is written reads back the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod generate;

use std::num::NonZeroU64;
use std::ops::{Bound, RangeBounds};

use boltkv_protocol::{
    Change, ChangeKind, Changes, Cond, Entry, EntryKind, ErrorCode, ErrorReply, Expect, ExpireCond, ExpireTo, Expiry,
    Frame, FrameCodec, Hello, KeyRange, LowBound, MAX_FRAME_LIMIT, OperatorRequest, Path, ReadRequest, Reply, Request,
    Scan, ScanMode, ScanOptions, SessionRequest, SnapshotRead, SnapshotRequest, StreamRequest, Txn, TxnResultsWriter,
    Watch, WatchFrom, WatchPosition, WriteRequest,
};
use bytes::{Bytes, BytesMut};
use generate::{awkward, bytes, feed};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio_util::codec::{Decoder as _, Encoder as _};

fn path() -> impl Strategy<Value = Path> {
    vec(awkward(), 0..4).prop_map(|names| Path::from_names(names).unwrap())
}

fn cond() -> impl Strategy<Value = Cond> {
    prop_oneof![Just(Cond::Always), Just(Cond::IfAbsent), Just(Cond::IfPresent), bytes().prop_map(Cond::IfEquals)]
}

fn expiry() -> impl Strategy<Value = Expiry> {
    prop_oneof![Just(Expiry::Keep), any::<u64>().prop_map(Expiry::At), any::<u64>().prop_map(Expiry::In)]
}

fn expire() -> impl Strategy<Value = (ExpireTo, ExpireCond)> {
    let to =
        prop_oneof![Just(ExpireTo::Never), any::<u64>().prop_map(ExpireTo::At), any::<u64>().prop_map(ExpireTo::In)];
    let conds =
        [ExpireCond::Always, ExpireCond::IfNone, ExpireCond::IfSome, ExpireCond::IfLater, ExpireCond::IfEarlier];
    (to, prop::sample::select(conds.to_vec()))
}

fn about_time() -> impl Strategy<Value = Request> {
    prop_oneof![
        (path(), bytes(), bytes(), cond(), expiry()).prop_map(|(path, key, value, cond, expiry)| {
            WriteRequest::SetExpiring { path, key, value, cond, expiry }.into()
        }),
        (path(), bytes(), expire())
            .prop_map(|(path, key, (to, cond))| WriteRequest::Expire { path, key, to, cond }.into()),
        (path(), bytes()).prop_map(|(path, key)| ReadRequest::ExpiryTime { path, key }.into()),
    ]
}

fn range() -> impl Strategy<Value = KeyRange> {
    let low = prop_oneof![
        Just(LowBound::Unbounded),
        bytes().prop_map(LowBound::Included),
        bytes().prop_map(LowBound::Excluded),
        bytes().prop_map(LowBound::Prefix)
    ];
    let high =
        prop_oneof![Just(Bound::Unbounded), bytes().prop_map(Bound::Included), bytes().prop_map(Bound::Excluded)];
    (low, high).prop_map(|(low, high)| KeyRange { low, high })
}

fn scan() -> impl Strategy<Value = Scan> {
    let mode = prop_oneof![Just(ScanMode::Entries), Just(ScanMode::Keys), Just(ScanMode::Count)];
    let options = (any::<bool>(), mode, any::<u64>()).prop_map(|(reverse, mode, limit)| ScanOptions {
        reverse,
        mode,
        limit: NonZeroU64::new(limit),
    });
    (path(), range(), options).prop_map(|(path, range, options)| Scan { path, range, options })
}

fn operator() -> impl Strategy<Value = OperatorRequest> {
    prop_oneof![
        any::<u64>().prop_map(|after| OperatorRequest::ListClients { after }),
        any::<u64>().prop_map(|client| OperatorRequest::KillClient { client }),
        any::<(u32, u64)>().prop_map(|(most, before)| OperatorRequest::SlowLog { most, before }),
        Just(OperatorRequest::ResetSlowLog),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let hello = (any::<[u8; 2]>(), any::<u32>(), bytes(), bytes()).prop_map(
        |([min_version, max_version], features, client, token)| {
            Request::Session(SessionRequest::Hello(Hello {
                min_version,
                max_version,
                features,
                token: token.into(),
                ..Hello::new(client)
            }))
        },
    );
    prop_oneof![
        hello,
        bytes().prop_map(|bytes| ReadRequest::Ping(bytes).into()),
        (path(), bytes()).prop_map(|(path, key)| Request::Read(ReadRequest::Get { path, key })),
        (path(), bytes(), bytes(), cond()).prop_map(|(path, key, value, cond)| Request::Write(WriteRequest::Set {
            path,
            key,
            value,
            cond
        })),
        (path(), bytes(), cond()).prop_map(|(path, key, cond)| Request::Write(WriteRequest::Delete {
            path,
            key,
            cond
        })),
        (path(), bytes(), any::<i64>())
            .prop_map(|(path, key, delta)| WriteRequest::Increment { path, key, delta }.into()),
        about_time(),
        (path(), range(), any::<u64>()).prop_map(|(path, range, limit)| {
            WriteRequest::DeleteRange { path, range, limit: NonZeroU64::new(limit) }.into()
        }),
        path().prop_map(|path| WriteRequest::NextSequence(path).into()),
        (path(), any::<u64>()).prop_map(|(path, sequence)| WriteRequest::SetSequence { path, sequence }.into()),
        (path(), path()).prop_map(|(path, to)| WriteRequest::MoveBucket { path, to }.into()),
        Just(Request::Session(SessionRequest::Stats)),
        operator().prop_map(Request::from),
        any::<u32>().prop_map(|lease_ms| SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms }).into()),
        any::<u64>().prop_map(|snapshot| SessionRequest::Snapshot(SnapshotRequest::Close { snapshot }).into()),
        (any::<u64>(), path(), bytes()).prop_map(|(snapshot, path, key)| {
            Request::OfSnapshot { snapshot, read: SnapshotRead::Read(ReadRequest::Get { path, key }) }
        }),
        (any::<u64>(), scan()).prop_map(|(snapshot, scan)| {
            Request::OfSnapshot { snapshot, read: SnapshotRead::Stream(StreamRequest::Scan(scan)) }
        }),
        (any::<u64>(), path()).prop_map(|(snapshot, path)| {
            Request::OfSnapshot { snapshot, read: SnapshotRead::Stream(StreamRequest::BucketStat(path)) }
        }),
        path().prop_map(|path| Request::Stream(StreamRequest::BucketStat(path))),
        path().prop_map(|path| Request::Read(ReadRequest::Sequence(path))),
        path().prop_map(|path| Request::Write(WriteRequest::CreateBucket(path))),
        path().prop_map(|path| Request::Write(WriteRequest::CreateBucketIfMissing(path))),
        path().prop_map(|path| Request::Write(WriteRequest::DeleteBucket(path))),
        scan().prop_map(|scan| Request::Stream(StreamRequest::ListBuckets(scan))),
        scan().prop_map(|scan| StreamRequest::Scan(scan).into()),
        watch(),
        any::<[u32; 2]>().prop_map(|[stream, bytes]| Request::Session(SessionRequest::Credit { stream, bytes })),
        any::<u32>().prop_map(|stream| Request::Session(SessionRequest::Cancel { stream })),
    ]
}

/// Requests as one transaction, those that can be.
fn txn() -> impl Strategy<Value = Request> {
    (vec((path(), bytes(), cond()), 0..3), vec(request(), 0..5)).prop_map(|(conditions, requests)| {
        let mut txn = Txn::builder();
        for (path, key, cond) in conditions {
            txn.condition(&path, &key, &cond).unwrap();
        }
        let added = requests.iter().filter(|request| txn.request(request).is_ok()).count();
        assert_eq!(added, txn.requests());
        txn.build().into()
    })
}

/// The replies to a transaction's requests.
fn results() -> impl Strategy<Value = (Expect, Reply)> {
    (any::<u64>(), vec(one_reply(), 0..5)).prop_map(|(txid, replies)| {
        let mut results = TxnResultsWriter::default();
        for (_, reply) in &replies {
            results.push(reply).unwrap();
        }
        let reply = results.finish(txid);
        let Reply::Txn { results, .. } = &reply else { panic!("{reply:?}") };
        let read: Vec<_> = results.replies(replies.iter().map(|(expect, _)| *expect)).map(Result::unwrap).collect();
        let renumbered = replies.into_iter().map(|(_, reply)| match reply {
            Reply::Written { .. } => Reply::Written { txid },
            Reply::Deleted { existed, .. } => Reply::Deleted { txid, existed },
            Reply::Number { value, .. } => Reply::Number { txid, value },
            Reply::Sequence { sequence, .. } => Reply::Sequence { txid, sequence },
            Reply::DeletedRange { deleted, more, .. } => Reply::DeletedRange { txid, deleted, more },
            other => other,
        });
        assert_eq!(read, renumbered.collect::<Vec<_>>());
        (Expect::Txn, reply)
    })
}

fn reply() -> impl Strategy<Value = (Expect, Reply)> {
    let piece = bytes().prop_map(|piece| (Expect::Backup, Reply::Piece(piece)));
    let end = any::<(u64, u32)>().prop_map(|(total, crc32c)| (Expect::Backup, Reply::BackedUp { total, crc32c }));
    let shrinking = any::<[u64; 2]>().prop_map(|[moved, left]| (Expect::Shrink, Reply::Shrinking { moved, left }));
    let shrunk =
        any::<[u64; 3]>().prop_map(|[before, after, moved]| (Expect::Shrink, Reply::Shrunk { before, after, moved }));
    prop_oneof![4 => one_reply(), 1 => results(), 1 => piece, 1 => end, 1 => shrinking, 1 => shrunk, 1 => changes()]
}

fn changes() -> impl Strategy<Value = (Expect, Reply)> {
    let kind = prop_oneof![
        Just(ChangeKind::Put),
        Just(ChangeKind::PutTooLarge),
        Just(ChangeKind::Deleted),
        Just(ChangeKind::RangeDeleted),
        Just(ChangeKind::BucketCreated),
        Just(ChangeKind::BucketDeleted),
        Just(ChangeKind::BucketMoved),
        Just(ChangeKind::Sequence),
    ];
    let change =
        (kind, path(), bytes(), bytes()).prop_map(|(kind, path, key, value)| Change { kind, path, key, value });
    (any::<[u64; 3]>(), any::<bool>(), vec(change, 0..5)).prop_map(|([epoch, txid, time_ms], is_whole, changes)| {
        let position = WatchPosition { epoch, txid };
        (Expect::Watch, Reply::Changes(Changes { position, time_ms, is_whole, changes }))
    })
}

fn watch() -> impl Strategy<Value = Request> {
    let position = any::<[u64; 2]>().prop_map(|[epoch, txid]| WatchFrom::Position(WatchPosition { epoch, txid }));
    let from = prop_oneof![Just(WatchFrom::Now), Just(WatchFrom::Oldest), position];
    (from, path(), bytes(), any::<bool>()).prop_map(|(from, path, prefix, keys_only)| {
        StreamRequest::Watch(Watch { from, path, prefix, keys_only }).into()
    })
}

fn one_reply() -> impl Strategy<Value = (Expect, Reply)> {
    let kind = prop_oneof![Just(EntryKind::Value), Just(EntryKind::Bucket), Just(EntryKind::TooLarge)];
    let entry = (kind, bytes(), bytes()).prop_map(|(kind, key, value)| Entry { kind, key, value });
    let error = (1..=u8::MAX, ".{0,20}", bytes()).prop_map(|(code, message, detail)| ErrorReply {
        code: ErrorCode::from_u8(code).unwrap(),
        message: message.into(),
        detail,
    });
    prop_oneof![
        bytes().prop_map(|pong| (Expect::Pong, Reply::Pong(pong))),
        bytes().prop_map(|value| (Expect::Value, Reply::Value(value))),
        any::<u64>().prop_map(|txid| (Expect::Written, Reply::Written { txid })),
        any::<(u64, bool)>().prop_map(|(txid, existed)| (Expect::Deleted, Reply::Deleted { txid, existed })),
        any::<(u64, i64)>().prop_map(|(txid, value)| (Expect::Number, Reply::Number { txid, value })),
        any::<[u64; 2]>().prop_map(|[txid, sequence]| (Expect::Sequence, Reply::Sequence { txid, sequence })),
        any::<(u64, u64, bool)>()
            .prop_map(|(txid, deleted, more)| (Expect::DeletedRange, Reply::DeletedRange { txid, deleted, more })),
        vec((bytes(), bytes()), 0..5).prop_map(|figures| (Expect::Stats, Reply::Stats(figures))),
        vec(vec((bytes(), bytes()), 0..3), 0..4).prop_map(|rows| (Expect::Rows, Reply::Rows(rows))),
        vec(entry, 0..5).prop_map(|entries| (Expect::Entries, Reply::Entries(entries))),
        any::<u64>().prop_map(|count| (Expect::Count, Reply::Count(count))),
        any::<(u64, u64, u32)>()
            .prop_map(|(id, txid, lease_ms)| (Expect::Snapshot, Reply::Snapshot { id, txid, lease_ms })),
        Just((Expect::Closed, Reply::Closed)),
        error.prop_map(|error| (Expect::Value, Reply::Error(error))),
    ]
}

fn expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        Just(Expect::Hello),
        Just(Expect::Pong),
        Just(Expect::Value),
        Just(Expect::Written),
        Just(Expect::Deleted),
        Just(Expect::Entries),
        Just(Expect::Count),
        Just(Expect::Number),
        Just(Expect::Sequence),
        Just(Expect::DeletedRange),
        Just(Expect::Stats),
        Just(Expect::Rows),
        Just(Expect::Txn),
        Just(Expect::Backup),
        Just(Expect::Snapshot),
        Just(Expect::Closed),
        Just(Expect::Shrink),
        Just(Expect::Watch),
    ]
}

proptest! {
    #[test]
    fn requests_read_back_as_they_were_written(
        requests in vec((1..=u32::MAX, prop_oneof![4 => request(), 1 => txn()]), 1..8),
        step in 1_usize..64,
    ) {
        let mut wire = BytesMut::new();
        for (id, request) in &requests {
            request.encode(*id, &mut wire).unwrap();
        }
        let frames = feed(&mut FrameCodec::default(), &wire, step).unwrap();
        let ids: Vec<_> = frames.iter().map(|frame| frame.id).collect();
        let read: Result<Vec<_>, _> = frames.into_iter().map(Request::decode).collect();
        prop_assert_eq!((ids, read.unwrap()), requests.into_iter().unzip());
    }

    #[test]
    fn replies_read_back_as_they_were_written((expect, reply) in reply(), id in any::<u32>()) {
        let mut wire = BytesMut::new();
        reply.encode(id, &mut wire).unwrap();
        let frame = FrameCodec::default().decode(&mut wire).unwrap().expect("a whole frame");
        prop_assert_eq!(frame.id, id);
        prop_assert_eq!(Reply::decode(expect, frame), Ok(reply));
    }

    #[test]
    fn frames_read_back_as_they_were_written(
        frames in vec((any::<(u32, u8, u8)>(), vec(any::<u8>(), 0..300)), 0..8),
        step in 1_usize..500,
    ) {
        let frames: Vec<_> = frames
            .into_iter()
            .map(|((id, op, flags), body)| Frame { id, op, flags, body: body.into() })
            .collect();
        let mut codec = FrameCodec::default();
        let mut wire = BytesMut::new();
        for frame in &frames {
            codec.encode(frame.clone(), &mut wire).unwrap();
        }
        prop_assert_eq!(feed(&mut codec, &wire, step).unwrap(), frames);
    }

    #[test]
    fn garbage_never_panics_the_frame_codec(
        stream in vec(any::<u8>(), 0..300),
        step in 1_usize..64,
        limit in 0..=MAX_FRAME_LIMIT,
    ) {
        if let Ok(frames) = feed(&mut FrameCodec::new(limit), &stream, step) {
            prop_assert!(frames.len() * 10 <= stream.len());
        }
    }

    #[test]
    fn garbage_bodies_never_panic(
        op in prop_oneof![any::<u8>(), Just(0x01), Just(0x10), Just(0x11), Just(0x12), Just(0x13), Just(0x20), Just(0x30), Just(0x31), Just(0x40)],
        body in vec(prop_oneof![0_u8..4, any::<u8>()], 0..64),
        expect in expect(),
    ) {
        let frame = Frame { id: 1, op, flags: 0, body: body.into() };
        if let Ok(request) = Request::decode(frame.clone()) {
            prop_assert_eq!(request.op() as u8, op);
        }
        let reply = Reply::decode(expect, Frame { flags: 0x80, ..frame });
        if let Ok(Reply::Error(error)) = reply {
            prop_assert_eq!(error.code.to_u8(), op);
        }
    }

    #[test]
    fn plain_bounds_cover_the_same_keys_as_the_range(range in range(), key in vec(any::<u8>(), 0..4)) {
        let within_low = match &range.low {
            LowBound::Unbounded => true,
            LowBound::Included(low) => key >= *low,
            LowBound::Excluded(low) => key > *low,
            LowBound::Prefix(prefix) => key.starts_with(prefix),
        };
        let key = Bytes::from(key);
        let within_high = (Bound::Unbounded, range.high.clone()).contains(&key);
        prop_assert_eq!(range.into_bounds().contains(&key), within_low && within_high);
    }
}
