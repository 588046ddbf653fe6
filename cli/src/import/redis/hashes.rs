//! Hashes, which are buckets within. A small one is read at once, with others; a large one streams.

use boltkv_client::Path;
use boltkv_protocol::resp::names::said;
use boltkv_protocol::{Cond, WriteRequest};
use bytes::Bytes;

use super::copy::{Copy, Key, as_stored, is_holdable, page};
use super::reply::Reply;
use super::source::Commands;
use super::target::{Put, There, What};
use crate::failure::{Failure, Outcome};
use crate::import::{BATCH, BATCH_BYTES};

/// So many fields are asked for first; those of most hashes are all that it takes.
const FIRST: u64 = 500;
/// What else is left out says so.
const FIELDS: &str = "with fields that are too long";

/// A hash that is being copied.
struct Hash {
    key: Key,
    path: Path,
    /// What begins it, until there is a field to begin it for.
    begin: Option<Put>,
    /// There was nothing of it before.
    is_new: bool,
    state: State,
    left_out: bool,
}

/// What was put of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    /// Fields; its key is counted at the end.
    Changed,
    /// What begins it, too: its key is counted when that is done.
    Begun,
}

impl Copy {
    /// Copies hashes.
    pub(super) async fn hashes(&mut self, keys: Vec<Key>) -> Outcome {
        let lengths = Commands::of_each("HLEN", keys.iter().map(|key| &key.name));
        let lengths = self.numbers(&lengths, "HLEN").await?;
        let (mut group, mut fields) = (Vec::new(), 0);
        for (key, len) in keys.into_iter().zip(lengths) {
            group.push(key);
            fields += len.clamp(1, FIRST);
            if fields >= BATCH as u64 {
                self.hash_group(std::mem::take(&mut group)).await?;
                fields = 0;
            }
        }
        self.hash_group(group).await
    }

    async fn hash_group(&mut self, keys: Vec<Key>) -> Outcome {
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        let stored: Vec<_> = keys.iter().map(|key| key.stored.clone()).collect();
        let mut commands = Commands::default();
        for name in &names {
            commands.add(&[b"HSCAN", name, b"0", b"COUNT", FIRST.to_string().as_bytes()]);
        }
        let (replies, there) = tokio::try_join!(self.source.ask(&commands), self.target.look(&self.path, &stored))?;
        for ((key, reply), there) in keys.into_iter().zip(replies).zip(there) {
            match reply {
                // It has become something else meanwhile.
                Reply::Refused(_) => self.tally.gone += 1,
                reply => {
                    let first = page(reply).ok_or_else(|| self.source.unexpected("HSCAN"))?;
                    self.hash(key, there, first).await?;
                }
            }
        }
        Ok(())
    }

    async fn hash(&mut self, key: Key, there: There, first: (Bytes, Vec<Bytes>)) -> Outcome {
        let (mut cursor, mut found) = first;
        if found.is_empty() && cursor.as_ref() == b"0" {
            self.tally.gone += 1;
            return Ok(());
        }
        if self.if_absent && matches!(there, There::Value(..)) {
            self.is_kept();
            return Ok(());
        }
        self.tally.timed += u64::from(key.at.is_some());
        let mut hash = self.begin_hash(key, &there)?;
        let mut step = FIRST;
        loop {
            let bytes: u64 = found.iter().map(|word| word.len() as u64).sum();
            self.fields(&mut hash, found).await?;
            if cursor.as_ref() == b"0" {
                break;
            }
            step = next_step(step, bytes);
            let count = step.to_string();
            let words: [&[u8]; 5] = [b"HSCAN", &hash.key.name, &cursor, b"COUNT", count.as_bytes()];
            let reply = self.source.one(&words).await?;
            (cursor, found) = page(reply).ok_or_else(|| self.source.unexpected("HSCAN"))?;
        }
        if !hash.is_new && !self.if_absent {
            self.prune(&mut hash).await?;
        }
        self.end_hash(hash).await
    }

    /// What there is to be done before the fields.
    fn begin_hash(&self, key: Key, there: &There) -> Outcome<Hash> {
        let path = self.path.child(&key.stored).map_err(|error| Failure::not_done(error.to_string()))?;
        let mut requests = Vec::new();
        let is_new = !matches!(there, There::Bucket(_));
        match there {
            There::Bucket(at) => {
                if !self.if_absent && !self.is_same_time(*at, key.at) {
                    requests.push(self.expire(&key));
                }
            }
            There::Value(..) | There::Nothing => {
                if let There::Value(..) = there {
                    let (path, key) = (self.path.clone(), key.stored.clone());
                    requests.push(WriteRequest::Delete { path, key, cond: Cond::Always });
                }
                requests.push(WriteRequest::CreateBucketIfMissing(path.clone()));
                // From the first on, so that one that is interrupted goes when it should.
                requests.extend(key.at.map(|_| self.expire(&key)));
            }
        }
        let begin = Put { key: key.name.clone(), what: What::Hash, requests };
        let begin = (!begin.requests.is_empty()).then_some(begin);
        Ok(Hash { key, path, begin, is_new, state: State::Same, left_out: false })
    }

