//! Times at which keys expire. An export of a file has them as lines of `boltkv.expires`, which nobody may write over the
//! wire; they are gathered, and the keys are given them when these are all there: a value that is put stays.

use boltkv_client::{Client, ErrorCode, Path, TxnPart};
use boltkv_lines::Line;
use boltkv_protocol::{ExpireCond, ExpireTo, Txn, WriteRequest};
use boltkv_server::KeptTime;

use super::{BATCH, Import};
use crate::failure::{Failure, Outcome, note};
use crate::words::counted;

/// Names take no more memory than this; times beyond are left out.
const MOST_BYTES: usize = 256 << 20;

/// What was gathered.
#[derive(Default)]
pub(super) struct Times {
    ahead: Vec<Time>,
    bytes: usize,
    left_out: u64,
    /// Of lines that were passed over, and tell no time where they should.
    passed_over: u64,
}

struct Time {
    bucket: Path,
    key: Vec<u8>,
    at_ms: u64,
}

impl Times {
    /// Keeps what a line says of a time, if it does.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn note(&mut self, line: &Line) -> Result<(), &'static str> {
        let Line::Entry { path, key, value } = line else { return Ok(()) };
        let Some(KeptTime { bucket, at_ms }) = KeptTime::of_entry(path, value)? else { return Ok(()) };
        self.bytes += size_of::<Time>() + key.len() + bucket.names_on_the_wire().len();
        if self.bytes > MOST_BYTES {
            self.left_out += 1;
            return Ok(());
        }
        // Those of a bucket come one after the other.
        let last = self.ahead.last().map(|time| &time.bucket);
        let bucket = last.filter(|last| **last == bucket).cloned().unwrap_or(bucket);
        self.ahead.push(Time { bucket, key: key.clone(), at_ms });
        Ok(())
    }

    /// As [`Self::note`], of a line that is passed over, whatever is wrong with it.
    pub(super) fn note_passed_over(&mut self, line: &Line) {
        self.passed_over += u64::from(self.note(line).is_err());
    }

    /// Whether keys are still to be given times.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Tells of those that no key was given.
    fn tell_what_is_left_out(&self) {
        let tell = |count, why: &str| {
            if count > 0 {
                note(&format!("left out {} at which keys expire: {why}", counted(count, "time")));
            }
        };
        let most = MOST_BYTES >> 20;
        tell(self.left_out, &format!("their buckets are not there, or they are more than {most} MiB"));
        tell(self.passed_over, "their lines were passed over, and cannot be used");
    }
}

/// Whether a line is boltkv's own, and not to be put in.
pub(super) fn is_own(line: &Line) -> bool {
    let (Line::Bucket { path, .. } | Line::Entry { path, .. }) = line;
    KeptTime::is_in(path)
}

impl Import {
    /// Gives the keys their times, now that they are there. One of a bucket that did not come along is left out.
    pub(super) async fn put_times(&self, client: &Client, mut times: Times) -> Outcome {
        while !times.ahead.is_empty() {
            let rest = times.ahead.split_off(times.ahead.len().min(BATCH));
            let mut these = std::mem::replace(&mut times.ahead, rest);
            while !these.is_empty() {
                let Err(error) = self.patiently(client, &transaction(&these)?).await else { break };
                let failed = match error.failed_part() {
                    Some(TxnPart::Request(at)) if error.code() == Some(ErrorCode::BucketNotFound) => {
                        these.get(usize::from(at)).map(|time| time.bucket.clone())
                    }
                    _ => None,
                };
                let Some(bucket) = failed else { return Err(not_put(Failure::write(error))) };
                let before = these.len();
                these.retain(|time| time.bucket != bucket);
                times.left_out += (before - these.len()) as u64;
            }
        }
        times.tell_what_is_left_out();
        Ok(())
    }
}

fn transaction(times: &[Time]) -> Outcome<Txn> {
    let mut txn = Txn::builder();
    for Time { bucket, key, at_ms } in times {
        let (path, to) = (bucket.clone(), ExpireTo::At(*at_ms));
        let request: WriteRequest<&[u8]> = WriteRequest::Expire { path, key, to, cond: ExpireCond::Always };
        txn.request(&request.into()).map_err(|error| not_put(Failure::not_done(error.to_string())))?;
    }
    Ok(txn.build())
}

fn not_put(failure: Failure) -> Failure {
    failure
        .prefixed("the times at which keys expire")
        .followed_by("; all lines are there; the same import sets the times")
}
