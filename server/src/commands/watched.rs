//! What of a transaction's changes a watch tells, and in which frames.

use boltkv_protocol::{Change, ChangeKind, Changes, ErrorCode, ErrorReply, Path, Watch};
use boltkv_storage::{JournalChange, JournalEffect};
use bytes::Bytes;

use super::expiry::OWN;

/// Changes for one frame.
#[derive(Debug, Default)]
pub(super) struct Batch {
    changes: Vec<Change>,
    bytes: usize,
}

impl Batch {
    /// What has so many bytes, in memory and as a frame, is sent.
    pub(super) const FULL: usize = 64 * 1024;

    pub(super) const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether another has its place in the frame. The first always has.
    pub(super) fn has_room_for(&self, change: &Change) -> bool {
        self.is_empty() || self.bytes + bytes_of(change) <= Self::FULL
    }

    pub(super) fn push(&mut self, change: Change) {
        self.bytes += bytes_of(&change);
        self.changes.push(change);
    }

    pub(super) fn take(&mut self) -> Vec<Change> {
        self.bytes = 0;
        std::mem::take(&mut self.changes)
    }
}

/// Small ones take more in memory than on the wire.
fn bytes_of(change: &Change) -> usize {
    size_of::<Change>() + change.frame_part()
}

/// What a watch is about.
#[derive(Debug)]
pub(super) struct Watched {
    path: Vec<Bytes>,
    prefix: Bytes,
    keys_only: bool,
    max_frame: usize,
    /// The bucket of the last change: mostly that of the next one, too.
    last: Path,
}

impl Watched {
    pub(super) fn new(watch: Watch, max_frame: usize) -> Self {
        let path = watch.path.names().map(Bytes::copy_from_slice).collect();
        Self { path, prefix: watch.prefix, keys_only: watch.keys_only, max_frame, last: Path::ROOT }
    }

    /// What is told of an effect, whose keys and values lie in `bytes`; `None` where it is not watched.
    pub(super) fn change(&mut self, effect: &JournalEffect<'_>, bytes: &Bytes) -> Result<Option<Change>, ErrorReply> {
        if !self.concerns(effect) {
            return Ok(None);
        }
        if !self.last.names().eq(effect.path.iter().copied()) {
            self.last = path(effect.path)?;
        }
        let part = |part: &[u8]| bytes.slice_ref(part);
        let change = |kind, key: &[u8], value| Change { kind, path: self.last.clone(), key: part(key), value };
        let told = match effect.change {
            JournalChange::Put { key, .. } if self.keys_only => change(ChangeKind::Put, key, Bytes::new()),
            JournalChange::Put { key, value } => self.fitting(change(ChangeKind::Put, key, part(value))),
            JournalChange::Deleted { key } => change(ChangeKind::Deleted, key, Bytes::new()),
            JournalChange::RangeDeleted { first, last } => change(ChangeKind::RangeDeleted, first, part(last)),
            JournalChange::BucketCreated { name } => change(ChangeKind::BucketCreated, name, Bytes::new()),
            JournalChange::BucketDeleted { name } => change(ChangeKind::BucketDeleted, name, Bytes::new()),
            JournalChange::BucketMoved { name, to } => Change::moved(self.last.clone(), part(name), &path(to)?),
            JournalChange::Sequence { sequence } => {
                change(ChangeKind::Sequence, &[], Bytes::copy_from_slice(&sequence.to_be_bytes()))
            }
            _ => return Err(ErrorReply::new(ErrorCode::Unsupported, "the journal has a change that cannot be told")),
        };
        let len = Changes::<Bytes>::SHORTEST_FRAME + told.frame_part();
        if len > self.max_frame {
            let message = format!("a change takes a frame of {len} bytes, the limit is {}", self.max_frame);
            return Err(ErrorReply::new(ErrorCode::FrameTooLarge, message));
        }
        Ok(Some(told))
    }

    /// A value that no frame holds is told by its size.
    fn fitting(&self, mut change: Change) -> Change {
        if Changes::<Bytes>::SHORTEST_FRAME + change.frame_part() > self.max_frame {
            let size = change.value.len() as u64;
            change.kind = ChangeKind::PutTooLarge;
            change.value = Bytes::copy_from_slice(&size.to_be_bytes());
        }
        change
    }

    fn concerns(&self, JournalEffect { path, change }: &JournalEffect<'_>) -> bool {
        if is_own(path, change) {
            return false;
        }
        match *change {
            JournalChange::Put { key, .. } | JournalChange::Deleted { key } => self.is_within(path, key),
            JournalChange::RangeDeleted { first, last } => match self.below(path) {
                Some([]) => last >= &self.prefix[..] && (first < &self.prefix[..] || first.starts_with(&self.prefix)),
                Some([name, ..]) => name.starts_with(&self.prefix),
                None => false,
            },
            JournalChange::BucketCreated { name } | JournalChange::BucketDeleted { name } => {
                self.is_within(path, name) || self.leads_here(path, name)
            }
            JournalChange::BucketMoved { name, to } => {
                let to = to.split_last().map(|(its_name, to)| (to, *its_name));
                let concerns =
                    |(path, name): (&[&[u8]], &[u8])| self.is_within(path, name) || self.leads_here(path, name);
                concerns((path, name)) || to.is_some_and(concerns)
            }
            JournalChange::Sequence { .. } => match self.below(path) {
                Some([]) => self.prefix.is_empty(),
                Some([name, ..]) => name.starts_with(&self.prefix),
                None => false,
            },
            // Told, so that nothing is left out in silence.
            _ => true,
        }
    }

