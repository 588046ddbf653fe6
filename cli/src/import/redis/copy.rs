//! A database of the Redis, some keys at a time, until SCAN has told of all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use boltkv_client::Path;
use boltkv_protocol::resp::names::EMPTY;
use boltkv_protocol::{Cond, ExpireCond, ExpireTo, Expiry, WriteRequest};
use boltkv_storage::MAX_KEY_SIZE;
use bytes::Bytes;

use super::reply::Reply;
use super::report::Tally;
use super::source::{Commands, Source};
use super::target::{Fate, Put, Target, There, What};
use crate::failure::{Failure, Outcome};
use crate::file::Progress;
use crate::import::{BATCH, BATCH_BYTES};

/// How far two times may be apart that are the same, in milliseconds, where a Redis tells only how long a key has still: before
/// version 7.
const SAME_TIME: u64 = 2_000;

/// A copy under way.
pub(super) struct Copy {
    pub(super) source: Source,
    pub(super) target: Target,
    /// Nothing that is there is changed.
    pub(super) if_absent: bool,
    /// Whether the Redis tells when a key expires, and not only how long it has.
    exact: bool,
    /// The bucket of the database.
    pub(super) path: Path,
    pub(super) tally: Tally,
    /// What is still to be put, and its bytes.
    pending: Vec<Put>,
    pending_bytes: u64,
    /// Keys that are done, for who interrupts it.
    done: Arc<AtomicU64>,
}

/// A key of the Redis.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// As the Redis has it,
    pub(super) name: Bytes,
    /// and as it is called in the file.
    pub(super) stored: Bytes,
    /// When it expires, in milliseconds since 1970.
    pub(super) at: Option<u64>,
}

impl Copy {
    pub(super) fn new(source: Source, target: Target, if_absent: bool, done: Arc<AtomicU64>) -> Self {
        let (path, tally) = (Path::ROOT, Tally::new(0, &Path::ROOT));
        Self { source, target, if_absent, exact: true, path, tally, pending: Vec::new(), pending_bytes: 0, done }
    }

    /// Finds out what the Redis can tell.
    pub(super) async fn begin(&mut self) -> Outcome {
        let mut commands = Commands::default();
        commands.add(&[b"PEXPIRETIME", b"0"]);
        match self.source.ask(&commands).await?.pop() {
            Some(Reply::Number(_)) => Ok(()),
            Some(Reply::Refused(why)) if why.starts_with("NO") => Err(self.source.refused("PEXPIRETIME", &why)),
            Some(Reply::Refused(_)) => {
                self.exact = false;
                Ok(())
            }
            _ => Err(self.source.unexpected("PEXPIRETIME")),
        }
    }

    /// Copies the database that is selected; answers how it fared.
    pub(super) async fn database(&mut self, number: u32) -> Outcome<Tally> {
        let name = if number == 0 { "default".to_owned() } else { format!("db{number}") };
        self.path = Path::from_names([name]).map_err(|error| Failure::not_done(error.to_string()))?;
        self.tally = Tally::new(number, &self.path);
        let size = self.source.size().await?;
        let progress = Progress::of_keys(size);
        if size > 0 {
            self.target.create(&self.path).await?;
        }
        let mut cursor = Bytes::from_static(b"0");
        loop {
            let (next, names) = self.scan(&cursor).await?;
            let count = names.len() as u64;
            self.keys(names).await?;
            progress.advance(count);
            if next.as_ref() == b"0" {
                break;
            }
            cursor = next;
        }
        self.flush().await?;
        self.verify(number).await?;
        Ok(std::mem::replace(&mut self.tally, Tally::new(number, &self.path)))
    }

    /// Compares how many keys there are on both sides.
    async fn verify(&mut self, number: u32) -> Outcome {
        let source = self.source.size().await?;
        let target = self.target.count(&self.path).await?;
        let left_out = self.tally.left_out_whole();
        self.tally.verify(source, target, left_out, 0);
        if !self.tally.complete {
            // Keys that have expired are counted until they are removed, by a replica for long.
            let timed = self.source.timed(number).await?;
            self.tally.verify(source, target, left_out, timed);
        }
        Ok(())
    }

    /// The next keys, and where SCAN goes on.
    async fn scan(&mut self, cursor: &[u8]) -> Outcome<(Bytes, Vec<Bytes>)> {
        let reply = self.source.one(&[b"SCAN", cursor, b"COUNT", BATCH.to_string().as_bytes()]).await?;
        page(reply).ok_or_else(|| self.source.unexpected("SCAN"))
    }

