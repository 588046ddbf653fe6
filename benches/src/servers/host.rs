//! A server that is measured: started, loaded, aged, made anew, ended.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use boltkv_load::{Dialect, Limit, Order, Server, Target, Work, run};
use boltkv_protocol::Token;

use super::rows::{Data, KIBI, LARGE, Row, SMALL, Who};
use super::{Files, Plan};
use crate::daemon::{Daemon, Ready};
use crate::shell::{target, tools};
use crate::worker::bytes;

/// With `--quick` there are so many times fewer keys.
const QUICK: u64 = 100;
/// Longer than any answer takes, also to a scan of all beside other load.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// So many times as many overwrites as keys make a file an aged one.
const AGE: u64 = 3;

/// A server that runs.
pub(super) struct Host {
    pub(super) who: Who,
    pub(super) version: String,
    pub(super) folder: PathBuf,
    pub(super) daemon: Daemon,
    /// boltkv's program, where one was named.
    program: Option<PathBuf>,
    addr: String,
    /// What its folder held when it was loaded, for rows that are to begin there.
    pristine: PathBuf,
    loaded: u64,
    aged: u64,
}

impl Host {
    /// Starts a server, and loads what these rows ask for.
    ///
    /// # Errors
    /// It is not there, does not get ready, or refuses what it is loaded with.
    pub(super) fn start(who: Who, plan: &Plan, folder: &Path, rows: &[&Row]) -> Result<Self> {
        let name = who.title().replace([',', ' '], "-");
        let (own, pristine) = (folder.join(&name), folder.join(format!("{name}-loaded")));
        fs::create_dir(&own)?;
        let program = plan.server.clone();
        let (daemon, addr) = start(who, program.as_deref(), &own)?;
        let version = String::new();
        let mut host = Self { who, version, folder: own, daemon, program, addr, pristine, loaded: 0, aged: 0 };
        host.version = host.server(SMALL).version()?;
        for data in [SMALL, KIBI, LARGE] {
            if rows.iter().any(|row| row.data == data && row.who.contains(&who)) {
                host.load(data, plan)?;
            }
        }
        host.aged = bytes(&host.folder)?;
        if who.is_renewed() {
            host.keep()?;
        }
        Ok(host)
    }

    /// Where entries of this size are.
    pub(super) fn server(&self, data: Data) -> Server {
        let target = match self.who {
            Who::Fresh | Who::Aged | Who::NoMemory | Who::Plain => Target::Boltkv,
            Who::Redis => Target::Redis,
            Who::Memcached => Target::Memcached,
        };
        let bucket = format!("bench-{}", data.value_size);
        let bucket = bucket.parse().unwrap_or(boltkv_protocol::Path::ROOT);
        Server {
            target,
            dialect: Dialect::Binary,
            addr: self.addr.clone(),
            bucket,
            database: data.number,
            timeout: PATIENCE,
            token: Token::NONE,
        }
    }

    /// A work over entries of this size.
    pub(super) fn work(data: Data, plan: &Plan) -> Work {
        let keys = if data == SMALL { plan.keys } else { data.keys };
        let keys = scaled(keys, plan);
        Work { keys, value_size: data.value_size..=data.value_size, timeout: PATIENCE, ..Work::default() }
    }

    fn load(&mut self, data: Data, plan: &Plan) -> Result<()> {
        let (server, work) = (self.server(data), Self::work(data, plan));
        server.prepare()?;
        let loading = work.loading(Order::Shuffled);
        self.run(&server, &loading)?;
        self.loaded = bytes(&self.folder)?;
        if self.who == Who::Aged {
            self.overwrite(data, work.keys * AGE, 2, plan)?;
        }
        Ok(())
    }

    /// Does what comes before what a row measures.
    pub(super) fn prepare(&self, row: &Row, plan: &Plan) -> Result<()> {
        row.after.map_or(Ok(()), |sets| self.overwrite(row.data, scaled(sets, plan), 5, plan))
    }