    /// Puts fields with their values, those that are not there yet.
    async fn fields(&mut self, hash: &mut Hash, found: Vec<Bytes>) -> Outcome {
        let mut pairs = Vec::with_capacity(found.len() / 2);
        let mut found = found.into_iter();
        while let (Some(field), Some(value)) = (found.next(), found.next()) {
            if is_holdable(&field) {
                pairs.push((as_stored(&field), value));
            } else if !std::mem::replace(&mut hash.left_out, true) {
                self.tally.leave_out_in_part(FIELDS, &hash.key.name);
            }
        }
        let fields: Vec<_> = pairs.iter().map(|(field, _)| field.clone()).collect();
        let old = if hash.is_new { vec![None; pairs.len()] } else { self.target.values(&hash.path, &fields).await? };
        for ((field, value), old) in pairs.into_iter().zip(old) {
            if old.as_ref().is_some_and(|old| *old == value || self.if_absent) {
                continue;
            }
            if let Some(begin) = hash.begin.take() {
                hash.state = State::Begun;
                self.put(begin).await?;
            }
            let cond = if self.if_absent && !hash.is_new { Cond::IfAbsent } else { Cond::Always };
            let request = WriteRequest::Set { path: hash.path.clone(), key: field, value, cond };
            let put = Put { key: hash.key.name.clone(), what: What::Field, requests: vec![request] };
            hash.change();
            self.put(put).await?;
        }
        Ok(())
    }

    /// Removes fields that the Redis does not have, where the server has more of them.
    async fn prune(&mut self, hash: &mut Hash) -> Outcome {
        self.flush().await?;
        let name = hash.key.name.clone();
        let len = self.numbers(&Commands::of_each("HLEN", [&name]), "HLEN").await?;
        let len = len.first().copied().unwrap_or(0);
        if len == 0 || self.target.count(&hash.path).await? <= len {
            return Ok(());
        }
        let mut entries = self.target.bucket(&hash.path).scan().keys_only().stream().await?;
        let mut fields: Vec<Bytes> = Vec::new();
        loop {
            let entry = entries.next().await.transpose()?;
            let is_last = entry.is_none();
            fields.extend(entry.map(|entry| Bytes::copy_from_slice(&entry.key)));
            if fields.len() >= BATCH || is_last {
                self.prune_fields(hash, &std::mem::take(&mut fields)).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn prune_fields(&mut self, hash: &mut Hash, fields: &[Bytes]) -> Outcome {
        let mut commands = Commands::default();
        for field in fields {
            commands.add(&[b"HEXISTS", &hash.key.name, said(field)]);
        }
        let replies = self.source.ask(&commands).await?;
        for (field, _) in fields.iter().zip(replies).filter(|(_, reply)| *reply == Reply::Number(0)) {
            let (path, key) = (hash.path.clone(), field.clone());
            let request = WriteRequest::Delete { path, key, cond: Cond::Always };
            let put = Put { key: hash.key.name.clone(), what: What::Field, requests: vec![request] };
            hash.change();
            self.put(put).await?;
        }
        Ok(())
    }

    async fn end_hash(&mut self, mut hash: Hash) -> Outcome {
        // Its fields are there, and only its time is not.
        if let Some(begin) = hash.begin.take().filter(|_| !hash.is_new) {
            return self.put(begin).await;
        }
        match hash.state {
            State::Begun => {}
            State::Changed => self.is_put(),
            State::Same => self.is_there(),
        }
        Ok(())
    }
}

impl Hash {
    fn change(&mut self) {
        if self.state == State::Same {
            self.state = State::Changed;
        }
    }
}

/// How many fields are asked for next: as many as have about the bytes of a transaction.
const fn next_step(step: u64, bytes: u64) -> u64 {
    const MOST: u64 = 10_000;
    if bytes > 2 * BATCH_BYTES {
        if step > 1 { step / 2 } else { 1 }
    } else if bytes < BATCH_BYTES / 2 && step < MOST {
        step * 2
    } else {
        step
    }
}