    /// The names that a path has below the one that is watched; `None` where it is not below it.
    fn below<'a, 'b>(&self, path: &'a [&'b [u8]]) -> Option<&'a [&'b [u8]]> {
        let (above, below) = path.split_at_checked(self.path.len())?;
        above.iter().eq(&self.path).then_some(below)
    }

    /// Whether a key or a bucket of this name in a bucket is watched, or lies within what is.
    fn is_within(&self, path: &[&[u8]], name: &[u8]) -> bool {
        self.below(path).is_some_and(|below| below.first().copied().unwrap_or(name).starts_with(&self.prefix))
    }

    /// Whether a bucket is the one that is watched, or that one lies within it.
    fn leads_here(&self, path: &[&[u8]], name: &[u8]) -> bool {
        path.len() < self.path.len() && path.iter().chain([&name]).zip(&self.path).all(|(name, own)| *name == own)
    }
}

/// Whether something happened to what is boltkv's own: nobody is told of that. It is never moved to or from elsewhere.
fn is_own(path: &[&[u8]], change: &JournalChange<'_>) -> bool {
    match (path.first(), change) {
        (Some(top), _) => *top == OWN,
        (None, JournalChange::BucketCreated { name } | JournalChange::BucketDeleted { name }) => *name == OWN,
        (None, _) => false,
    }
}

/// A bucket's path, as the wire has it.
fn path(names: &[&[u8]]) -> Result<Path, ErrorReply> {
    let too_deep = |error| ErrorReply::new(ErrorCode::Unsupported, format!("a change cannot be told: {error}"));
    Path::from_names(names).map_err(too_deep)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(path: &[&str], prefix: &'static str) -> Watched {
        let path = Path::from_names(path).unwrap();
        Watched::new(Watch { path, prefix: prefix.into(), ..Watch::default() }, 1 << 20)
    }

    fn concerns(path: &[&str], prefix: &'static str, of: &[&str], change: JournalChange<'_>) -> bool {
        let of: Vec<_> = of.iter().map(|name| name.as_bytes()).collect();
        watched(path, prefix).concerns(&JournalEffect { path: &of, change })
    }

    #[test]
    fn a_bucket_is_watched_with_all_within_and_with_the_way_to_it() {
        let put = |key: &'static str| JournalChange::Put { key: key.as_bytes(), value: b"" };
        assert!(concerns(&[], "", &["a"], put("k")) && concerns(&["a"], "", &["a", "b"], put("k")));
        assert!(!concerns(&["a"], "", &["b"], put("k")) && !concerns(&["a", "b"], "", &["a"], put("b")));
        assert!(concerns(&["a"], "k", &["a"], put("key")) && !concerns(&["a"], "k", &["a"], put("other")));
        assert!(concerns(&["a"], "k", &["a", "kb"], put("x")) && !concerns(&["a"], "k", &["a", "b"], put("k")));
        let deleted = |name: &'static str| JournalChange::BucketDeleted { name: name.as_bytes() };
        for (of, name) in [(&[][..], "a"), (&["a"], "b"), (&["a", "b"], "kc")] {
            assert!(concerns(&["a", "b"], "k", of, deleted(name)), "{name}");
        }
        for (of, name) in [(&[][..], "b"), (&["a"], "a"), (&["a", "b"], "c"), (&["b"], "b")] {
            assert!(!concerns(&["a", "b"], "k", of, deleted(name)), "{name}");
        }
        let moved = |to| JournalChange::BucketMoved { name: b"b", to };
        assert!(concerns(&["a"], "", &["x"], moved(&[b"a", b"b"])));
        assert!(concerns(&["a"], "", &["a"], moved(&[b"x", b"b"])));
        assert!(concerns(&["x", "c"], "", &[], moved(&[b"x", b"c"])));
        assert!(!concerns(&["a"], "", &["x"], moved(&[b"y", b"b"])));
        assert!(concerns(&["a"], "k", &["a"], moved(&[b"a", b"kept"])));
        assert!(!concerns(&["a"], "k", &["a"], moved(&[b"a", b"other"])));
    }

    #[test]
    fn a_range_is_told_where_it_may_have_had_keys_with_the_prefix() {
        let range = |first: &'static str, last: &'static str| {
            concerns(
                &["a"],
                "k",
                &["a"],
                JournalChange::RangeDeleted { first: first.as_bytes(), last: last.as_bytes() },
            )
        };
        assert!(range("a", "z") && range("a", "k") && range("kk", "kz") && range("k", "z"));
        assert!(!range("a", "j") && !range("l", "z"));
    }

    #[test]
    fn a_value_that_no_frame_holds_is_told_by_its_size() {
        let bytes = Bytes::from(vec![7; 100]);
        let effect = JournalEffect { path: &[b"b"], change: JournalChange::Put { key: &bytes[..1], value: &bytes } };
        let mut watched = Watched { max_frame: 100, ..watched(&[], "") };
        let change = watched.change(&effect, &bytes).unwrap().unwrap();
        assert_eq!((change.kind, change.number()), (ChangeKind::PutTooLarge, Some(100)));
        watched.max_frame = 20;
        assert_eq!(watched.change(&effect, &bytes).unwrap_err().code, ErrorCode::FrameTooLarge);
    }
}
