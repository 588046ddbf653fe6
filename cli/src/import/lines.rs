//! An export's lines, put in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use boltkv_client::{Client, Error, ErrorCode, Path, TxnPart};
use boltkv_lines::{IS_CSV, Line};
use boltkv_protocol::{Cond, Txn, WriteRequest, text};
use indicatif::HumanCount;

use super::times::{Times, is_own};
use super::{BATCH, BATCH_BYTES, Import, may_be_sent_again};
use crate::failure::{Failure, Outcome};
use crate::file::Interrupt;
use crate::lines::Input;
use crate::patience::patiently;
use crate::words::counted;

/// Why lines were not put in.
enum Refused {
    /// The line of this number among them, from 0, is to blame.
    At(usize, Failure),
    /// All of them, so many, failed together.
    All(usize, Error),
}

impl Import {
    pub(super) async fn import(&self, client: &Client, input: &mut Input) -> Outcome {
        let there = Arc::new(AtomicU64::new(self.skip));
        let _interrupt = Interrupt::new({
            let there = Arc::clone(&there);
            move || match there.load(Relaxed) {
                0 => "no line is known to be on the server".into(),
                1 => "the first line is on the server, and --skip 1 goes on behind it".into(),
                many => format!(
                    "the first {} lines are on the server, and --skip {many} goes on behind them",
                    HumanCount(many)
                ),
            }
        })?;
        let mut times = Times::default();
        self.pass_over(input, &mut times)?;
        loop {
            let (lines, end) = gather(input, &mut times);
            let (put, refused) = self.put(client, &lines).await;
            let put = there.fetch_add(put as u64, Relaxed) + put as u64;
            if let Some(refused) = refused {
                return Err(failure(input, put, &times, refused));
            }
            match end {
                Some(Ok(())) => {
                    self.put_times(client, times).await?;
                    return input.print_count(put - self.skip, self.json);
                }
                Some(Err(why)) if put == 0 && why == IS_CSV => {
                    return Err(Failure::usage(format!("{}: {why}", input.name)));
                }
                Some(Err(why)) => return Err(failure(input, put, &times, Refused::At(0, Failure::not_done(why)))),
                None => {}
            }
        }
    }

    /// Goes past the lines that --skip says; the times among them are set again.
    fn pass_over(&self, input: &mut Input, times: &mut Times) -> Outcome {
        for number in 0..self.skip {
            let passed = input.pass_over();
            let (name, one, skip) = (&input.name, input.counted, self.skip);
            match passed {
                Ok(Some((line, _))) => line.iter().for_each(|line| times.note_passed_over(line)),
                Ok(None) => {
                    return Err(Failure::usage(format!("{name} has only {number} {one}s, and --skip says {skip}")));
                }
                Err(why) => return Err(Failure::not_done(format!("{name}, {one} {}: {why}", number + 1))),
            }
        }
        Ok(())
    }

    /// Puts lines in; answers how many of them are there, and why no more.
    async fn put(&self, client: &Client, lines: &[Line]) -> (usize, Option<Refused>) {
        // Ranges that are still to be sent, the next one last.
        let mut ahead = vec![(0..lines.len(), None)];
        let mut there = 0;
        while let Some((range, then)) = ahead.pop() {
            match self.send(client, lines.get(range.clone()).unwrap_or_default()).await {
                Ok(()) => there = range.end,
                // A server may take less than is sent here at a time.
                Err(Refused::All(count, Error::Unsendable(_))) if count > 1 => {
                    let middle = range.start + count / 2;
                    ahead.push((middle..range.end, then));
                    ahead.push((range.start..middle, None));
                    continue;
                }
                // What comes before the line that is to blame was undone with it.
                Err(Refused::At(at, failure)) if at > 0 => {
                    ahead = vec![(range.start..range.start + at, Some(Refused::At(0, failure)))];
                    continue;
                }
                Err(refused) => return (there, Some(refused)),
            }
            if then.is_some() {
                return (there, then);
            }
        }
        (there, None)
    }

    /// Has lines put in by one transaction.
    async fn send(&self, client: &Client, lines: &[Line]) -> Result<(), Refused> {
        if lines.is_empty() {
            return Ok(());
        }
        let (txn, line_of) = transaction(lines)?;
        // None but boltkv's own.
        if line_of.is_empty() {
            return Ok(());
        }
        let mut sent = self.patiently(client, &txn).await;
        let default = text::default_bucket();
        if let Err(error) = &sent
            && error.code() == Some(ErrorCode::BucketNotFound)
            && is_in(&default, error, lines, &line_of)
        {
            // It is made when it is needed, as `set` does it.
            sent = match client.bucket_at(default).create_if_missing().await {
                Ok(_) => self.patiently(client, &txn).await,
                Err(error) => Err(error),
            };
        }
        let Err(error) = sent else { return Ok(()) };
        if let Some(part @ TxnPart::Request(at)) = error.failed_part() {
            let line = line_of.get(usize::from(at)).copied().unwrap_or(0);
            return Err(Refused::At(line, Failure::write(error).without_count(part)));
        }
        Err(Refused::All(lines.len(), error))
    }

