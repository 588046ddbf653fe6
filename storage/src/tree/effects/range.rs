//! Replay of a range that was deleted.

use super::replay::Failed;
use crate::base::Error;
use crate::format::{Between, LeafEntry};
use crate::pages::MAX_DEPTH;
use crate::tree::BucketId;
use crate::tree::slots::At;
use crate::tree::view::{Source, View, too_deep};
use crate::tree::walk::Allowance;
use crate::tree::work::Work;

/// Keys that are gathered before they are deleted.
const BATCH: usize = 256;
/// Deletes all from `first` to `last`.
pub(super) fn delete_range(work: &mut Work, bucket: BucketId, first: &[u8], last: &[u8]) -> Result<(), Failed> {
    let mut from = first.to_vec();
    let mut newest: Option<Vec<u8>> = None;
    loop {
        let keys = keys_between(work, bucket, &from, last)?;
        let Some(greatest) = keys.last().cloned() else { break };
        if newest.is_none() && keys.first().is_none_or(|least| least != first) {
            break;
        }
        for key in &keys {
            work.leaf_of(bucket, key)?;
            work.remove_and_prune(bucket, key)?;
        }
        from = [&greatest[..], &[0]].concat();
        newest = Some(greatest);
    }
    if newest.as_deref() != Some(last) {
        return Err(Failed::DoesNotFit("a range ends in a key that is not there".into()));
    }
    work.record_range(bucket, first, last);
    Ok(())
}

/// Up to [`BATCH`] keys of values from `first` to `last`, in order.
fn keys_between(work: &Work, bucket: BucketId, first: &[u8], last: &[u8]) -> Result<Vec<Vec<u8>>, Failed> {
    let source = work.source();
    let mut allowance = Allowance::new(&source);
    let mut above: Vec<(View<'_>, At)> = Vec::new();
    let mut between = Between::ANY;
    let mut view = source.root(work.root(bucket))?;
    let mut at = view.seek(first, &mut between)?;
    while let (false, Some(here)) = (view.is_leaf(), at) {
        above.push((view, here));
        view = below(&source, &above)?;
        at = view.seek(first, &mut between)?;
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    loop {
        while let Some(here) = at {
            let LeafEntry { key, is_bucket, .. } = view.entry(here)?;
            if key > last || keys.len() == BATCH {
                return Ok(keys);
            }
            if is_bucket {
                return Err(Failed::DoesNotFit("there is a bucket in a range that is deleted".into()));
            }
            if key < first || keys.last().is_some_and(|before| &before[..] >= key) {
                return Err(Error::corrupt(view.page(), "its keys are not in order").into());
            }
            keys.push(key.to_vec());
            at = view.next(here);
        }
        // The leaf is at its end: on to the next one.
        let next = loop {
            let Some((branch, at)) = above.pop() else { return Ok(keys) };
            if let Some(next) = branch.next(at) {
                break (branch, next);
            }
        };
        above.push(next);
        view = below(&source, &above)?;
        allowance.spend_page(&view)?;
        at = view.first();
        while let (false, Some(here)) = (view.is_leaf(), at) {
            above.push((view, here));
            view = below(&source, &above)?;
            allowance.spend_page(&view)?;
            at = view.first();
        }
    }
}

/// What the last of a way down leads to.
fn below<'a>(source: &Source<'a>, above: &[(View<'a>, At)]) -> Result<View<'a>, Error> {
    match above {
        [.., (branch, at)] if above.len() <= MAX_DEPTH => source.view(branch.child(*at)?),
        [.., (branch, _)] => Err(too_deep(branch)),
        [] => Err(Error::corrupt(0, "a way down that leads nowhere")),
    }
}
