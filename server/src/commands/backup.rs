//! BACKUP: the file as of one transaction, piece by piece.
//!
//! A thread of its own reads the pages, which may have to come from the disk. It runs ahead of the stream by a few pieces and
//! then waits. So a backup takes nobody's turn, and one that its client does not read costs a thread, a little memory and its
//! snapshot, until the stream is given up. What all of them cost is bounded by their number.

use std::io::{self, Write};
use std::sync::Arc;
use std::task::{Context, Poll};

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};
use boltkv_storage::{Db, Tx};
use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::places::{Place, Places, start_thread};
use super::refusal::refusal;
use super::results::ReplyRoom;
use super::scan::Source;
use crate::memory::Lease;

/// The longest piece, in bytes.
const PIECE: usize = 64 * 1024;
/// So many pieces are read before the first of them is taken.
const AHEAD: usize = 8;
/// Bytes that a backup takes of the server's memory: what is read ahead, and what the engine reads at a time.
const MEMORY: usize = 2 << 20;
/// No piece is cut shorter than this, in bytes, only because the connection has little room left.
const SHORT: usize = 4 * 1024;

/// The backups that may be under way at a time, of all connections.
#[derive(Debug, Clone)]
pub(crate) struct Backups {
    pub(crate) places: Places,
}

/// A backup that is under way.
#[derive(Debug)]
pub(crate) struct BackupRun {
    parts: Receiver<Part>,
    next: Option<Part>,
    /// What it has of the server. Its thread has it too: it may still wait for the disk when the stream has ended.
    _held: Arc<(Lease, Place)>,
}

/// What the thread has for the stream.
#[derive(Debug)]
enum Part {
    Piece(Bytes),
    End { total: u64, crc32c: u32 },
    Failed(ErrorReply),
}

impl Backups {
    /// At most so many.
    pub(crate) fn new(most: u32) -> Self {
        Self { places: Places::new(most) }
    }

    /// Begins one, of the newest state.
    pub(super) fn start(&self, db: &Db, room: &ReplyRoom) -> Result<BackupRun, ErrorReply> {
        let place = self.places.take().ok_or_else(|| self.places.all_taken("backups", &["--max-backups"]))?;
        let memory = room.try_take(MEMORY).ok_or_else(|| room.no_memory("a backup"))?;
        let held = Arc::new((memory, place));
        let (sender, parts) = channel(AHEAD);
        start_thread("boltkv-backup", "for a backup", {
            let (held, db) = (Arc::clone(&held), db.clone());
            move || {
                match begin(&db) {
                    Ok(tx) => read(tx, &sender),
                    Err(error) => drop(sender.blocking_send(Part::Failed(refusal(error)))),
                }
                drop((db, held));
            }
        })?;
        Ok(BackupRun { parts, next: None, _held: held })
    }
}

impl BackupRun {
    /// How many bytes a piece needs room for at the least, that it is worth a frame.
    pub(crate) fn least(&self) -> usize {
        match &self.next {
            Some(Part::Piece(piece)) => piece.len().min(SHORT),
            _ => 0,
        }
    }

    /// The next part, a piece of at most `most` bytes; `None` where it is still being read.
    pub(crate) fn take(&mut self, most: usize) -> Result<Option<Reply>, ErrorReply> {
        match self.next.take() {
            None => Ok(None),
            Some(Part::Piece(mut piece)) => {
                let now = piece.split_to(most.min(piece.len()));
                if !piece.is_empty() {
                    self.next = Some(Part::Piece(piece));
                }
                Ok(Some(Reply::Piece(now)))
            }
            Some(Part::End { total, crc32c }) => Ok(Some(Reply::BackedUp { total, crc32c })),
            Some(Part::Failed(error)) => Err(error),
        }
    }
}

impl Source for BackupRun {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.next.is_none() {
            match self.parts.poll_recv(cx) {
                Poll::Pending => return Poll::Pending,
                // A thread that has ended without an end has panicked.
                Poll::Ready(part) => self.next = Some(part.unwrap_or_else(|| Part::Failed(broken_off()))),
            }
        }
        Poll::Ready(())
    }
}

fn broken_off() -> ErrorReply {
    ErrorReply::new(ErrorCode::StorageFailed, "the backup broke off: a defect of the server")
}

