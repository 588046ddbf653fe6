//! A tree of maps whose keys have times, and what each request does to it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use boltkv_protocol::{ExpireCond, ExpireTo, Expiry, LowBound};

use super::*;

/// A bucket: what it holds, and when that expires.
pub(super) type Held = BTreeMap<String, (Node, Option<u64>)>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Value(String),
    Bucket(Held),
}

/// What came of a request.
#[derive(Debug, PartialEq)]
pub(super) enum Done {
    Ok,
    Number(i64),
    Flag(bool),
    Deleted(u64, bool),
    Failed(ErrorCode),
}

use Done::Failed;
use ErrorCode::{BucketExists, BucketNotFound, ConditionFailed, IncompatibleValue};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Model {
    pub(super) root: Held,
}

impl Model {
    /// Removes what has expired.
    pub(super) fn settle(&mut self, now: u64) {
        fn settle(held: &mut Held, now: u64) {
            held.retain(|_, (_, at)| at.is_none_or(|at| at > now));
            for (node, _) in held.values_mut() {
                if let Node::Bucket(held) = node {
                    settle(held, now);
                }
            }
        }
        settle(&mut self.root, now);
    }

    fn bucket(&mut self, path: &[&str]) -> Result<&mut Held, Done> {
        path.iter().try_fold(&mut self.root, |held, name| match held.get_mut(*name) {
            None => Err(Failed(BucketNotFound)),
            Some((Node::Value(_), _)) => Err(Failed(IncompatibleValue)),
            Some((Node::Bucket(held), _)) => Ok(held),
        })
    }

    fn value(held: &Held, key: &str) -> Result<Option<String>, Done> {
        match held.get(key) {
            None => Ok(None),
            Some((Node::Value(value), _)) => Ok(Some(value.clone())),
            Some((Node::Bucket(_), _)) => Err(Failed(IncompatibleValue)),
        }
    }

