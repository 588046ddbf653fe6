//! What the wire holds, and until when.

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};

use super::*;

impl Socket for DuplexStream {
    fn reset_when_closed(&self) {}

    fn is_given_up(&self, _missing: usize) -> bool {
        false
    }

    fn handed_over(&self) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn wire(memory: usize) -> (Wire<DuplexStream>, DuplexStream, Arc<Memory>) {
    let (here, there) = duplex(64 * 1024);
    let memory = Arc::new(Memory::new(memory));
    (Wire::new(here, Arc::clone(&memory)), there, memory)
}

#[tokio::test]
async fn what_a_reply_holds_is_held_until_its_buffer_is_gone() {
    let (mut wire, mut there, memory) = wire(2 << 20);
    wire.hold_output(Arc::new(memory.try_take(1 << 20).unwrap()));
    wire.output.extend_from_slice(&vec![b'x'; 1 << 20]);
    let mut taken = [0; 8192];
    while wire.output.len() > OWN_OUTPUT {
        wire.flush().await.unwrap();
        there.read_exact(&mut taken).await.unwrap();
    }
    let more = Arc::new(memory.try_take(1024).unwrap());
    wire.hold_output(Arc::clone(&more));
    wire.hold_output(more);
    wire.output.extend_from_slice(b"y");
    assert_eq!((memory.used(), wire.output_held.len()), ((1 << 20) + 1024, 2), "the buffer is still as large");
    while !wire.output.is_empty() {
        wire.flush().await.unwrap();
        let _ = there.read(&mut taken).await.unwrap();
    }
    wire.flush().await.unwrap();
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn buffers_and_their_leases_go_when_they_are_empty() {
    let (mut wire, mut there, memory) = wire(2 << 20);
    assert!(wire.make_output_room(1 << 20));
    wire.output.extend_from_slice(&vec![b'x'; 1 << 20]);
    assert_eq!(memory.used(), 1 << 20);
    let reader = tokio::spawn(async move {
        let mut all = vec![0; 1 << 20];
        there.read_exact(&mut all).await.map(|_| there)
    });
    while !wire.output.is_empty() {
        wire.transfer(false).await.unwrap();
    }
    let mut there = reader.await.unwrap().unwrap();
    assert_eq!((memory.used(), wire.output.capacity()), (0, 0));

    there.write_all(b"request").await.unwrap();
    wire.transfer(true).await.unwrap();
    assert_eq!(wire.input.bytes, &b"request"[..]);
    assert!(wire.input.bytes.capacity() < 1024, "and a small client takes little");
    wire.input.bytes.clear();
    let nothing = timeout(Duration::from_millis(1), wire.transfer(true)).await;
    assert!(nothing.is_err());
    assert_eq!(wire.input.bytes.capacity(), 0);
}

#[tokio::test]
async fn a_long_item_takes_its_memory_with_it_and_leaves_what_came_behind_it() {
    let (mut wire, mut there, memory) = wire(1 << 20);
    assert!(wire.make_input_room(OWN_INPUT) && memory.used() == 0, "short ones need none");
    assert!(!wire.make_input_room(2 << 20));
    assert!(wire.make_input_room(100 * 1024));
    assert_eq!(memory.used(), 100 * 1024);
    let writer = tokio::spawn(async move { there.write_all(&vec![b'x'; 100 * 1024 + 5]).await.map(|()| there) });
    while wire.input.bytes.len() < 100 * 1024 + 5 {
        wire.transfer(true).await.unwrap();
    }
    writer.await.unwrap().unwrap();
    let item = wire.input.bytes.split_to(100 * 1024).freeze();
    let item = wire.input.settle(item);
    assert_eq!((memory.used(), &wire.input.bytes[..]), (100 * 1024, &b"xxxxx"[..]));
    assert!(wire.input.bytes.capacity() < 1024);
    drop(item);
    assert_eq!(memory.used(), 0);
}

#[test]
fn without_memory_a_client_has_its_own_room_for_replies_and_so_has_a_stranger() {
    let (mut wire, _there, memory) = wire(OUTPUT_FULL);
    wire.set_strangers(true);
    assert_eq!((wire.output_room(), memory.used()), (OWN_OUTPUT, 0));
    wire.set_strangers(false);
    assert_eq!(wire.output_room(), OUTPUT_FULL);
    drop(wire.output_lease.take());
    let _all = memory.try_take(OUTPUT_FULL).unwrap();
    assert_eq!(wire.output_room(), OWN_OUTPUT);
    wire.output.extend_from_slice(&[0; OWN_OUTPUT]);
    assert_eq!(wire.output_room(), 0);
}

/// A socket that keeps what is written to it until it is flushed, as one does that encrypts.
#[derive(Debug)]
struct Keeping(DuplexStream, Vec<u8>);

impl AsyncRead for Keeping {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Keeping {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().1.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self(socket, kept) = self.get_mut();
        while !kept.is_empty() {
            let written = ready!(Pin::new(&mut *socket).poll_write(cx, kept))?;
            kept.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

impl Socket for Keeping {
    fn reset_when_closed(&self) {}

    fn is_given_up(&self, _missing: usize) -> bool {
        false
    }

    fn handed_over(&self) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn keeps_back(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn what_the_socket_keeps_is_not_sent_yet_and_it_is_told_when_it_is() {
    let (here, mut there) = duplex(1024);
    let mut wire = Wire::new(Keeping(here, Vec::new()), Arc::new(Memory::new(1 << 20)));
    wire.output.extend_from_slice(&[b'x'; 2048]);
    assert!(wire.flush().await.unwrap());
    assert!(wire.output.is_empty() && !wire.is_all_sent());
    assert!(timeout(Duration::from_millis(1), wire.transfer(false)).await.is_err(), "nobody takes it");
    let mut taken = vec![0; 2048];
    let (read, moved) = tokio::join!(there.read_exact(&mut taken), wire.transfer(false));
    read.unwrap();
    moved.unwrap();
    assert!(wire.is_all_sent());
}

#[test]
fn who_holds_memory_that_others_need_is_to_take_what_he_is_given() {
    let (mut wire, _there, memory) = wire(1 << 20);
    assert!(wire.make_output_room(100 * 1024));
    wire.output.extend_from_slice(&vec![b'x'; 100 * 1024]);
    assert!(!wire.is_output_dear(), "there is enough");
    let rest = memory.try_take(memory.left() - OUTPUT_FULL + 1).unwrap();
    assert!(wire.is_output_dear() && !wire.is_output_large());
    drop(rest);
    assert!(!wire.is_output_dear());
}
