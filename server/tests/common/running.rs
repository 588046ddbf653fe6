//! A server in the test's own process, on a port that the system chooses. The tests of the load generator have it, too.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use boltkv_server::{AccessHandle, Config, Error, Listen, Server};
use boltkv_storage::{Db, Options};
use tokio::sync::oneshot;

/// Longer than anything takes that works. A test that hangs fails with it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs until it is dropped or stopped.
pub struct TestServer {
    pub address: SocketAddr,
    pub db: Db,
    pub access: AccessHandle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl TestServer {
    /// Serves a new database in memory.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Serves a new database in memory, with the configuration changed.
    pub fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::serve(Options::new().open_in_memory().unwrap(), change)
    }

    /// Serves this database.
    pub fn serve(db: Db, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::for_db(db.clone());
        config.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
        // Whatever sends much at once is handed over on the way.
        config.limits.burst_threads = 1;
        change(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::bind(config).await?;
                tell.send((server.local_addr().unwrap(), server.access())).unwrap();
                server.run(async { drop(stopped.await) }).await
            })
        });
        let (address, access) = told.recv_timeout(PATIENCE).expect("the server starts");
        Self { address, db, access, stop: Some(stop), thread: Some(thread) }
    }

    /// Asks the server to stop, as a signal does, and does not wait.
    pub fn ask_to_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Stops the server and says how that went.
    pub fn stop(mut self) -> Result<(), Error> {
        self.ask_to_stop();
        self.thread.take().expect("it is stopped once").join().expect("the server does not panic")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the server does not panic").expect("the server stops cleanly");
            }
        }
    }
}