    /// Has a transaction done, again where that can help and there is time.
    pub(super) async fn patiently(&self, client: &Client, txn: &Txn) -> Result<(), Error> {
        let is_refused = |error: &Error| matches!(error.failed_part(), Some(TxnPart::Request(_)));
        let helps = |error: &Error| !is_refused(error) && may_be_sent_again(error);
        patiently(self.remote.timeout(), helps, async || client.execute(txn.clone()).await.map(drop)).await
    }
}

/// What is said after a failure: where, why, what is there, and how to go on.
fn failure(input: &Input, there: u64, times: &Times, refused: Refused) -> Failure {
    let (one, first) = (input.counted, there + 1);
    let state = match there {
        0 => "nothing was put in".to_owned(),
        1 => format!("the {one} before is there"),
        there => format!("the {} before are there", counted(there, one)),
    };
    let state = if times.is_empty() { state } else { format!("{state}, and no key was given its time yet") };
    let behind = if there == 0 { String::new() } else { format!(", and --skip {there} goes on behind that") };
    let (place, failure, way) = match refused {
        Refused::At(_, failure) => {
            let mended = if there == 0 { String::new() } else { format!(", then --skip {there}") };
            let way = format!(": mend or remove {one} {first}{mended}; --skip {first} passes it over");
            (format!("{one} {first}"), failure, way)
        }
        Refused::All(1, error) => (format!("{one} {first}"), Failure::write(error), behind),
        Refused::All(count, error) => {
            (format!("{one}s {first} to {}", there + count as u64), Failure::write(error), behind)
        }
    };
    failure.prefixed(&format!("{}, {place}", input.name)).followed_by(&format!("; {state}{way}"))
}

/// As many lines as are sent together, whose times are noted; and whether they are the last, or the one after them cannot be
/// used.
fn gather(input: &mut Input, times: &mut Times) -> (Vec<Line>, Option<Result<(), String>>) {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while lines.len() < BATCH && bytes < BATCH_BYTES {
        match input.next() {
            Ok(Some((line, len))) => {
                if let Err(why) = times.note(&line) {
                    return (lines, Some(Err(why.into())));
                }
                lines.push(line);
                bytes += len;
            }
            Ok(None) => return (lines, Some(Ok(()))),
            Err(why) => return (lines, Some(Err(why))),
        }
    }
    (lines, None)
}

/// The transaction that puts lines in, and of which line each of its requests is.
fn transaction(lines: &[Line]) -> Result<(Txn, Vec<usize>), Refused> {
    let (mut txn, mut line_of) = (Txn::builder(), Vec::new());
    let mut last: Option<(&[Vec<u8>], Path)> = None;
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !is_own(line)) {
        let (Line::Bucket { path: names, .. } | Line::Entry { path: names, .. }) = line;
        let path = match &last {
            Some((known, path)) if known == names => path.clone(),
            _ => Path::from_names(names).map_err(|error| unusable(number, &error))?,
        };
        last = Some((names, path.clone()));
        let requests: [Option<WriteRequest<&[u8]>>; 2] = match line {
            Line::Entry { key, value, .. } => [Some(WriteRequest::Set { path, key, value, cond: Cond::Always }), None],
            Line::Bucket { sequence, .. } => {
                let set = sequence.map(|sequence| WriteRequest::SetSequence { path: path.clone(), sequence });
                [Some(WriteRequest::CreateBucketIfMissing(path)), set]
            }
        };
        for request in requests.into_iter().flatten() {
            txn.request(&request.into()).map_err(|error| unusable(number, &error))?;
            line_of.push(number);
        }
    }
    Ok((txn.build(), line_of))
}

/// Whether the line to blame is of an entry in this bucket.
fn is_in(bucket: &Path, error: &Error, lines: &[Line], line_of: &[usize]) -> bool {
    let Some(TxnPart::Request(at)) = error.failed_part() else { return false };
    let line = line_of.get(usize::from(at)).and_then(|number| lines.get(*number));
    matches!(line, Some(Line::Entry { path, .. }) if path.iter().map(Vec::as_slice).eq(bucket.names()))
}

fn unusable(number: usize, why: &impl ToString) -> Refused {
    Refused::At(number, Failure::not_done(why.to_string()))
}
