//! A real Redis, in a folder of its own, which is ended with the test.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::PATIENCE;
use crate::common::raw_resp::RawResp;

pub(crate) struct Redis {
    process: Child,
    socket: PathBuf,
    _folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("redis.sock");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--dir"]).arg(folder.path());
        command.arg("--unixsocket").arg(&socket).stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().expect("redis-server is installed: `apt-get install redis-server`");
        Self { process, socket, _folder: folder }
    }

    /// Connects, as soon as it listens.
    pub(crate) fn connect(&self) -> RawResp {
        let started = Instant::now();
        let socket = loop {
            match UnixStream::connect(&self.socket) {
                Ok(socket) => break socket,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    assert!(started.elapsed() < PATIENCE, "redis-server does not listen");
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        RawResp::over(socket)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
