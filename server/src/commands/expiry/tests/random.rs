//! All requests in any order, with a clock that is set by hand, beside a tree of maps whose keys have times.

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::{ExpireCond, ExpireTo, Expiry, LowBound, Txn};
use proptest::prelude::*;

use super::model::Done::{self, Failed};
use super::model::{Held, Model, Node};
use super::*;

/// A step of a test.
#[derive(Debug, Clone)]
enum Step {
    /// These in one transaction of the writer's.
    Group(Vec<WriteRequest>),
    /// These as one transaction of a client's.
    Txn(Vec<WriteRequest>),
    Wait(u64),
    /// A step of removing what has expired.
    Reclaim,
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&["a", "b", "c", "d"][..]).prop_map(str::to_owned)
}

fn at() -> impl Strategy<Value = Path> {
    prop::collection::vec(name(), 1..4).prop_map(|names| Path::from_names(names).unwrap())
}

fn cond() -> impl Strategy<Value = Cond> {
    prop_oneof![
        6 => Just(Cond::Always),
        1 => Just(Cond::IfAbsent),
        1 => Just(Cond::IfPresent),
        1 => Just(Cond::IfEquals("1".into()))
    ]
}

fn ms() -> impl Strategy<Value = u64> {
    0_u64..30
}

fn request() -> impl Strategy<Value = WriteRequest> {
    let value = || prop::sample::select(&["1", "x"][..]);
    let expiry = prop_oneof![
        Just(Expiry::Keep),
        (0_u64..100).prop_map(Expiry::At),
        ms().prop_map(Expiry::In),
        ms().prop_map(Expiry::In)
    ];
    let to = prop_oneof![
        Just(ExpireTo::Never),
        (0_u64..100).prop_map(ExpireTo::At),
        ms().prop_map(ExpireTo::In),
        ms().prop_map(ExpireTo::In)
    ];
    let expire_cond = prop::sample::select(vec![
        ExpireCond::Always,
        ExpireCond::Always,
        ExpireCond::IfNone,
        ExpireCond::IfSome,
        ExpireCond::IfLater,
        ExpireCond::IfEarlier,
    ]);
    let at_key = || (at(), name());
    prop_oneof![
        2 => (at_key(), value(), cond()).prop_map(|((path, key), value, cond)| {
            WriteRequest::Set { path, key: key.into(), value: value.into(), cond }
        }),
        4 => (at_key(), value(), cond(), expiry).prop_map(|((path, key), value, cond, expiry)| {
            WriteRequest::SetExpiring { path, key: key.into(), value: value.into(), cond, expiry }
        }),
        5 => (at_key(), to, expire_cond).prop_map(|((path, key), to, cond)| {
            WriteRequest::Expire { path, key: key.into(), to, cond }
        }),
        2 => (at_key(), cond()).prop_map(|((path, key), cond)| WriteRequest::Delete { path, key: key.into(), cond }),
        1 => (at_key(), 0_i64..3).prop_map(|((path, key), delta)| {
            WriteRequest::Increment { path, key: key.into(), delta }
        }),
        1 => (at(), name(), 0_u64..4).prop_map(|(path, low, limit)| {
            let range = KeyRange { low: LowBound::Included(low.into()), high: Bound::Unbounded };
            WriteRequest::DeleteRange { path, range, limit: NonZeroU64::new(limit) }
        }),
        1 => at().prop_map(WriteRequest::CreateBucket),
        3 => at().prop_map(WriteRequest::CreateBucketIfMissing),
        1 => at().prop_map(WriteRequest::DeleteBucket),
        2 => (at(), at()).prop_map(|(path, to)| WriteRequest::MoveBucket { path, to }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(request(), 1..4).prop_map(Step::Group),
        2 => prop::collection::vec(request(), 1..4).prop_map(Step::Txn),
        3 => (0_u64..8).prop_map(Step::Wait),
        2 => Just(Step::Reclaim),
    ]
}

fn done(effect: Result<Effect, ErrorReply>) -> Done {
    match effect {
        Err(error) => Failed(error.code),
        Ok(Effect::Written | Effect::Unchanged) => Done::Ok,
        Ok(Effect::Number { value, .. }) => Done::Number(value),
        Ok(Effect::Deleted { existed }) => Done::Flag(existed),
        Ok(Effect::ExpirySet { changed }) => Done::Flag(changed),
        Ok(Effect::DeletedRange { deleted, more }) => Done::Deleted(deleted, more),
        Ok(other) => panic!("{other:?}"),
    }
}

/// Does requests in one transaction; what came of each.
fn group(db: &Db, now: u64, requests: Vec<WriteRequest>) -> Vec<Result<Effect, ErrorReply>> {
    let mut tx = db.begin_mut().unwrap();
    let mut timed = Timed::new(&mut tx, now);
    let requests = requests.into_iter().map(|request| Write::new(request, Asker::default()));
    let done = requests.map(|write| apply(&mut timed, &write, &room(), &WatchedKeys::default()).unwrap()).collect();
    tx.commit().unwrap();
    done
}

/// Everything that is to be seen.
fn seen(tx: &Arc<Tx>, now: u64, path: &Path) -> Held {
    let clock = Clock::by_hand(now);
    let time = |key: &str| {
        let request = ReadRequest::ExpiryTime { path: path.clone(), key: key.to_owned().into() };
        match crate::commands::answer_at(tx, &request, 1 << 20, &clock) {
            Reply::ExpiryTime { at, .. } => Some(at).filter(|at| *at != boltkv_protocol::NEVER),
            // At the top there are only buckets, and none expires.
            Reply::Error(error) if path.is_root() && error.code == ErrorCode::BucketNameRequired => None,
            reply => panic!("{key}: {reply:?}"),
        }
    };
    let walk = |reverse| {
        let options = boltkv_protocol::ScanOptions { reverse, ..Default::default() };
        let scan = Scan { path: path.clone(), range: KeyRange::ALL, options };
        let mut run = ScanRun::start(Arc::clone(tx), &clock, scan, false, 1 << 20).unwrap();
        let mut held = Vec::new();
        let progress = run.step(|entry| {
            let key = String::from_utf8(entry.key.to_vec()).unwrap();
            let node = match entry.kind {
                boltkv_protocol::EntryKind::Bucket => Node::Bucket(seen(tx, now, &path.child(&key).unwrap())),
                _ => Node::Value(String::from_utf8(entry.value.to_vec()).unwrap()),
            };
            let at = time(&key);
            held.push((key, (node, at)));
            ControlFlow::Continue(())
        });
        assert_eq!(progress.unwrap(), Progress::Done);
        held
    };
    let (held, mut backwards) = (walk(false), walk(true));
    backwards.reverse();
    assert_eq!(held, backwards);
    held.into_iter().collect()
}

proptest! {
    // Promises: ops-expiry-unseen.
    #[test]
    fn all_requests_do_what_they_do_to_a_map_whose_keys_have_times(steps in prop::collection::vec(step(), 1..60)) {
        let db = Options::new().open_in_memory().unwrap();
        let (mut model, mut now, mut backlog) = (Model::default(), 1, Backlog::default());
        for name in ["a", "b"] {
            write(&db, 0, WriteRequest::CreateBucketIfMissing(path(&format!("{name}/c/d")))).unwrap();
            model.apply(0, &WriteRequest::CreateBucketIfMissing(path(&format!("{name}/c/d")))).unwrap();
        }
        for step in steps {
            match step {
                Step::Wait(ms) => now += ms,
                Step::Reclaim => {
                    if backlog.is_empty() {
                        backlog = Backlog::gather(&db.begin().unwrap(), now).unwrap();
                    }
                    let mut tx = db.begin_mut().unwrap();
                    let stepped = backlog.step(&mut Timed::new(&mut tx, now)).unwrap();
                    tx.commit().unwrap();
                    backlog.committed(&stepped);
                }
                Step::Group(requests) => {
                    let expected = requests.iter().map(|request| {
                        model.settle(now);
                        model.apply(now, request).unwrap_or_else(|failed| failed)
                    });
                    let expected: Vec<_> = expected.collect();
                    let done = group(&db, now, requests.clone()).into_iter().map(done);
                    for ((done, expected), request) in done.zip(expected).zip(requests) {
                        // Which of the reasons not to move a bucket is told first is not said anywhere.
                        let is_move = matches!(request, WriteRequest::MoveBucket { .. });
                        if !(is_move && matches!((&done, &expected), (Failed(_), Failed(_)))) {
                            prop_assert_eq!(done, expected, "{:?}", request);
                        }
                    }
                }
                Step::Txn(requests) => {
                    let before = model.clone();
                    let expected = requests.iter().try_for_each(|request| {
                        model.settle(now);
                        model.apply(now, request).map(drop)
                    });
                    if expected.is_err() {
                        model = before;
                    }
                    let mut txn = Txn::builder();
                    for request in &requests {
                        txn.request(&request.clone().into()).unwrap();
                    }
                    let done = group(&db, now, vec![WriteRequest::Txn(txn.build())]).pop().unwrap();
                    match (done, expected) {
                        (Ok(_), Ok(())) | (Err(_), Err(_)) => {}
                        (done, expected) => prop_assert!(false, "{:?} {:?} {:?}", done, expected, requests),
                    }
                }
            }
            model.settle(now);
            let tx = Arc::new(db.begin().unwrap());
            look_over(&tx);
            prop_assert_eq!(seen(&tx, now, &Path::ROOT), model.root.clone());
        }
        reclaim(&db, u64::MAX - 1);
        let tx = db.begin().unwrap();
        prop_assert_eq!(look_over(&tx), (0, 0), "all that could expire has");
        prop_assert!(tx.bucket(OWN).is_err() && tx.check().unwrap().is_empty());
        model.settle(u64::MAX - 1);
        prop_assert_eq!(seen(&Arc::new(tx), now, &Path::ROOT), model.root);

    }
}