    /// What a single request does.
    pub(super) fn apply(&mut self, now: u64, request: &WriteRequest) -> Result<Done, Done> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match request {
            WriteRequest::Set { path, key, value, cond } => self.set(now, path, &text(key), &text(value), cond, None),
            WriteRequest::SetExpiring { path, key, value, cond, expiry } => {
                self.set(now, path, &text(key), &text(value), cond, Some(*expiry))
            }
            WriteRequest::Delete { path, key, cond } => {
                let held = self.bucket(&names(path))?;
                // A condition that asks nothing looks at nothing.
                if *cond != Cond::Always && !cond.holds(Self::value(held, &text(key))?.as_deref().map(str::as_bytes)) {
                    return Err(Failed(ConditionFailed));
                }
                Self::value(held, &text(key))?;
                Ok(Done::Flag(held.remove(&text(key)).is_some()))
            }
            WriteRequest::Increment { path, key, delta } => {
                let held = self.bucket(&names(path))?;
                let number = match Self::value(held, &text(key))? {
                    None => 0,
                    Some(value) => value.parse::<i64>().map_err(|_| Failed(IncompatibleValue))?,
                };
                let at = held.get(&text(key)).and_then(|(_, at)| *at);
                held.insert(text(key), (Node::Value((number + delta).to_string()), at));
                Ok(Done::Number(number + delta))
            }
            WriteRequest::Expire { path, key, to, cond } => self.expire(now, path, &text(key), *to, *cond),
            WriteRequest::DeleteRange { path, range, limit } => self.delete_range(path, range, *limit),
            WriteRequest::CreateBucket(path) => {
                let names = names(path);
                let (name, within) = names.split_last().unwrap();
                let held = self.bucket(within)?;
                match held.get(*name) {
                    Some((Node::Bucket(_), _)) => Err(Failed(BucketExists)),
                    Some(_) => Err(Failed(IncompatibleValue)),
                    None => {
                        held.insert((*name).to_owned(), (Node::Bucket(Held::new()), None));
                        Ok(Done::Ok)
                    }
                }
            }
            WriteRequest::CreateBucketIfMissing(path) => {
                let before = self.clone();
                let mut held = &mut self.root;
                for name in names(path) {
                    let entry = held.entry(name.to_owned()).or_insert((Node::Bucket(Held::new()), None));
                    let Node::Bucket(inner) = &mut entry.0 else {
                        *self = before;
                        return Err(Failed(IncompatibleValue));
                    };
                    held = inner;
                }
                Ok(Done::Ok)
            }
            WriteRequest::DeleteBucket(path) => self.take(path).map(|_| Done::Ok),
            WriteRequest::MoveBucket { path, to } => self.move_bucket(path, to),
            other => panic!("{other:?}"),
        }
    }

    fn set(
        &mut self,
        now: u64,
        path: &Path,
        key: &str,
        value: &str,
        cond: &Cond,
        expiry: Option<Expiry>,
    ) -> Result<Done, Done> {
        let held = self.bucket(&names(path))?;
        if *cond != Cond::Always && !cond.holds(Self::value(held, key)?.as_deref().map(str::as_bytes)) {
            return Err(Failed(ConditionFailed));
        }
        Self::value(held, key)?;
        let at = match expiry {
            None => None,
            Some(Expiry::Keep) => held.get(key).and_then(|(_, at)| *at),
            Some(Expiry::At(at)) => Some(at),
            Some(Expiry::In(ms)) => Some(now + ms),
        };
        held.insert(key.to_owned(), (Node::Value(value.to_owned()), at));
        self.settle(now);
        Ok(Done::Ok)
    }

    fn expire(&mut self, now: u64, path: &Path, key: &str, to: ExpireTo, cond: ExpireCond) -> Result<Done, Done> {
        let held = self.bucket(&names(path))?;
        let Some((_, at)) = held.get_mut(key) else { return Ok(Done::Flag(false)) };
        let to = match to {
            ExpireTo::Never => None,
            ExpireTo::At(at) => Some(at),
            ExpireTo::In(ms) => Some(now + ms),
        };
        if !cond.holds(*at, to) || (at.is_none() && to.is_none()) {
            return Ok(Done::Flag(false));
        }
        *at = to;
        self.settle(now);
        Ok(Done::Flag(true))
    }

    fn delete_range(&mut self, path: &Path, range: &KeyRange, limit: Option<NonZeroU64>) -> Result<Done, Done> {
        let held = self.bucket(&names(path))?;
        let LowBound::Included(low) = &range.low else { panic!("of another kind") };
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit.get()).unwrap());
        let keys: Vec<_> = held.keys().filter(|key| key.as_bytes() >= low).cloned().collect();
        let (gone, more) = (keys.iter().take(limit), keys.len() > limit);
        let gone: Vec<_> = gone.collect();
        if gone.iter().any(|key| matches!(held[*key].0, Node::Bucket(_))) {
            return Err(Failed(IncompatibleValue));
        }
        for key in &gone {
            held.remove(*key);
        }
        Ok(Done::Deleted(gone.len() as u64, more))
    }

    /// Takes a bucket away.
    fn take(&mut self, path: &Path) -> Result<(Node, Option<u64>), Done> {
        let names = names(path);
        self.bucket(&names)?;
        let (name, within) = names.split_last().unwrap();
        Ok(self.bucket(within)?.remove(*name).unwrap())
    }

    fn move_bucket(&mut self, path: &Path, to: &Path) -> Result<Done, Done> {
        if path == to {
            return Err(Failed(BucketExists));
        }
        let before = self.clone();
        let moved = self.take(path);
        let into = names(to);
        let (name, within) = into.split_last().unwrap();
        let done = moved.and_then(|moved| {
            if within.is_empty() && moved.1.is_some() {
                return Err(Failed(IncompatibleValue));
            }
            let held = self.bucket(within)?;
            match held.get(*name) {
                Some((Node::Bucket(_), _)) => return Err(Failed(BucketExists)),
                Some(_) => return Err(Failed(IncompatibleValue)),
                None => {}
            }
            held.insert((*name).to_owned(), moved);
            Ok(Done::Ok)
        });
        if done.is_err() {
            *self = before;
        }
        done
    }
}

fn names(path: &Path) -> Vec<&str> {
    path.names().map(|name| std::str::from_utf8(name).unwrap()).collect()
}
