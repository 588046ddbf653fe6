//! What is claimed of those who are not let in: whatever they send, nothing changes, and they are told nothing that is not
//! for everybody. The test beside this and the fuzz target `strangers` make them send things.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use boltkv_protocol::{Dialect, FrameCodec};
use boltkv_server::{Config, Grant, Listen, Proof, Server};
use boltkv_storage::{Db, Options};
use bytes::BytesMut;
use tempfile::TempDir;
use tokio_util::codec::Decoder as _;

/// In every name and value of the database, and in the token that lets in.
const SECRET: &str = "q7Zx4W";

/// Longer than any server takes that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with a token that nobody says. It lives as long as the process.
pub(crate) struct Guarded {
    _folder: TempDir,
    path: PathBuf,
    db: Db,
    before: (u64, Vec<Vec<u8>>),
    /// The lines of HELP, which everybody may ask for.
    help: BTreeSet<Vec<u8>>,
}

impl Guarded {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a socket");
        let (path, db) = (folder.path().join("socket"), database());
        let mut config = Config::for_db(db.clone());
        config.listen = vec![Listen::Unix { path: path.clone(), mode: 0o600 }];
        config.grants = Some(vec![Grant {
            name: format!("name-{SECRET}"),
            proof: Proof::Token(Grant::digest(format!("token-{SECRET}").as_bytes())),
            rights: vec!["admin".parse().expect("it is a right")],
            expires: None,
        }]);
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
            runtime.block_on(async {
                let server = Server::bind(config).await.expect("the server starts");
                tell.send(()).expect("somebody waits for it");
                server.run(std::future::pending()).await.expect("the server does not end");
            });
        });
        told.recv_timeout(PATIENCE).expect("the server starts");
        let before = contents(&db);
        let mut guarded = Self { _folder: folder, path, db, before, help: BTreeSet::new() };
        let help = guarded.exchange(1 << 20, b"HELP\r\n");
        guarded.help = help.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        assert!(guarded.help.len() > 20, "{}", help.escape_ascii());
        guarded
    }

    /// Has a stranger send this, so many bytes at a time, and looks at what he is told and what is changed.
    pub(crate) fn try_to_get_in(&self, step: usize, sent: &[u8]) {
        let told = self.exchange(step, sent);
        let start = |bytes: &[u8]| bytes[..bytes.len().min(500)].escape_ascii().to_string();
        let show = || format!("sent {}, told {}", start(sent), start(&told));
        let holds = |text: &[u8]| text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!holds(&told) || holds(sent), "{}", show());
        match sent.first().map(|first| Dialect::of(*first)) {
            Some(Dialect::Binary) => {
                let (mut frames, mut codec) = (BytesMut::from(&told[..]), FrameCodec::default());
                while let Some(frame) = codec.decode(&mut frames).expect("replies are frames") {
                    assert!(frame.is_reply() && frame.op != 0, "a request was done: {}", show());
                }
                assert!(frames.is_empty(), "{}", show());
            }
            Some(Dialect::Text) => {
                let is_for_all =
                    |line: &&[u8]| line.starts_with(b"ERR ") || *line == b"OK" || self.help.contains(*line);
                let other = told.split(|byte| *byte == b'\n').find(|line| !is_for_all(line));
                assert!(other.is_none(), "{:?}: {}", other.map(|line| line.escape_ascii().to_string()), show());
            }
            Some(Dialect::Resp) => {
                let is_for_all = |line: &&[u8]| line.starts_with(b"-") || [&b""[..], b"+OK", b"+RESET"].contains(line);
                let other =
                    told.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).find(|line| !is_for_all(line));
                assert!(other.is_none(), "{:?}: {}", other.map(|line| line.escape_ascii().to_string()), show());
            }
            Some(Dialect::Tls) => assert!(told.len() <= 7, "an alert: {}", show()),
            None => assert!(told.is_empty(), "{}", show()),
        }
        assert_eq!(contents(&self.db), self.before, "{}", show());
    }

    /// Sends this, ends the sending side, and answers all that comes back.
    fn exchange(&self, step: usize, sent: &[u8]) -> Vec<u8> {
        let mut socket = UnixStream::connect(&self.path).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("it is a time");
        socket.set_write_timeout(Some(PATIENCE)).expect("it is a time");
        for piece in sent.chunks(step.max(1)) {
            // A server that has heard enough closes.
            if socket.write_all(piece).is_err() {
                break;
            }
        }
        let _ = socket.shutdown(Shutdown::Write);
        let mut told = Vec::new();
        match socket.read_to_end(&mut told) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the server does not end the connection: {error}"),
        }
        told
    }
}

fn database() -> Db {
    let db = Options::new().open_in_memory().expect("there is memory");
    let made = db.update(|tx| {
        let secret = |name: &str| format!("{name}-{SECRET}");
        for name in ["default".to_owned(), secret("bucket")] {
            let mut bucket = tx.create_bucket(&name)?;
            bucket.put("k", secret("value"))?;
            bucket.put("n", "7")?;
            bucket.put(secret("key"), "v")?;
            bucket.create_bucket(secret("within"))?.put("k", secret("value"))?;
        }
        Ok(())
    });
    made.expect("there is memory");
    db
}

/// The newest transaction, and all keys and values.
fn contents(db: &Db) -> (u64, Vec<Vec<u8>>) {
    let tx = db.begin().expect("it is open");
    let mut all = Vec::new();
    for name in ["default".to_owned(), format!("bucket-{SECRET}")] {
        let bucket = tx.bucket(&name).expect("it is there");
        for entry in &bucket {
            all.push(format!("{:?}", entry.expect("it is sound")).into_bytes());
        }
    }
    (db.stats().txid, all)
}
