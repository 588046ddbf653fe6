//! The lines of a transaction, from MULTI to EXEC: put together line by line, and its results printed line by line.

use bytes::BytesMut;

use super::answer::{Answer, MissingBucket, write_end, write_error};
use super::parse::TextCommand;
use crate::{ErrorCode, ErrorReply, Expect, Reply, Request, Txn, TxnBuilder, TxnCondition, TxnError, TxnResults};

/// The lines of a transaction that were queued so far.
#[derive(Debug, Clone)]
pub struct Queued {
    txn: TxnBuilder,
    answers: QueuedAnswers,
    max_frame: usize,
}

/// How the results of a transaction are printed: two bytes for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuedAnswers(Vec<(Answer, Expect)>);

impl Queued {
    /// No lines, of a transaction whose frame has at most `max_frame` bytes, header included.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self { txn: Txn::builder(), answers: QueuedAnswers::default(), max_frame }
    }

    /// Queues what a line asks for. What cannot be part of a transaction comes back.
    ///
    /// # Errors
    /// `FRAME_TOO_LARGE`; `TXN_TOO_LARGE` where there are as many as can be, or a field is longer than the wire can carry;
    /// `UNSUPPORTED` for what is done by itself only. Of a line of several requests, those before it are queued then.
    pub fn add(&mut self, command: TextCommand) -> Result<Option<TextCommand>, ErrorReply> {
        match command {
            TextCommand::Read { request, answer } if may_be_queued(&request.clone().into()) => {
                self.request(&request.into(), answer)?;
            }
            TextCommand::ReadEach { reads, answer } => {
                for request in reads {
                    self.request(&request.into(), answer)?;
                }
            }
            TextCommand::Write { request, answer } => self.request(&request.into(), answer)?,
            TextCommand::Stream { request, answer } => self.request(&request.into(), answer)?,
            TextCommand::Condition(TxnCondition { path, key, cond }) => {
                self.txn.condition(&path, &key, &cond).map_err(|error| refusal(&error))?;
                self.check_length()?;
            }
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    fn request(&mut self, request: &Request, answer: Answer) -> Result<(), ErrorReply> {
        self.txn.request(request).map_err(|error| refusal(&error))?;
        self.answers.0.extend(request.expects().map(|expect| (answer, expect)));
        self.check_length()
    }

    /// Each request has its bucket's path, however long that is: so it is looked at after each.
    fn check_length(&self) -> Result<(), ErrorReply> {
        let limit = self.max_frame;
        if self.txn.frame_len() <= limit {
            return Ok(());
        }
        let message = format!("the transaction does not fit a frame of {limit} bytes");
        Err(ErrorReply::new(ErrorCode::FrameTooLarge, message))
    }

    /// How many requests are queued; a line of MGET is several.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.txn.requests()
    }

    /// How many bytes it keeps.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.txn.frame_len() + size_of::<(Answer, Expect)>() * self.answers.0.len()
    }

    /// The transaction, and how what comes of it is printed.
    #[must_use]
    pub fn into_txn(self) -> (Txn, QueuedAnswers) {
        (self.txn.build(), self.answers)
    }
}

impl QueuedAnswers {
    /// Prints a transaction's reply: each result as the reply to its line, then `END`; or the one error.
    pub fn write<B: AsRef<[u8]>>(&self, reply: &Reply<B>, out: &mut BytesMut) {
        match reply {
            Reply::Txn { results, .. } => self.write_results(results, out),
            Reply::Error(error) => write_error(error, out),
            // Nothing else answers a transaction.
            _ => {}
        }
    }

    /// Prints results that were read before, each as the reply to its line.
    pub fn write_each(&self, replies: impl IntoIterator<Item = Reply>, out: &mut BytesMut) {
        for ((answer, _), reply) in self.0.iter().zip(replies) {
            answer.write(&reply, MissingBucket::Error, out);
        }
    }

    fn write_results(&self, results: &TxnResults, out: &mut BytesMut) {
        let expects: Vec<_> = self.0.iter().map(|(_, expect)| *expect).collect();
        for ((answer, _), reply) in self.0.iter().zip(results.replies(expects)) {
            match reply {
                Ok(reply) => answer.write(&reply, MissingBucket::Error, out),
                Err(error) => write_error(&error.into(), out),
            }
        }
        write_end(out);
    }
}

/// PING asks nothing of what is stored: it is answered at once.
fn may_be_queued(request: &Request) -> bool {
    request.expects() != Some(Expect::Pong)
}

fn refusal(error: &TxnError) -> ErrorReply {
    let code = match error {
        TxnError::NotWithin { .. } => ErrorCode::Unsupported,
        TxnError::TooMany { .. } | TxnError::Encode(_) => ErrorCode::TxnTooLarge,
    };
    ErrorReply::new(code, error.to_string())
}
