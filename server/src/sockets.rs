//! Where a server listens: ports, and sockets in the file system.

use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::SocketAddr as StdSocketAddr;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::config::Listen;
use crate::peer::Peer;
use crate::session::Stream;

/// Connections that wait to be accepted, as a burst of them does; the system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// The sockets that a server listens on.
#[derive(Debug)]
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// Which of them is asked first, so that none is passed over for ever.
    first: AtomicUsize,
}

/// What may be spoken on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// Every dialect: the first byte says which.
    Any,
    /// The Redis dialect only.
    Redis,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener, Speaks),
    Unix { socket: UnixListener, _name: SocketFile },
}

/// A socket's name in the file system, which goes with it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Which file that is; another may have taken its name.
    inode: (u64, u64),
}

impl Sockets {
    /// Listens everywhere, and says where that is: with the port that the system chose.
    ///
    /// # Errors
    /// Where that was not possible.
    pub(crate) fn open(listen: &[Listen]) -> Result<(Self, Vec<Listen>), (Listen, io::Error)> {
        let (mut all, mut addresses) = (Vec::new(), Vec::new());
        for listen in listen {
            let (socket, address) = Socket::open(listen).map_err(|error| (listen.clone(), error))?;
            all.push(socket);
            addresses.push(address);
        }
        Ok((Self { all, first: AtomicUsize::new(0) }, addresses))
    }

    /// Waits for the next connection, from wherever.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Peer, Speaks)> {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, Peer, Speaks)>> {
        let first = self.first.fetch_add(1, Relaxed) % self.all.len().max(1);
        let (before, from) = self.all.split_at(first);
        for socket in from.iter().chain(before) {
            if let Poll::Ready(accepted) = socket.poll_accept(cx) {
                return Poll::Ready(accepted);
            }
        }
        Poll::Pending
    }
}

impl Socket {
    fn open(listen: &Listen) -> io::Result<(Self, Listen)> {
        match listen {
            Listen::Tcp(address) => {
                let socket = listen_on_port(*address)?;
                let address = socket.local_addr()?;
                Ok((Self::Tcp(socket, Speaks::Any), Listen::Tcp(address)))
            }
            Listen::Redis(address) => {
                let socket = listen_on_port(*address)?;
                let address = socket.local_addr()?;
                Ok((Self::Tcp(socket, Speaks::Redis), Listen::Redis(address)))
            }
            Listen::Unix { path, mode } => {
                let (socket, name) = listen_on_file(path, *mode)?;
                Ok((Self::Unix { socket, _name: name }, listen.clone()))
            }
        }
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, Peer, Speaks)>> {
        match self {
            Self::Tcp(socket, speaks) => {
                socket.poll_accept(cx).map_ok(|(stream, peer)| (Stream::Tcp(stream), Peer::Tcp(peer), *speaks))
            }
            Self::Unix { socket, .. } => socket.poll_accept(cx).map_ok(|(stream, _)| {
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                (Stream::Unix(stream), Peer::Unix(user), Speaks::Any)
            }),
        }
    }
}

fn listen_on_port(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again takes its port while connections of the one before it are still being forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A socket under another name first, until who may use it is set: nobody gets in before. What a server that has ended left
/// behind is replaced; one that may be somebody's, or another kind of file, is not.
fn listen_on_file(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    if let Ok(there) = fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is a file of that name, and it is no socket",
            ));
        }
        expect_left_behind(path)?;
    }
    // One that is too long could have the name, but nobody could connect to it.
    StdSocketAddr::from_pathname(path)?;
    path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // Short, so that it is not longer than that of the socket, which may be as long as there can be.
    let temporary = path.with_file_name(format!(".{}.s", process::id()));
    // One that is left of a process of the same number.
    if fs::symlink_metadata(&temporary).is_ok_and(|there| there.file_type().is_socket()) {
        let _ = fs::remove_file(&temporary);
    }
    let socket = UnixListener::bind(&temporary)?;
    let placed = fs::set_permissions(&temporary, Permissions::from_mode(mode)).and_then(|()| {
        let there = fs::symlink_metadata(&temporary)?;
        fs::rename(&temporary, path)?;
        Ok(SocketFile { path: path.to_owned(), inode: (there.dev(), there.ino()) })
    });
    match placed {
        Ok(file) => Ok((socket, file)),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

/// Only a connection that is refused shows that nobody listens. One that would have to wait, is not allowed, or is of another
/// kind, does not. Nobody is waited for.
fn expect_left_behind(path: &Path) -> io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let why = match net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(()),
        Ok(()) | Err(Errno::AGAIN) => "somebody listens there".to_owned(),
        Err(error) => {
            format!("there is a socket of that name, and whether somebody listens there cannot be told: {error}")
        }
    };
    Err(io::Error::new(io::ErrorKind::AddrInUse, why))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |there: fs::Metadata| (there.dev(), there.ino()) == self.inode;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // A name that stays leads nowhere, and the next server replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_replaces_what_is_left_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let (socket, file) = listen_on_file(&path, 0o660).unwrap();
        assert_eq!(mode(&path), 0o660);
        let taken = listen_on_file(&path, 0o600).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop((socket, file));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(&path, "not a socket").unwrap();
        assert_eq!(listen_on_file(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_name_that_another_server_has_taken_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (old, file) = listen_on_file(&path, 0o600).unwrap();
        drop(old);
        let (_new, _file) = listen_on_file(&path, 0o600).unwrap();
        drop(file);
        assert!(UnixStream::connect(&path).is_ok());
    }

    // Promises: ops-unix.
    #[tokio::test]
    async fn a_socket_that_may_be_somebodys_is_not_taken_from_him_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (busy, other) = (folder.path().join("busy"), folder.path().join("other"));
        let (_busy, _other) = (busy_listener(&busy), UnixDatagram::bind(&other).unwrap());
        let taken = listen_on_file(&busy, 0o600).unwrap_err();
        assert_eq!(taken.to_string(), "somebody listens there");
        let of_another_kind = listen_on_file(&other, 0o600).unwrap_err();
        assert!(of_another_kind.to_string().contains("cannot be told"), "{of_another_kind}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "and nothing of ours stays");
    }

    /// One that has as many connections waiting as it may have: whoever comes now has to wait.
    fn busy_listener(path: &Path) -> impl Sized {
        let flags = SocketFlags::NONBLOCK;
        let new = || net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let (listening, address) = (new(), SocketAddrUnix::new(path).unwrap());
        net::bind(&listening, &address).unwrap();
        net::listen(&listening, 0).unwrap();
        let waiting = iter::repeat_with(new).take_while(|one| net::connect(one, &address).is_ok());
        (waiting.collect::<Vec<_>>(), listening)
    }

    #[tokio::test]
    async fn a_name_may_be_as_long_as_the_system_takes() {
        let folder = tempfile::tempdir().unwrap();
        let room = 107 - folder.path().as_os_str().len() - 1;
        let path = folder.path().join("s".repeat(room));
        assert!(listen_on_file(&path, 0o600).is_ok());
        assert!(listen_on_file(&folder.path().join("s".repeat(room + 1)), 0o600).is_err(), "nobody could connect");
    }
}
