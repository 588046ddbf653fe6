//! A server that does nothing but echo: what the shell, `nc` and a connection cost by themselves.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts it on loopback, on a thread that ends with the program. Gives its port.
///
/// # Errors
/// It cannot listen.
pub(super) fn start() -> io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Whoever does not get his bytes back says so himself.
            let _ = echo(&client);
        }
    });
    Ok(port)
}

fn echo(client: &TcpStream) -> io::Result<u64> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    io::copy(&mut &*client, &mut &*client)
}