    /// Copies these keys, each by its type.
    async fn keys(&mut self, mut names: Vec<Bytes>) -> Outcome {
        // SCAN may tell of one twice, and in order they lie closer together where they are put.
        names.sort_unstable();
        names.dedup();
        let (holdable, rest): (Vec<_>, Vec<_>) = names.into_iter().partition(is_holdable);
        for name in &rest {
            self.tally.leave_out("keys that are too long", name);
        }
        let time = if self.exact { "PEXPIRETIME" } else { "PTTL" };
        let mut commands = Commands::default();
        for name in &holdable {
            commands.add(&[b"TYPE", name]);
            commands.add(&[time.as_bytes(), name]);
        }
        let now = if self.exact { 0 } else { self.source.now().await? };
        let replies = self.source.ask(&commands).await?;
        let (mut strings, mut hashes) = (Vec::new(), Vec::new());
        for (name, replies) in holdable.into_iter().zip(replies.chunks(2)) {
            let [Reply::Word(kind), Reply::Number(time)] = replies else {
                return Err(self.refusal(replies, "TYPE"));
            };
            // Less than nothing is never, or a key that is gone.
            let at = u64::try_from(*time).ok().map(|time| now.saturating_add(time));
            let key = Key { stored: as_stored(&name), name, at };
            match kind.as_str() {
                "string" => strings.push(key),
                "hash" => hashes.push(key),
                "none" => self.tally.gone += 1,
                kind => self.tally.leave_out(&format!("of type {kind}"), &key.name),
            }
        }
        self.strings(strings).await?;
        self.hashes(hashes).await
    }

    /// Copies strings, so many at a time as are not too long together.
    async fn strings(&mut self, keys: Vec<Key>) -> Outcome {
        let lengths = Commands::of_each("STRLEN", keys.iter().map(|key| &key.name));
        let lengths = self.numbers(&lengths, "STRLEN").await?;
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (key, len) in keys.into_iter().zip(lengths) {
            group.push(key);
            bytes += len;
            if bytes >= BATCH_BYTES {
                self.string_group(std::mem::take(&mut group)).await?;
                bytes = 0;
            }
        }
        self.string_group(group).await
    }

    async fn string_group(&mut self, keys: Vec<Key>) -> Outcome {
        let names: Vec<_> = keys.iter().map(|key| key.name.clone()).collect();
        let stored: Vec<_> = keys.iter().map(|key| key.stored.clone()).collect();
        let commands = Commands::of_each("GET", &names);
        let (values, there) = tokio::try_join!(self.source.ask(&commands), self.target.look(&self.path, &stored))?;
        for ((key, value), there) in keys.into_iter().zip(values).zip(there) {
            match value {
                Reply::Value(value) => self.string(key, value, there).await?,
                // It has expired, was deleted, or has become something else meanwhile.
                Reply::Nil | Reply::Refused(_) => self.tally.gone += 1,
                _ => return Err(self.source.unexpected("GET")),
            }
        }
        Ok(())
    }

    async fn string(&mut self, key: Key, value: Bytes, there: There) -> Outcome {
        self.tally.timed += u64::from(key.at.is_some());
        let mut requests = Vec::new();
        match there {
            There::Value(Some(old), at) if old == value && self.is_same_time(at, key.at) => {
                self.is_there();
                return Ok(());
            }
            There::Value(..) | There::Bucket(_) if self.if_absent => {
                self.is_kept();
                return Ok(());
            }
            There::Value(Some(old), _) if old == value => {
                let put = Put { requests: vec![self.expire(&key)], key: key.name, what: What::String };
                return self.put(put).await;
            }
            There::Bucket(_) => {
                let Some(hash) = self.replaceable(&key).await? else { return Ok(()) };
                requests.push(WriteRequest::DeleteBucket(hash));
            }
            There::Value(..) | There::Nothing => {}
        }
        let cond = if self.if_absent { Cond::IfAbsent } else { Cond::Always };
        let (path, stored) = (self.path.clone(), key.stored);
        requests.push(match key.at {
            None => WriteRequest::Set { path, key: stored, value, cond },
            Some(at) => WriteRequest::SetExpiring { path, key: stored, value, cond, expiry: Expiry::At(at) },
        });
        self.put(Put { key: key.name, what: What::String, requests }).await
    }

