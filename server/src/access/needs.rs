//! The rights that each request needs. A request that is new does not compile until it says so here.

use boltkv_protocol::resp::{Kind, RespCommand};
use boltkv_protocol::{
    ErrorReply, OperatorRequest, Path, ReadRequest, Request, SnapshotRead, SnapshotRequest, StreamRequest, Txn,
    WriteRequest,
};

use super::Level;
use crate::commands::RespWork;

/// What asks for rights.
pub(crate) trait Needs {
    /// Tells `need` each right that is needed, until one is refused.
    ///
    /// # Errors
    /// The refusal.
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply>;
}

impl Needs for ReadRequest {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::Ping(_) => Ok(()),
            Self::Get { path, .. } | Self::ExpiryTime { path, .. } | Self::Sequence(path) => need(Level::Read, path),
        }
    }
}

impl Needs for WriteRequest {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::Set { path, .. }
            | Self::SetExpiring { path, .. }
            | Self::Expire { path, .. }
            | Self::Delete { path, .. }
            | Self::Increment { path, .. }
            | Self::DeleteRange { path, .. }
            | Self::CreateBucket(path)
            | Self::CreateBucketIfMissing(path)
            | Self::DeleteBucket(path)
            | Self::NextSequence(path)
            | Self::SetSequence { path, .. } => need(Level::Write, path),
            Self::MoveBucket { path, to } => {
                need(Level::Write, path)?;
                need(Level::Write, to)
            }
            Self::Txn(txn) => txn.needs(need),
        }
    }
}

impl Needs for StreamRequest {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::Scan(scan) | Self::ListBuckets(scan) => need(Level::Read, &scan.path),
            Self::BucketStat(path) => need(Level::Read, path),
            Self::Watch(watch) => need(Level::Read, &watch.path),
            Self::Backup => need(Level::Read, &Path::ROOT),
            Self::Shrink => need(Level::Admin, &Path::ROOT),
            Self::Txn(txn) => txn.needs(need),
        }
    }
}

impl Needs for Txn {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        for condition in self.conditions() {
            need(Level::Read, &condition.path)?;
        }
        for request in self.requests() {
            match request {
                Request::Read(read) => read.needs(need)?,
                Request::Write(write) => write.needs(need)?,
                Request::Stream(stream) => stream.needs(need)?,
                Request::OfSnapshot { read, .. } => read.needs(need)?,
                // What concerns the connection is no part of a transaction.
                Request::Session(_) => {}
            }
        }
        Ok(())
    }
}

impl Needs for SnapshotRead {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::Read(read) => read.needs(need),
            Self::Stream(stream) => stream.needs(need),
        }
    }
}

impl Needs for SnapshotRequest {
    /// To hold a state open shows nothing of it. It keeps its pages from being used again, for as long as a lease is.
    fn needs(&self, _need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::Open { .. } | Self::Close { .. } => Ok(()),
        }
    }
}

impl Needs for OperatorRequest {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        match self {
            Self::ListClients { .. } | Self::KillClient { .. } | Self::SlowLog { .. } | Self::ResetSlowLog => {
                need(Level::Admin, &Path::ROOT)
            }
        }
    }
}

/// A hash is a bucket of its own; everything else concerns the bucket that the database is.
impl Needs for RespWork {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        for call in self.calls() {
            let level = match call.spec.kind {
                Kind::Session => continue,
                Kind::Read | Kind::Walk => Level::Read,
                // To watch a key tells whether it has changed.
                Kind::Write if call.spec.command == RespCommand::Watch => Level::Read,
                Kind::Write => Level::Write,
            };
            for path in call.places() {
                need(level, &path)?;
            }
        }
        Ok(())
    }
}

/// The reading of a bucket by what a dialect does itself.
impl Needs for Path {
    fn needs(&self, need: &mut impl FnMut(Level, &Path) -> Result<(), ErrorReply>) -> Result<(), ErrorReply> {
        need(Level::Read, self)
    }
}
