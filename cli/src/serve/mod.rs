//! `boltkv serve`: serves a file until it is told to stop.

mod admission;
mod descriptors;
mod journal;
pub(crate) mod layers;
mod limits;
mod listen;
mod log;
mod reload;
mod settings;
mod signals;
mod systemd;
mod timeouts;

use std::fs::File;
use std::io::{self, Write as _};

use boltkv_server::{Config, Error, Listen, Server};
use boltkv_storage::Error as StorageError;
use clap::Args;
use tracing::warn;

use crate::allocator;
use crate::failure::{Failure, Outcome, one_line};
use crate::file::holder;
use crate::shell::quoted_for_shell;
use layers::Flags;
use log::Log;
use reload::{Reloader, Running};
use settings::Settings;
use signals::{Signals, fail_writes_past_the_size_limit, mind_hangups};

/// After so many turns of connections the system is asked what has arrived, if none of them has run out of work before. Fewer
/// ask it in the middle of a round of fifty, which then leaves in halves.
const EVENT_INTERVAL: u32 = 256;

/// Serve a file over TCP
///
/// Serves any bolt file, also one of etcd or Consul, and makes a new one where there is none. Prints one line to standard
/// output when it is ready. SIGTERM or SIGINT ends it gracefully: what was taken is finished, committed and answered; a
/// second one ends it at once, which loses nothing that was answered either. Logs go to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv serve
  boltkv serve --db /var/lib/app/app.db --listen 127.0.0.1:7000
  boltkv serve --db app.db --listen 127.0.0.1:7878 --listen 'unix:/run/boltkv.sock?mode=0660'
  boltkv serve --db app.db --listen 127.0.0.1:7878 --listen redis://127.0.0.1:6379
  boltkv serve --listen 0.0.0.0 --tls-cert server.pem --tls-key server.key --tokens tokens
  boltkv serve --db etcd/member/snap/db --read-only
  boltkv serve --max-frame 64MiB --queue-bytes 256MiB
  boltkv serve --max-size 10GiB
  boltkv serve --durability interval=100ms --journal-keep 7d
  boltkv serve --config /etc/boltkv.toml
  echo 'SET hello world' | nc 127.0.0.1 7878

Every option is also a key of the file that --config names, and a variable of the environment: --max-frame is max-frame in \
[limits], and BOLTKV_MAX_FRAME. Flags come before variables, variables before the file. `boltkv config show` tells what holds.

Scripts that pause between lines of the text dialect use CRLF (`nc -C`), or `nc -N` with `--text-linger 0`.

Exit codes: 0 stopped as told, 1 the disk failed or the journal was removed, 2 an address, limit or configuration that cannot be \
used, 3 the file or the configuration could not be opened or the address not be listened on.")]
pub(crate) struct Serve {
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub(crate) fn run(&self) -> Outcome {
        let effective = self.flags.read()?;
        let settings = &effective.settings;
        let log = Log::to_stderr(&settings.log, settings.log_format);
        for warning in &effective.warnings {
            warn!("{warning}");
        }
        allocator::return_memory();
        let mut config = effective.config.clone();
        config.keeps_closed = Some(holder::keeps_closed);
        descriptors::fit(&mut config.limits)?;
        settings.limits.warn_of_cut_queue(&config);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(settings.limits.workers())
            .event_interval(EVENT_INTERVAL)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Failure::not_done(format!("could not start: {error}")))?;
        let reloader = Reloader::new(&self.flags, &effective, log.clone());
        let ended = runtime.block_on(settings.serve(config, reloader));
        log.end();
        ended
    }
}

impl Settings {
    async fn serve(&self, config: Config, reloader: Reloader) -> Outcome {
        let unhandled = |error: io::Error| Failure::not_done(format!("could not handle signals: {error}"));
        // Opening may write, too.
        fail_writes_past_the_size_limit().map_err(unhandled)?;
        let hangup = mind_hangups().map_err(unhandled)?;
        systemd::tell_status(&one_line(&format!("opening {}", self.db.display())));
        let server = Server::bind(config).await.map_err(|error| self.failure(&error))?;
        // From here on a signal is a wish, not an end.
        let signals = Signals::new(hangup).map_err(unhandled)?;
        self.announce(&server);
        systemd::keep_watchdog_quiet();
        let reload = reloader.start(Running { access: server.access(), tls: server.tls() });
        let shutdown = async {
            signals.shutdown(reload).await;
            systemd::tell_stopping();
        };
        server.run(shutdown).await.map_err(|error| self.failure(&error))
    }

    /// Why there is no server.
    fn failure(&self, error: &Error) -> Failure {
        match error {
            Error::Open(error @ StorageError::LockTimeout { .. }) => {
                Failure::unreachable(format!("{error}{}", holder::advice(&self.db, "--lock-timeout", None)))
            }
            Error::Open(error @ StorageError::Io { source, path: Some(path), .. })
                if source.kind() == io::ErrorKind::PermissionDenied && *path == self.db && self.may_be_read() =>
            {
                Failure::open(&self.db, error).followed_by("; --read-only serves it as it is")
            }
            Error::Open(error) => {
                let advice = self.journal.advice(error, &self.db, self.read_only);
                let file = quoted_for_shell(&self.db);
                Failure::open(&self.db, error).followed_by(&advice.replace("FILE", &file))
            }
            Error::Listen { source, .. } => {
                let hint = match (source.kind(), &self.admin) {
                    (io::ErrorKind::AddrInUse, None) => "; --listen HOST:PORT names another place",
                    (io::ErrorKind::AddrInUse, Some(_)) => "; --listen, or --admin, names another place",
                    _ => "",
                };
                Failure::unreachable(format!("{error}{hint}"))
            }
            Error::Limit { .. } => Failure::usage(error.to_string()),
            _ => Failure::not_done(error.to_string()),
        }
    }

    /// Whether a file that could not be opened to be written can be read.
    fn may_be_read(&self) -> bool {
        !self.read_only && File::open(&self.db).is_ok()
    }

    /// The one line that says it is ready. Scripts read the port from it.
    fn announce(&self, server: &Server) {
        let promise = if server.is_read_only() { "read-only".into() } else { self.journal.promise(&self.db, server) };
        let addresses: Vec<_> = server.addresses().iter().map(Listen::to_string).collect();
        let addresses = addresses.join(" and ");
        let admin = server.admin_addr().map(|admin| format!(", admin on {admin}")).unwrap_or_default();
        let line = one_line(&format!("boltkv: serving {} on {addresses}, {promise}{admin}", self.db.display()));
        systemd::tell_ready(&line);
        // A server whose standard output is closed serves all the same.
        if let Err(error) = writeln!(io::stdout().lock(), "{line}") {
            warn!(%error, "could not write to standard output: {line}");
        }
    }
}