    /// The path of a hash that may be replaced. A bucket with buckets in it is none, and is nobody's to remove.
    async fn replaceable(&mut self, key: &Key) -> Outcome<Option<Path>> {
        let path = match self.path.child(&key.stored) {
            Ok(path) => path,
            Err(error) => return Err(Failure::not_done(error.to_string())),
        };
        if self.target.holds_buckets(&path).await? {
            self.tally.leave_out("where a bucket with buckets in it is in their place", &key.name);
            return Ok(None);
        }
        Ok(Some(path))
    }

    /// What gives a key its time.
    pub(super) fn expire(&self, key: &Key) -> WriteRequest {
        let to = key.at.map_or(ExpireTo::Never, ExpireTo::At);
        WriteRequest::Expire { path: self.path.clone(), key: key.stored.clone(), to, cond: ExpireCond::Always }
    }

    /// Whether two times are the same, as far as the Redis tells.
    pub(super) const fn is_same_time(&self, one: Option<u64>, other: Option<u64>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => one.abs_diff(other) <= if self.exact { 0 } else { SAME_TIME },
            _ => false,
        }
    }

    /// What numbers the Redis answers; what it refuses (a key has become something else meanwhile) counts as none.
    pub(super) async fn numbers(&mut self, commands: &Commands, name: &str) -> Outcome<Vec<u64>> {
        let replies = self.source.ask(commands).await?;
        let number = |reply| match reply {
            Reply::Number(number) => Ok(u64::try_from(number).unwrap_or(0)),
            Reply::Refused(_) => Ok(0),
            _ => Err(self.source.unexpected(name)),
        };
        replies.into_iter().map(number).collect()
    }

    /// What is said of replies that are not what was asked for.
    fn refusal(&self, replies: &[Reply], name: &str) -> Failure {
        let refused = replies.iter().find_map(|reply| if let Reply::Refused(why) = reply { Some(why) } else { None });
        refused.map_or_else(|| self.source.unexpected(name), |why| self.source.refused(name, why))
    }

    pub(super) fn is_put(&mut self) {
        self.tally.put += 1;
        self.done.fetch_add(1, Relaxed);
    }

    pub(super) fn is_there(&mut self) {
        self.tally.there += 1;
        self.done.fetch_add(1, Relaxed);
    }

    pub(super) fn is_kept(&mut self) {
        self.tally.kept += 1;
        self.done.fetch_add(1, Relaxed);
    }

    /// Has something put, with others.
    pub(super) async fn put(&mut self, put: Put) -> Outcome {
        self.pending_bytes += put.bytes();
        self.pending.push(put);
        if self.pending.len() >= BATCH || self.pending_bytes >= BATCH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Has all put that is to be put.
    pub(super) async fn flush(&mut self) -> Outcome {
        let puts = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let fates = self.target.put(&puts).await?;
        for (put, fate) in puts.iter().zip(fates) {
            self.count(put, fate);
        }
        Ok(())
    }

    fn count(&mut self, put: &Put, fate: Fate) {
        let tally = &mut self.tally;
        match (fate, put.what) {
            (Fate::Done, What::Field) => tally.fields += 1,
            (Fate::Done, What::String | What::Hash) => self.is_put(),
            (Fate::Kept | Fate::Gone, What::Field) => {}
            (Fate::Kept, _) => tally.kept += 1,
            (Fate::Gone, _) => tally.gone += 1,
            (Fate::Unholdable(why), What::Field) => tally.leave_out_in_part(&format!("with fields: {why}"), &put.key),
            (Fate::Unholdable(why), _) => tally.leave_out(&why, &put.key),
        }
    }
}

/// Whether boltkv takes it for a key, or the name of a hash or field: one of no bytes has another name in the file.
pub(super) fn is_holdable(name: &Bytes) -> bool {
    name.len() <= MAX_KEY_SIZE
}

/// What a key or field of the Redis is called in the file.
pub(super) fn as_stored(name: &Bytes) -> Bytes {
    if name.is_empty() { Bytes::from_static(EMPTY) } else { name.clone() }
}

/// What SCAN and HSCAN answer: where they go on, and what they have found.
pub(super) fn page(reply: Reply) -> Option<(Bytes, Vec<Bytes>)> {
    let Reply::Array(parts) = reply else { return None };
    let [Reply::Value(cursor), Reply::Array(found)] = <[Reply; 2]>::try_from(parts).ok()? else { return None };
    let found = found.into_iter().map(|value| if let Reply::Value(value) = value { Some(value) } else { None });
    Some((cursor, found.collect::<Option<_>>()?))
}
