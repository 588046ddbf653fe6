//! All settings of a server. Each stands once, as a field here or in one of the groups: the field's attributes say how it is
//! called, in which unit it is, what it is unless told otherwise, how its text is read, and what it does. `layers` makes of
//! each a flag, a key of the configuration file and a variable of the environment.
//!
//! To add one, add a field, and use it in [`Settings::config`] or where it is needed. A secret gets `hide_env_values = true`;
//! what can change while the server runs gets an entry in `reload::RELOADABLE`.

use std::path::PathBuf;

use boltkv_server::{Config, OnWriteFailure};
use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;

use super::admission::AdmissionArgs;
use super::journal::JournalArgs;
use super::limits::LimitArgs;
use super::listen;
use super::log::{self, Format};
use super::timeouts::TimeoutArgs;
use crate::arguments::place_to_listen;

/// The settings that cannot come from a file or the environment, and why: they are for one start.
pub(super) const FLAGS_ONLY: [(&str, &str); 2] =
    [("config", "it says where the file is"), ("discard-journal", "what it gives up is gone: it is for one start")];

/// What a server is told.
#[derive(Debug, Args)]
pub(crate) struct Settings {
    /// A TOML file of settings; `boltkv config show --default` prints one. `BOLTKV_CONFIG` names it, too
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The bolt file to serve
    #[arg(long, value_name = "FILE", default_value = "./boltkv.db")]
    pub(super) db: PathBuf,
    /// Where to listen: HOST or HOST:PORT, port 0 takes a free one; `redis://HOST:PORT`, a port for clients of Redis only; or
    /// unix:PATH, a socket that its owner may connect to, unix:PATH?mode=0660 one that its group may, too. May be given again
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878", value_parser = place_to_listen)]
    listen: Vec<String>,
    /// Where to tell over HTTP how the server is, HOST:PORT: /livez, /readyz, /metrics; port 0 takes a free one. Default:
    /// nowhere
    #[arg(long, value_name = "ADDRESS")]
    pub(super) admin: Option<String>,
    /// Listen beyond loopback without `--tls-cert` and `--tokens`: whoever is on the way reads everything, or whoever can reach
    /// the port reads and writes everything
    #[arg(long)]
    insecure: bool,
    /// Refuse all writes. The file must be there; others may read it too, and nobody may write it
    #[arg(long)]
    pub(super) read_only: bool,
    /// What to do when the disk fails, so that no more writes can be done until the file is opened again: `stop` with exit
    /// code 1, so that whoever supervises the server starts it again, or go on to `serve-reads`
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_write_failure: WriteFailure,
    /// What to log: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `boltkv_server=debug`. `RUST_LOG`
    /// says it, too
    #[arg(long, value_name = "FILTER", default_value = "warn", value_parser = log::filter)]
    pub(super) log: Targets,
    /// How to log: as `text`, or as `json`, an object a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) log_format: Format,
    #[command(flatten)]
    pub(super) admission: AdmissionArgs,
    #[command(flatten)]
    pub(super) journal: JournalArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    #[command(flatten)]
    pub(super) timeouts: TimeoutArgs,
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

/// Why a setting cannot be used, which its text alone does not tell.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The setting's name.
    pub(super) setting: String,
    /// What stands behind the name.
    pub(super) why: String,
}

impl Wrong {
    pub(super) fn new(setting: impl Into<String>, why: impl Into<String>) -> Self {
        Self { setting: setting.into(), why: why.into() }
    }
}

