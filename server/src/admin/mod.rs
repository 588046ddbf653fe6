//! The address for those who look after the server, and no clients: whether it lives, whether it is ready, and what it
//! measures, over HTTP.
//!
//! It answers from before the database is opened until the last connection is gone. What strangers can make it hold is
//! bounded: so many connections, of which each is one short request.

mod gate;
mod http;
mod latches;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tracing::info;

use crate::Error;
use crate::config::Listen;
use crate::shared::Shared;
pub(crate) use gate::Gate;
use latches::Latches;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 64;

/// The address, which is answered at until this is dropped.
#[derive(Debug)]
pub(crate) struct Admin {
    address: SocketAddr,
    latches: Arc<Latches>,
    task: JoinHandle<()>,
}

impl Admin {
    /// Takes the address, and answers there from now on.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(crate) fn start(address: SocketAddr, gate: Gate) -> Result<Self, Error> {
        let refused = |source| Error::Listen { address: Listen::Tcp(address), source };
        let socket = listen(address).map_err(refused)?;
        let address = socket.local_addr().map_err(refused)?;
        let latches = Arc::new(Latches::default());
        let task = tokio::spawn(http::serve(socket, Arc::clone(&latches), gate));
        info!(%address, "admin");
        Ok(Self { address, latches, task })
    }

    /// The address, with the port that it was given.
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The database is open, and clients can connect. Nothing of it is kept: a server that stops lets go of all.
    pub(crate) fn opened(&self, shared: &Arc<Shared>) {
        self.latches.opened(Arc::downgrade(shared));
    }

    /// The server has begun to stop.
    pub(crate) fn stopping(&self) {
        self.latches.stopping();
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again takes its port while connections of the one before it are still being forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
