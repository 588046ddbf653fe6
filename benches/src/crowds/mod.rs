//! A server beside crowds: thousands who stand there, who say what they say a byte a second, who take nothing, or who come
//! and go without pause; and what four clients wait meanwhile that want little.

mod crowd;
mod guard;
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use boltkv_load::{Dialect, Limit, Op, Order, Server, Target, Work};
use boltkv_protocol::{Path, Token};

use crate::daemon::{Daemon, Ready};
use crate::measure::progress;
use crate::shell::{target, tools};
pub use crowd::Kind;
use crowd::{Crowd, Place};
use guard::Guard;
pub use table::{HEAD, line};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests a second of those who want little, all together.
const RATE: u64 = 1_000;

/// What is measured, and how.
#[derive(Debug)]
pub struct Plan {
    /// Only crowds of these names, or whose names begin so; empty: all.
    pub only: Vec<String>,
    /// How long each crowd is there.
    pub time: Duration,
    /// How many a standing crowd has.
    pub size: usize,
    /// boltkv's program; `None`: that beside this one.
    pub server: Option<PathBuf>,
    /// Where files are made; on the disk to be measured.
    pub folder: PathBuf,
}

/// A crowd, and what came of it.
#[derive(Debug)]
pub struct Row {
    kind: Kind,
    /// Connections that the server had at the end, those of the four among them.
    connections: u64,
    /// Bytes of the server's own memory, before the crowd came and while it was there.
    memory: [u64; 2],
    /// What was done by a crowd that does something, a second.
    rate: Option<f64>,
    get: [Duration; 3],
    set: [Duration; 3],
    /// Requests of the four that failed, or could not be sent when they were due.
    missed: u64,
}

/// Measures, and tells each row when it is known.
///
/// # Errors
/// The server does not start, answer or end; there is no `openssl`; those of files.
pub fn measure(plan: &Plan, tell: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let program = tools::server_at(plan.server.as_deref())?;
    crowd::raise_open_files()?;
    let chosen = |kind: &Kind| plan.only.is_empty() || plan.only.iter().any(|name| kind.name().starts_with(&**name));
    for kind in Kind::ALL.into_iter().filter(chosen) {
        progress(&format!("crowds: {}", kind.name()));
        tell(&row(kind, plan, &program).with_context(|| kind.name().to_owned())?)?;
    }
    progress("");
    Ok(())
}

fn row(kind: Kind, plan: &Plan, program: &std::path::Path) -> Result<Row> {
    let folder = tempfile::tempdir_in(&plan.folder)?;
    let key = if kind == Kind::GreetingsRsa { guard::RSA } else { guard::P256 };
    let guard = (kind.is_of_strangers() || kind.is_encrypted()).then(|| Guard::make(program, folder.path(), key));
    let guard = guard.transpose()?;
    let mut serve = Command::new(program);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--memory", "256MiB", "--db"]).arg(folder.path().join("crowd.db"));
    if let Some(guard) = &guard {
        guard.tell(&mut serve, kind.is_of_strangers());
    }
    let Ready { daemon, line, .. } = Daemon::start(&mut serve, target::is_ready)?;
    let port = target::port(&line).with_context(|| format!("boltkv tells no port: {line:?}"))?;
    let addr = format!("127.0.0.1:{port}");
    let token = guard.as_ref().filter(|_| kind.is_of_strangers()).map_or(Token::NONE, Guard::token);
    let server = Server {
        target: Target::Boltkv,
        dialect: Dialect::Binary,
        addr: addr.clone(),
        bucket: Path::from_names(["crowds"])?,
        database: 0,
        timeout: PATIENCE,
        token,
    };
    server.prepare()?;
    let work = Work {
        mix: "get:90+set:10".parse()?,
        keys: 10_000,
        connections: 4,
        rate: Some(RATE),
        limit: Limit::Time(plan.time),
        ..Work::default()
    };
    load(&server, &work.loading(Order::Sequential))?;
    let memory = || daemon.resident().map_or(0, |resident| resident.anon);
    let before = memory();
    let tls = guard.as_ref().map(Guard::client).transpose()?;
    let crowd = Crowd::gather(kind, &Place::new(addr, tls)?, plan.size)?;
    let done_before = crowd.done();
    let measured = load(&server, &work)?;
    let done = crowd.done() - done_before;
    let connections = daemon_connections(&server)?;
    let row = Row {
        kind,
        connections,
        memory: [before, memory()],
        #[expect(clippy::cast_precision_loss, reason = "a count far below 2^52")]
        rate: kind.is_flood().then(|| done as f64 / measured.elapsed.as_secs_f64()),
        get: times(&measured, Op::Get),
        set: times(&measured, Op::Set),
        missed: measured.failed() + measured.unsent,
    };
    crowd.leave();
    daemon.stop()?;
    Ok(row)
}

fn load(server: &Server, work: &Work) -> Result<boltkv_load::Measured> {
    Ok(boltkv_load::run(server, work, &std::sync::atomic::AtomicBool::new(false), &mut |_| {})?)
}

/// The median, p99 and the longest.
fn times(measured: &boltkv_load::Measured, op: Op) -> [Duration; 3] {
    let latencies = measured.of.get(&op).map(|of| &of.latencies);
    [0.5, 0.99, 1.0].map(|part| Duration::from_nanos(latencies.map_or(0, |all| all.value_at_quantile(part))))
}

/// How many connections the server has, as it tells one more.
fn daemon_connections(server: &Server) -> Result<u64> {
    let figures = crowd::say(&server.addr, &server.token, "STATS")?;
    let line = figures.lines().find_map(|line| line.strip_prefix("connections "));
    line.context("STATS tells no connections")?.parse().context("connections are no number")
}