impl Settings {
    /// What the server is told.
    ///
    /// # Errors
    /// All that it could not work with.
    pub(super) fn config(&self) -> Result<Config, Vec<Wrong>> {
        let (mut config, mut wrong) = (Config::for_file(&self.db), Vec::new());
        let may_be_anywhere = self.insecure || self.admission.is_secure();
        config.listen = Vec::new();
        for text in &self.listen {
            match listen::parse(text, may_be_anywhere) {
                Ok(listen) => config.listen.push(listen),
                Err(why) => wrong.push(Wrong::new("listen", why)),
            }
        }
        match self
            .admin
            .as_deref()
            .map(|text| listen::address(text, may_be_anywhere, "see what the server does"))
            .transpose()
        {
            Ok(admin) => config.admin = admin,
            Err(why) => wrong.push(Wrong::new("admin", why)),
        }
        self.admission.apply(&mut config, &mut wrong);
        config.read_only = self.read_only;
        config.on_write_failure = self.on_write_failure.into();
        self.journal.apply(&mut config, &mut wrong);
        self.limits.apply(&mut config, &mut wrong);
        self.timeouts.apply(&mut config);
        if wrong.is_empty() { Ok(config) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Command, FromArgMatches as _};

    use super::*;
    use crate::serve::layers::Flags;

    /// Every field of the server's configuration, and a flag that changes it. What [`Config`] gets is to be added here, with its
    /// setting.
    const FIELDS: [(&str, &str); 44] = [
        ("listen", "--listen=127.0.0.1:1"),
        ("admin", "--admin=127.0.0.1:1"),
        ("database", "--db=other.db"),
        ("read_only", "--read-only"),
        ("grants", "--tokens=/dev/null"),
        ("durability", "--durability=never"),
        ("journal.folder", "--journal=elsewhere"),
        ("journal.checkpoint_size", "--journal-size=1MiB"),
        ("journal.checkpoint_every", "--checkpoint-interval=1s"),
        ("journal.memory", "--journal-memory=1MiB"),
        ("journal.keep", "--journal-keep=7d"),
        ("max_size", "--max-size=1GiB"),
        ("discard_journal", "--discard-journal"),
        ("on_write_failure", "--on-write-failure=serve-reads"),
        ("limits.max_connections", "--max-connections=7"),
        ("limits.max_frame", "--max-frame=1MiB"),
        ("limits.max_in_flight", "--max-in-flight=7"),
        ("limits.max_streams", "--max-streams=7"),
        ("limits.max_backups", "--max-backups=7"),
        ("limits.max_watches", "--max-watches=7"),
        ("limits.max_snapshots", "--max-snapshots=7"),
        ("limits.max_connection_snapshots", "--max-connection-snapshots=7"),
        ("limits.slow_log", "--slow-log=7"),
        ("limits.queue_requests", "--queue-requests=7"),
        ("limits.queue_bytes", "--queue-bytes=1MiB"),
        ("limits.memory", "--memory=1GiB"),
        ("limits.burst_threads", "--workers=777"),
        ("timeouts.first_byte", "--first-byte-timeout=7s"),
        ("timeouts.hello", "--hello-timeout=7s"),
        ("timeouts.idle", "--idle-timeout=7s"),
        ("timeouts.request", "--request-timeout=7s"),
        ("timeouts.reply", "--reply-timeout=7s"),
        ("timeouts.stream_stall", "--stream-timeout=7s"),
        ("timeouts.snapshot_lease", "--snapshot-lease=7s"),
        ("timeouts.longest_snapshot_lease", "--max-lease=7s"),
        ("timeouts.text_linger", "--text-linger=7s"),
        ("timeouts.slow", "--slow=7s"),
        ("timeouts.lock", "--lock-timeout=7s"),
        // Takes certificates: tests/remote/tls.rs.
        ("tls", ""),
        // What `discard_journal` and `memory` become when the file is opened.
        ("journal.discard", ""),
        ("journal.most_memory", ""),
        // A server has the system's.
        ("clock.seen", ""),
        ("clock.by_hand", ""),
        ("keeps_closed", ""),
    ];

    /// Fields whose defaults are not the library's, and why.
    const OTHER_DEFAULTS: [(&str, &str); 2] = [
        ("limits.burst_threads", "a server of its own has all processors"),
        ("timeouts.lock", "the process before it may still be on its way out"),
    ];

    fn config(args: &[&str]) -> Config {
        let command = Flags::augment_args(Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(args).unwrap();
        Settings::from_arg_matches(&matches).unwrap().config().unwrap()
    }

    /// The fields that hold no others, by their paths, with what they are.
    fn fields(config: &Config) -> BTreeMap<String, String> {
        let (mut path, mut fields) = (Vec::<(usize, String)>::new(), BTreeMap::<String, String>::new());
        let whole = format!("{config:#?}");
        for line in whole.lines().skip(1) {
            let (indent, line) = (line.len() - line.trim_start().len(), line.trim());
            path.retain(|(outer, _)| *outer < indent);
            let field =
                line.split_once(": ").filter(|(name, _)| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
            let value = field.map_or(line, |(_, value)| value);
            path.extend(field.map(|(name, _)| (indent, name.to_owned())));
            let name = path.iter().map(|(_, name)| &**name).collect::<Vec<_>>().join(".");
            fields.entry(name).or_default().push_str(value);
        }
        let inner = fields.keys().cloned().collect::<Vec<_>>();
        fields.retain(|name, _| !inner.iter().any(|other| other.starts_with(&format!("{name}."))));
        fields.remove("");
        fields
    }

    #[test]
    fn every_field_of_the_configuration_has_a_setting_that_changes_it_and_nothing_else() {
        let before = fields(&config(&[]));
        let listed: Vec<_> = FIELDS.iter().map(|(field, _)| *field).collect();
        let missing: Vec<_> = before.keys().filter(|field| !listed.contains(&field.as_str())).collect();
        assert!(missing.is_empty(), "without a setting: {missing:?}");
        for (field, flag) in FIELDS {
            let default = before.get(field).unwrap_or_else(|| panic!("there is no {field} any more: {before:?}"));
            let Some(after) = (!flag.is_empty()).then(|| fields(&config(&[flag]))) else { continue };
            assert_ne!(after.get(field), Some(default), "{flag} does not change {field}");
            let others = |fields: &BTreeMap<String, String>| {
                let others =
                    fields.iter().filter(|(name, _)| !name.starts_with(field) && *name != "limits.burst_threads");
                others.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
            };
            assert_eq!(others(&after), others(&before), "{flag} changes more than {field}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_library_but_for_a_few() {
        let (ours, librarys) = (fields(&config(&[])), fields(&Config::for_file("./boltkv.db")));
        for (field, value) in librarys {
            let differs = OTHER_DEFAULTS.iter().any(|(other, _)| *other == field);
            assert!(differs || ours[&field] == value, "{field} is {}, but {value} in the library", ours[&field]);
        }
    }
}