/// Begins on a state that the file has on the disk, which its journal names, so that a restore can go on from it. Where that
/// cannot be had, because the disk is full or has failed, a backup is wanted all the more: of the newest state, then.
fn begin(db: &Db) -> boltkv_storage::Result<Tx> {
    db.begin_checkpointed().or_else(|_| db.begin())
}

/// Reads all of the snapshot, until it ends or nobody wants it any more.
fn read(tx: Tx, to: &Sender<Part>) {
    let mut out = Pieces { to, crc32c: 0 };
    let written = tx.write_to(&mut out);
    // Before the client is told of the end, so that its pages are free by then.
    drop(tx);
    let crc32c = out.crc32c;
    let last = written.map_or_else(|error| Part::Failed(refusal(error)), |total| Part::End { total, crc32c });
    // Where nobody wants it, that is why it has ended.
    let _ = to.blocking_send(last);
}

/// Hands over what is written to it.
struct Pieces<'a> {
    to: &'a Sender<Part>,
    crc32c: u32,
}

impl Write for Pieces<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = data.get(..PIECE).unwrap_or(data);
        self.crc32c = crc32c::crc32c_append(self.crc32c, piece);
        let given = self.to.blocking_send(Part::Piece(Bytes::copy_from_slice(piece)));
        given.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use boltkv_storage::Options;

    use super::*;
    use crate::memory::Memory;

    fn database() -> Db {
        let db = Options::new().open_in_memory().unwrap();
        db.update(|tx| tx.create_bucket("b")?.put("large", vec![7; 4 * AHEAD * PIECE])).unwrap();
        db
    }

    fn room(bytes: usize) -> ReplyRoom {
        ReplyRoom::new(Arc::new(Memory::new(bytes)), 1 << 20)
    }

    /// The whole of a backup, taken in pieces of at most `most` bytes.
    async fn whole(run: &mut BackupRun, most: usize) -> (Vec<u8>, Reply) {
        let mut file = Vec::new();
        loop {
            poll_fn(|cx| run.poll_ready(cx)).await;
            match run.take(most).unwrap().unwrap() {
                Reply::Piece(piece) => {
                    assert!(piece.len() <= most);
                    file.extend_from_slice(&piece);
                }
                end => return (file, end),
            }
        }
    }

    #[tokio::test]
    async fn a_backup_is_the_snapshot_in_pieces_of_whatever_length_there_is_room_for() {
        let (db, room) = (database(), room(8 << 20));
        let mut expected = Vec::new();
        db.begin().unwrap().write_to(&mut expected).unwrap();
        for most in [1_000, PIECE, 1 << 20] {
            let mut run = Backups::new(1).start(&db, &room).unwrap();
            let (file, end) = whole(&mut run, most).await;
            assert!(file == expected);
            let (total, crc32c) = (expected.len() as u64, crc32c::crc32c(&expected));
            assert_eq!(end, Reply::BackedUp { total, crc32c });
        }
    }

    #[tokio::test]
    async fn one_that_is_given_up_lets_go_of_its_snapshot_its_memory_and_its_place() {
        let db = database();
        let (memory, backups) = (Arc::new(Memory::new(8 << 20)), Backups::new(1));
        let room = ReplyRoom::new(Arc::clone(&memory), 1 << 20);
        let mut run = backups.start(&db, &room).unwrap();
        poll_fn(|cx| run.poll_ready(cx)).await;
        assert_eq!((memory.used(), backups.places.taken(), db.stats().open_readers), (MEMORY, 1, 1));
        assert_eq!(backups.start(&db, &room).unwrap_err().code, ErrorCode::Overloaded);
        drop(run);
        backups.places.end().await;
        assert_eq!((memory.used(), db.stats().open_readers), (0, 0));
        assert_eq!(backups.start(&db, &room).unwrap_err().code, ErrorCode::Overloaded, "after the end there are none");
    }

    #[test]
    fn without_memory_there_is_no_backup_and_no_place_is_lost() {
        let (db, backups) = (database(), Backups::new(1));
        assert_eq!(backups.start(&db, &room(MEMORY - 1024)).unwrap_err().code, ErrorCode::Overloaded);
        assert_eq!(backups.places.taken(), 0);
        assert_eq!(Backups::new(0).start(&db, &room(8 << 20)).unwrap_err().code, ErrorCode::Overloaded);
    }
}
