//! Another program that serves, on a port of this host.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long it may take to listen: far more than any does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that serves, until it is dropped.
pub struct Peer {
    child: Child,
    pub address: SocketAddr,
}

impl Peer {
    /// Starts what `command` makes of a free port, and waits until it answers. Another may take the port in between: then it
    /// is tried again; in one program they are started one after the other, or two would be given the same one.
    #[track_caller]
    pub fn start(command: impl Fn(u16) -> Command) -> Self {
        static STARTING: Mutex<()> = Mutex::new(());
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = command(address.port());
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut peer = Self { child, address };
            let given_up = Instant::now() + PATIENCE;
            while peer.child.try_wait().unwrap().is_none() && Instant::now() < given_up {
                if TcpStream::connect(address).is_ok_and(|stream| is_of_another(&stream) && answers(stream)) {
                    return peer;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("it does not start");
    }
}

/// Whether somebody listens there: who connects to a port of the system's choice may be given that port, and meet himself.
fn is_of_another(stream: &TcpStream) -> bool {
    stream.local_addr().ok() != stream.peer_addr().ok()
}

/// Whether anything comes back. Redis does not know the word, and says so.
fn answers(mut stream: TcpStream) -> bool {
    let asked = stream.set_read_timeout(Some(Duration::from_secs(1))).and_then(|()| stream.write_all(b"version\r\n"));
    asked.is_ok_and(|()| stream.read(&mut [0; 1]).is_ok_and(|len| len > 0))
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
