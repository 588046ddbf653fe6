//! Transactions of the binary dialect.

use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, KeyRange, Reply, Request, ScanMode, ScanOptions, Txn, TxnBuilder, TxnPart,
};
use boltkv_storage::{Db, Error, Options};

use super::Binary;
use super::binary::{path, scan};

/// A transaction of these requests.
pub fn txn(requests: &[Request]) -> Txn {
    build(Txn::builder(), requests)
}

/// A transaction of these requests, under one condition on a key in bucket `b`.
pub fn txn_if(key: &str, cond: &Cond, requests: &[Request]) -> Txn {
    let mut txn = Txn::builder();
    txn.condition(&path("b"), key.as_bytes(), cond).unwrap();
    build(txn, requests)
}

pub fn build(mut txn: TxnBuilder, requests: &[Request]) -> Txn {
    for request in requests {
        txn.request(request).unwrap();
    }
    txn.build()
}

/// Has it done; answers its number and its results.
pub fn done(client: &mut Binary, txn: Txn) -> (u64, Vec<Reply>) {
    let expects: Vec<_> = txn.expects().collect();
    match client.ask(&txn.into()) {
        Reply::Txn { txid, results } => (txid, results.replies(expects).map(Result::unwrap).collect()),
        other => panic!("a transaction was answered with {other:?}"),
    }
}

/// Has it refused; answers why.
pub fn refused(client: &mut Binary, txn: Txn) -> ErrorReply {
    match client.ask(&txn.into()) {
        Reply::Error(error) => error,
        other => panic!("a transaction was answered with {other:?}"),
    }
}

pub fn code_and_part(error: &ErrorReply) -> (ErrorCode, Option<TxnPart>) {
    (error.code, error.txn_part())
}

pub fn count(bucket: &str) -> Request {
    scan(bucket, KeyRange::ALL, ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() })
}

/// A database with bucket `b`, in which are `a` = `1` and `c` = `3`.
pub fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("a", "1")?;
        bucket.put("c", "3")?;
        Ok::<_, Error>(())
    })
    .unwrap();
    db
}
