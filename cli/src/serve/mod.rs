//! `boltkv serve`: serves a file until it is told to stop.

mod admission;
mod descriptors;
mod journal;
mod limits;
mod listen;
mod signals;
mod systemd;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use boltkv_server::{Config, Error, Listen, OnWriteFailure, Server};
use boltkv_storage::Error as StorageError;
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing::warn;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt};

use crate::allocator;
use crate::arguments::{Size, address_or_socket, milliseconds, seconds};
use crate::failure::{Failure, Outcome, one_line};
use crate::file::holder;
use signals::{Signals, fail_writes_past_the_size_limit};

/// Serve a file over TCP
///
/// Serves any bolt file, also one of etcd or Consul, and makes a new one where there is none. Prints one line to standard
/// output when it is ready. SIGTERM or SIGINT ends it gracefully: what was taken is finished, committed and answered; a
/// second one ends it at once, which loses nothing that was answered either. Logs go to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv serve
  boltkv serve --db /var/lib/app/app.db --listen 127.0.0.1:7000
  boltkv serve --db app.db --listen 127.0.0.1:7878 --listen unix:/run/boltkv.sock,mode=0660
  boltkv serve --db etcd/member/snap/db --read-only
  boltkv serve --max-frame 64MiB --queue-bytes 256MiB
  boltkv serve --max-size 10GiB
  boltkv serve --durability interval=100ms --journal-keep 7d
  echo 'SET hello world' | nc 127.0.0.1 7878

Scripts that pause between lines of the text dialect use `nc -N`, CRLF, or `--text-linger 0`.

Exit codes: 0 stopped as told, 1 the disk failed, 2 an address or limit that cannot be used, 3 the file could not be
opened or the address not be listened on.")]
pub(crate) struct Serve {
    /// The bolt file to serve
    #[arg(long, value_name = "FILE", default_value = "./boltkv.db")]
    db: PathBuf,
    /// Where to listen: HOST or HOST:PORT, port 0 takes a free one; or unix:PATH, a socket that its owner may connect to,
    /// unix:PATH,mode=0660 one that its group may, too. May be given again
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = address_or_socket)]
    listen: Vec<String>,
    /// Listen beyond loopback without `--tls-cert` and `--tokens`: whoever is on the way reads everything, or whoever can reach
    /// the port reads and writes everything
    #[arg(long, env = "BOLTKV_INSECURE", value_parser = BoolishValueParser::new())]
    insecure: bool,
    /// Refuse all writes. The file must be there; others may read it too, and nobody may write it
    #[arg(long)]
    read_only: bool,
    /// The size that the file does not grow past; 1MiB or more. Writes that find no room are refused with `NO_SPACE`, deletions
    /// make some. The journal is not counted
    #[arg(long, value_name = "SIZE", value_parser = max_size)]
    max_size: Option<Size>,
    /// What to do when the disk fails, so that no more writes can be done until the file is opened again: `stop` with exit
    /// code 1, so that whoever supervises the server starts it again, or go on to `serve-reads`
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_write_failure: WriteFailure,
    /// How long to wait for a file that another process has open, such as 5s or 200ms; a number alone is
    /// seconds
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    timeout: Duration,
    /// How long after its last reply the server ends a text connection that looks like a one-shot `nc`; a number alone is
    /// milliseconds; 0: never
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = milliseconds)]
    text_linger: Duration,
    #[command(flatten)]
    admission: admission::AdmissionArgs,
    #[command(flatten)]
    journal: journal::JournalArgs,
    #[command(flatten)]
    limits: limits::LimitArgs,
    /// What to log: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `boltkv_server=debug`
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = "warn", value_parser = filter)]
    log: Targets,
}

/// The least limit: what is kept of it for deletions has room for some.
const LEAST_MAX_SIZE: Size = Size(1 << 20);

fn max_size(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 < LEAST_MAX_SIZE.0 { Err(format!("less than {LEAST_MAX_SIZE}")) } else { Ok(size) }
}

/// What to do when no more writes can be done.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum WriteFailure {
    Stop,
    ServeReads,
}

impl From<WriteFailure> for OnWriteFailure {
    fn from(what: WriteFailure) -> Self {
        match what {
            WriteFailure::Stop => Self::Stop,
            WriteFailure::ServeReads => Self::ServeReads,
        }
    }
}

