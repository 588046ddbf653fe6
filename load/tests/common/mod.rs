//! A boltkv server in this process, others in processes of their own, and a run that is told to nobody.
#![allow(dead_code, unreachable_pub, reason = "every test binary compiles all of this and uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

#[path = "../../../server/tests/common/running.rs"]
mod running;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use boltkv_load::{Dialect, Error, Measured, Server, Target, Work, run};
use boltkv_protocol::Token;

pub use running::{PATIENCE, TestServer};

impl TestServer {
    pub fn server(&self) -> Server {
        at(Target::Boltkv, self.address)
    }

    /// The same, asked as Redis is.
    pub fn resp(&self) -> Server {
        Server { dialect: Dialect::Resp, ..self.server() }
    }
}

/// A server that is somewhere.
pub fn at(target: Target, address: SocketAddr) -> Server {
    Server {
        target,
        dialect: Dialect::Binary,
        addr: address.to_string(),
        bucket: "bench".parse().unwrap(),
        database: 0,
        timeout: PATIENCE,
        token: Token::NONE,
    }
}

/// A program that serves on a port of this host, until it is dropped.
pub struct Peer {
    child: Child,
    pub address: SocketAddr,
}

impl Peer {
    /// Starts what `command` makes of a free port, and waits until it listens. Another may take the port in between:
    /// then it is tried again.
    pub fn start(command: impl Fn(u16) -> Command) -> Self {
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let mut command = command(address.port());
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut peer = Self { child, address };
            let given_up = Instant::now() + PATIENCE;
            while peer.child.try_wait().unwrap().is_none() && Instant::now() < given_up {
                if TcpStream::connect(address).is_ok_and(|stream| is_of_another(&stream)) {
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

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run to its end.
pub fn measure(server: &Server, work: &Work) -> Result<Measured, Error> {
    run(server, work, &AtomicBool::new(false), &mut |_| {})
}
