//! A boltkv server in this process, others in processes of their own, and a run that is told to nobody.
#![allow(dead_code, unreachable_pub, reason = "every test binary compiles all of this and uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

pub mod other;
#[path = "../../../server/tests/common/running.rs"]
mod running;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

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

/// A run to its end.
pub fn measure(server: &Server, work: &Work) -> Result<Measured, Error> {
    run(server, work, &AtomicBool::new(false), &mut |_| {})
}