impl Serve {
    pub(crate) fn run(&self) -> Outcome {
        let config = self.config()?;
        log_to_stderr(&self.log);
        allocator::return_memory();
        descriptors::raise(config.limits.max_connections);
        self.limits.warn_of_cut_queue(&config);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(self.limits.workers()).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::not_done(format!("could not start: {error}")))?;
        runtime.block_on(self.serve(config))
    }

    fn config(&self) -> Outcome<Config> {
        let mut config = Config::for_file(&self.db);
        let may_be_anywhere = self.insecure || self.admission.is_secure();
        config.listen = self.listen.iter().map(|text| listen::parse(text, may_be_anywhere)).collect::<Outcome<_>>()?;
        self.admission.apply(&mut config)?;
        config.read_only = self.read_only;
        config.max_size = self.max_size.map(|Size(bytes)| bytes);
        config.on_write_failure = self.on_write_failure.into();
        config.timeouts.lock = self.timeout;
        config.timeouts.text_linger = self.text_linger;
        self.journal.apply(&mut config)?;
        self.limits.apply(&mut config)?;
        Ok(config)
    }

    async fn serve(&self, config: Config) -> Outcome {
        let unhandled = |error: io::Error| Failure::not_done(format!("could not handle signals: {error}"));
        // Opening may write, too.
        fail_writes_past_the_size_limit().map_err(unhandled)?;
        systemd::tell_status(&one_line(&format!("opening {}", self.db.display())));
        let server = Server::bind(config).await.map_err(|error| self.failure(&error))?;
        // From here on a signal is a wish, not an end.
        let signals = Signals::new(self.admission.reload(&server)).map_err(unhandled)?;
        self.announce(&server);
        systemd::keep_watchdog_quiet();
        let shutdown = async {
            signals.shutdown().await;
            systemd::tell_stopping();
        };
        server.run(shutdown).await.map_err(|error| self.failure(&error))
    }

    /// Why there is no server.
    fn failure(&self, error: &Error) -> Failure {
        match error {
            Error::Open(error @ StorageError::LockTimeout { .. }) => {
                Failure::unreachable(format!("{error}{}", holder::advice(&self.db, None)))
            }
            Error::Open(error) => {
                let is_needed = error.is_of_journal() && self.journal.is_needed(&self.db);
                Failure::open(&self.db, error).followed_by(journal::advice(error, self.read_only, is_needed))
            }
            Error::Listen { .. } => Failure::unreachable(error.to_string()),
            // Limits are called by their options here.
            Error::Limit { name, value, min, max } if ["max_frame", "queue_bytes", "memory"].contains(name) => {
                // A most that is no whole number of KiB is hard to read: the one below it is within it.
                let [value, min, max] = [*value, *min, *max - *max % 1024].map(Size::of);
                let option = name.replace('_', "-");
                Failure::usage(format!("--{option} is {value}, but must lie between {min} and {max}"))
            }
            Error::Limit { name, .. } => Failure::usage(format!("--{error}").replace(name, &name.replace('_', "-"))),
            _ => Failure::not_done(error.to_string()),
        }
    }

    /// The one line that says it is ready. Scripts read the port from it.
    fn announce(&self, server: &Server) {
        let promise = if server.is_read_only() { "read-only".into() } else { self.journal.promise(&self.db, server) };
        let addresses: Vec<_> = server.addresses().iter().map(Listen::to_string).collect();
        let addresses = addresses.join(" and ");
        let line = one_line(&format!("boltkv: serving {} on {addresses}, {promise}", self.db.display()));
        systemd::tell_ready(&line);
        // A server whose standard output is closed serves all the same.
        if let Err(error) = writeln!(io::stdout().lock(), "{line}") {
            warn!(%error, "could not write to standard output: {line}");
        }
    }
}

/// Levels, of everything and of modules. To `tracing` a lone word which is no level is the name of a module: a misspelt
/// level would silence the log. Modules that are not ours are given with their level; of spans there are none.
fn filter(text: &str) -> Result<Targets, String> {
    let words: Vec<_> = text.split(',').map(str::trim).collect();
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_known =
        |word: &str| is_level(word) || word.starts_with("boltkv") || (word.contains('=') && !word.contains('['));
    if let Some(word) = words.iter().find(|word| !is_known(word)) {
        return Err(format!(
            "{word} is no level: the levels are off, error, warn, info, debug and trace; a module has its own by a filter \
             such as boltkv_server=debug"
        ));
    }
    words.join(",").parse().map_err(|error| format!("{error}"))
}

fn log_to_stderr(filter: &Targets) {
    // A line that cannot be written, because the disk that the log lies on is full or nobody reads it any more, is lost.
    // To tell of it would be an `eprintln!` to the same place, and that panics.
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).log_internal_errors(false);
    Registry::default().with(lines).with(filter.clone()).init();
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_log_filter_is_levels_and_modules_with_levels_and_no_misspelt_level() {
        for text in ["off", "INFO", "3", "", "boltkv_server", "warn, boltkv_server=debug,tokio=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        let some = filter("warn,boltkv_server=debug").unwrap();
        assert!(some.would_enable("boltkv_server::writer", &Level::DEBUG));
        assert!(!some.would_enable("boltkv", &Level::INFO));
        for text in ["verbose", "infos", "info,quiet", "tokio", "boltkv=shout", "[scan{a}]=debug"] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