    /// Puts so many keys at random that are there.
    fn overwrite(&self, data: Data, sets: u64, seed: u64, plan: &Plan) -> Result<()> {
        let loading = Self::work(data, plan).loading(Order::Shuffled);
        let limit = Limit::Requests(sets);
        self.run(&self.server(data), &Work { order: Order::Uniform, limit, seed, ..loading })
    }

    fn run(&self, server: &Server, work: &Work) -> Result<()> {
        let measured = run(server, work, &AtomicBool::new(false), &mut |_| {})?;
        if let Some((error, times)) = measured.errors.iter().next() {
            bail!("{} could not be loaded: {times} × {error}", self.who);
        }
        Ok(())
    }

    /// Keeps what the folder holds now, to begin there again. The server is ended for it, so that its file is whole.
    fn keep(&mut self) -> Result<()> {
        self.restart(copy)
    }

    /// Begins again with what was kept.
    pub(super) fn make_anew(&mut self) -> Result<()> {
        self.restart(|folder, pristine| {
            fs::remove_dir_all(folder)?;
            copy(pristine, folder)
        })
    }

    fn restart(&mut self, between: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
        self.daemon.end()?;
        between(&self.folder, &self.pristine)?;
        (self.daemon, self.addr) = start(self.who, self.program.as_deref(), &self.folder)?;
        Ok(())
    }

    /// The groups that boltkv's writer has taken, and the requests in them.
    pub(super) fn groups(&self) -> Option<(f64, f64)> {
        if !self.who.is_boltkv() {
            return None;
        }
        let mut stream = TcpStream::connect(&self.addr).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(b"STATS\r\n").ok()?;
        stream.shutdown(Shutdown::Write).ok()?;
        let mut figures = String::new();
        stream.take(1 << 16).read_to_string(&mut figures).ok()?;
        let figure = |name: &str| {
            let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse().ok()
        };
        Some((figure("write_groups")?, figure("writes")?))
    }

    pub(super) fn files(&self) -> Option<Files> {
        let server = self.who.title().to_owned();
        self.who.is_boltkv().then_some(Files { server, loaded: self.loaded, aged: self.aged })
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.daemon.end()
    }
}

/// So many, or with `--quick` fewer.
fn scaled(all: u64, plan: &Plan) -> u64 {
    if plan.quick { all / QUICK } else { all }
}

/// Starts a server in its folder. Where it listens is told too.
fn start(who: Who, program: Option<&Path>, folder: &Path) -> Result<(Daemon, String)> {
    if who.is_boltkv() {
        let mut serve = Command::new(tools::server_at(program)?);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--db"]).arg(folder.join("bench.db"));
        match who {
            Who::Plain => _ = serve.args(["--journal", "off"]),
            Who::NoMemory => _ = serve.args(["--journal-memory", "0"]),
            _ => {}
        }
        let Ready { daemon, line, .. } = Daemon::start(&mut serve, target::is_ready)?;
        let port = target::port(&line).with_context(|| format!("boltkv tells no port: {line:?}"))?;
        return Ok((daemon, format!("127.0.0.1:{port}")));
    }
    // They cannot be told to find a port by themselves.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let addr = format!("127.0.0.1:{port}");
    if who == Who::Redis {
        let mut serve = Command::new("redis-server");
        serve.args(["--bind", "127.0.0.1", "--port", &port.to_string()]).arg("--dir").arg(folder);
        serve.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        // What it would rewrite meanwhile is not what a row is about.
        serve.args(["--auto-aof-rewrite-percentage", "0"]);
        let ready = Daemon::start(&mut serve, |line| line.contains("Ready to accept connections"));
        let ready = ready.context("redis-server: `apt-get install redis-server`")?;
        return Ok((ready.daemon, addr));
    }
    let mut serve = Command::new("memcached");
    serve.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-m", "1024", "-t", "2", "-u", "nobody"]);
    let daemon = Daemon::start_listening(&mut serve, &addr).context("memcached: `apt-get install memcached`")?;
    Ok((daemon, addr))
}

/// Copies a folder with all in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() { copy(&from, &to)? } else { fs::copy(&from, &to).map(drop)? }
    }
    Ok(())
}
