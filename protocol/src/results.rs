//! The results of a transaction: `n u16`, then n × (status u8, body bytes32), each as the reply to its request would be.
//!
//! The server writes them as they come, entries of a scan one by one; they are read off the reply one by one. They take no
//! more memory than their bytes.

use bytes::{BufMut, Bytes, BytesMut};

use crate::entries::put_entry;
use crate::field::{DecodeError, EncodeError, Fields};
use crate::frame::HEADER_LEN;
use crate::reply::decode_body;
use crate::request::put_with_len;
use crate::{Entry, ErrorCode, ErrorReply, Expect, Reply};

/// What a transaction's number and that of its results take of a frame.
const BEFORE: usize = 8 + 2;
/// What a result takes beside its body.
const RESULT_OVERHEAD: usize = 1 + 4;

/// The results of a transaction, as on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TxnResults {
    count: u16,
    wire: Bytes,
}

impl TxnResults {
    /// How many there are: as many as the transaction has requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The length in bytes of the frame that they come in.
    #[must_use]
    pub const fn frame_len(&self) -> usize {
        HEADER_LEN + BEFORE + self.wire.len()
    }

    /// Reads them off one by one, as replies of the shapes that are due: see [`Txn::expects`](crate::Txn::expects). A GET that
    /// has found nothing is a `KEY_NOT_FOUND` among them. Ends with the shorter of the two.
    pub fn replies(
        &self,
        expects: impl IntoIterator<Item = Expect>,
    ) -> impl Iterator<Item = Result<Reply, DecodeError>> {
        let mut fields = Fields::new(self.wire.clone());
        expects.into_iter().take(self.len()).map(move |expect| {
            let status = fields.u8("status")?;
            decode_body(expect, status, fields.bytes32("result")?)
        })
    }

    pub(crate) fn decode(fields: &mut Fields) -> Result<Self, DecodeError> {
        let count = fields.u16("n")?;
        let wire = fields.rest().clone();
        for _ in 0..count {
            fields.u8("status")?;
            fields.bytes32("result")?;
        }
        let len = wire.len() - fields.rest().len();
        Ok(Self { count, wire: wire.slice(..len) })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.reserve(2 + self.wire.len());
        out.put_u16(self.count);
        out.put_slice(&self.wire);
    }
}

/// Results that are being written: one reply, or one scan, after the other.
#[derive(Debug, Default)]
pub struct TxnResultsWriter {
    out: BytesMut,
    count: u16,
    /// Where numbers of the transaction stand.
    txids: Vec<u32>,
    /// Where the scan's result starts that is being written, and how many entries it has.
    scan: Option<(usize, u32)>,
}

impl TxnResultsWriter {
    /// How many bytes the frame has that they would come in, header included.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        HEADER_LEN + BEFORE + self.out.len()
    }

    /// How many bytes a result adds whose body has `body` bytes.
    #[must_use]
    pub const fn result_len(body: usize) -> usize {
        RESULT_OVERHEAD + body
    }

    /// How many bytes they keep.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.out.len() + size_of::<u32>() * self.txids.len()
    }

    /// Appends a reply. That it fits, and that there are no more than a transaction has requests, is the caller's to see to.
    ///
    /// # Errors
    /// A field longer than the wire can carry; nothing is appended then.
    pub fn push<B: AsRef<[u8]>>(&mut self, reply: &Reply<B>) -> Result<(), EncodeError> {
        let start = self.out.len();
        self.out.put_u8(reply.status());
        if let Err(error) = put_with_len(&mut self.out, |out| reply.encode_body(out)) {
            self.out.truncate(start);
            return Err(error);
        }
        if reply.txid().is_some() {
            // A frame's length is a u32.
            self.txids.extend(u32::try_from(start + RESULT_OVERHEAD));
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Begins the result of a scan, to which entries are appended until [`end_scan`](Self::end_scan).
    pub fn begin_scan(&mut self) {
        self.scan = Some((self.out.len(), 0));
        self.out.put_u8(0);
        self.out.put_u32(0);
        self.out.put_u32(0);
    }

    /// Appends an entry to the scan that is being written.
    ///
    /// # Errors
    /// As for [`EntriesWriter::push`](crate::EntriesWriter::push).
    pub fn push_entry<B: AsRef<[u8]>>(&mut self, entry: &Entry<B>) -> Result<(), EncodeError> {
        let before = self.out.len();
        let written = put_entry(&mut self.out, entry);
        match (&written, &mut self.scan) {
            (Ok(()), Some((_, count))) => *count += 1,
            _ => self.out.truncate(before),
        }
        written
    }

    /// Ends the scan that is being written.
    ///
    /// # Errors
    /// It is longer than the wire can carry.
    pub fn end_scan(&mut self) -> Result<(), EncodeError> {
        let Some((start, count)) = self.scan.take() else { return Ok(()) };
        let body = self.out.len() - start - RESULT_OVERHEAD;
        let over = || EncodeError { field: "result", len: body, limit: crate::MAX_FRAME_LIMIT };
        let len = u32::try_from(body).map_err(|_| over())?;
        let fields = self.out.get_mut(start + 1..).and_then(<[u8]>::first_chunk_mut::<8>).ok_or_else(over)?;
        *fields = (u64::from(len) << 32 | u64::from(count)).to_be_bytes();
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// The whole reply, of transaction `txid`, whatever number the parts were given when they were written.
    #[must_use]
    pub fn finish(mut self, txid: u64) -> Reply {
        for at in self.txids {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            if let Some(field) = self.out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *field = txid.to_be_bytes();
            }
        }
        Reply::Txn { txid, results: TxnResults { count: self.count, wire: self.out.freeze() } }
    }
}

/// A part of a transaction, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TxnPart {
    /// A condition.
    Condition(u16),
    /// A request.
    Request(u16),
}

impl TxnPart {
    const CONDITION: u8 = 0;
    const REQUEST: u8 = 1;
}

impl ErrorReply {
    /// The answer to a transaction that was not done because of this part of it. The part is the detail.
    #[must_use]
    pub fn within_txn(self, part: TxnPart) -> Self {
        let (kind, index, what) = match part {
            TxnPart::Condition(index) => (TxnPart::CONDITION, index, "condition"),
            TxnPart::Request(index) => (TxnPart::REQUEST, index, "request"),
        };
        let [high, low] = index.to_be_bytes();
        Self {
            code: self.code,
            message: format!("{what} {index} of the transaction: {}", self.message).into(),
            detail: Bytes::copy_from_slice(&[kind, high, low]),
        }
    }

    /// The part because of which a transaction was not done; `None` where it was for no single one. Only of the answer to a
    /// transaction: details of other answers mean something else.
    #[must_use]
    pub fn txn_part(&self) -> Option<TxnPart> {
        let [kind, high, low] = *<&[u8; 3]>::try_from(&self.detail[..]).ok()?;
        let index = u16::from_be_bytes([high, low]);
        match kind {
            TxnPart::CONDITION => Some(TxnPart::Condition(index)),
            TxnPart::REQUEST => Some(TxnPart::Request(index)),
            _ => None,
        }
    }
}

impl ErrorCode {
    /// Whether it is a result within a transaction, and no reason not to do it: a GET that finds nothing.
    #[must_use]
    pub fn is_result(self) -> bool {
        self == Self::KeyNotFound
    }
}
