//! INFO: the server's figures, by the names that programs look for.

use std::fmt::{Display, Write as _};
use std::fs;
use std::sync::LazyLock;

use super::server::REDIS_VERSION;
use crate::commands::{Call, KeyCount, key_counts};
use crate::metrics::process;
use crate::session::codec::Asking;
use crate::shared::Shared;

/// Writes a part.
type Write = fn(&mut Text, &Asking<'_>);

/// The parts, in their order, and who writes them.
const SECTIONS: [(&str, Write); 9] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

/// Names and values, a line each.
struct Text(String);

impl Text {
    fn add(&mut self, name: &str, value: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    fn bytes(&mut self, name: &str, bytes: u64) {
        self.add(name, bytes);
        self.add(&format!("{name}_human"), human(bytes));
    }
}

/// What a request asks for: all, or the parts that it names.
pub(super) fn text(call: &Call, asking: &Asking<'_>) -> String {
    let is_wanted = |name: &str| {
        let named = |word: &[u8]| [name, "all", "everything", "default"].iter().any(|it| it.as_bytes() == word);
        call.args.len() == 1 || call.args.from(1).any(|word| named(&word.to_ascii_lowercase()))
    };
    let mut text = Text(String::new());
    for (name, write) in SECTIONS {
        if is_wanted(&name.to_lowercase()) {
            text.0.push_str(if text.0.is_empty() { "# " } else { "\r\n# " });
            text.0.push_str(name);
            text.0.push_str("\r\n");
            write(&mut text, asking);
        }
    }
    text.0
}

/// The memory of the process, in bytes; 0 where the system does not tell.
pub(super) fn resident() -> u64 {
    process::resident_bytes().map_or(0, |[resident, _]| resident)
}

fn server(text: &mut Text, asking: &Asking<'_>) {
    static OS: LazyLock<String> = LazyLock::new(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH)
    });
    let uptime = asking.server.stats.uptime().as_secs();
    text.add("redis_version", REDIS_VERSION);
    text.add("redis_mode", "standalone");
    text.add("boltkv_version", env!("CARGO_PKG_VERSION"));
    text.add("os", &*OS);
    text.add("arch_bits", usize::BITS);
    text.add("process_id", std::process::id());
    text.add("tcp_port", asking.server.port);
    text.add("server_time_usec", asking.server.executor.clock().now().saturating_mul(1_000));
    text.add("uptime_in_seconds", uptime);
    text.add("uptime_in_days", uptime / 86_400);
}

fn clients(text: &mut Text, asking: &Asking<'_>) {
    let [open, ..] = asking.server.stats.connections();
    text.add("connected_clients", open);
    text.add("maxclients", asking.server.limits.max_connections);
    text.add("blocked_clients", 0);
    text.add("tracking_clients", 0);
}

fn memory(text: &mut Text, asking: &Asking<'_>) {
    let memory = &asking.server.memory;
    // What the system does not tell is left out.
    if let Some([resident, own]) = process::resident_bytes() {
        text.bytes("used_memory", own);
        text.bytes("used_memory_rss", resident);
    }
    text.bytes("maxmemory", 0);
    text.add("maxmemory_policy", "noeviction");
    text.add("boltkv_memory_used", memory.used());
    text.add("boltkv_memory_limit", memory.limit());
}

fn persistence(text: &mut Text, asking: &Asking<'_>) {
    let Shared { executor, stats, .. } = asking.server;
    let unsynced = executor.db().stats().unsynced_commits;
    let status = if executor.failure().is_none() { "ok" } else { "err" };
    text.add("loading", 0);
    text.add("rdb_changes_since_last_save", unsynced);
    text.add("rdb_bgsave_in_progress", 0);
    text.add("rdb_last_save_time", stats.last_commit(executor.clock().now()) / 1_000);
    text.add("rdb_last_bgsave_status", status);
    text.add("aof_enabled", 1);
    text.add("aof_rewrite_in_progress", 0);
    text.add("aof_rewrite_scheduled", 0);
    text.add("aof_last_bgrewrite_status", "ok");
    text.add("aof_last_write_status", status);
}

fn stats(text: &mut Text, asking: &Asking<'_>) {
    let figures = asking.server.since.figures(asking.server);
    let a_second = asking.server.since.a_second(asking.server);
    text.add("total_connections_received", figures.accepted);
    text.add("total_commands_processed", figures.requests);
    text.add("instantaneous_ops_per_sec", format_args!("{:.0}", a_second.requests));
    text.add("total_net_input_bytes", figures.received);
    text.add("total_net_output_bytes", figures.sent);
    text.add("instantaneous_input_kbps", format_args!("{:.2}", a_second.received / 1_024.0));
    text.add("instantaneous_output_kbps", format_args!("{:.2}", a_second.sent / 1_024.0));
    text.add("rejected_connections", figures.refused);
    text.add("expired_keys", asking.server.stats.expired_keys());
    text.add("keyspace_hits", figures.hits);
    text.add("keyspace_misses", figures.misses);
    for nothing in ["evicted_keys", "pubsub_channels", "pubsub_patterns", "latest_fork_usec"] {
        text.add(nothing, 0);
    }
}

fn replication(text: &mut Text, _: &Asking<'_>) {
    text.add("role", "master");
    text.add("connected_slaves", 0);
}

fn cpu(text: &mut Text, _: &Asking<'_>) {
    if let Some([user, system]) = process::processor_times() {
        text.add("used_cpu_sys", format_args!("{:.6}", system.as_secs_f64()));
        text.add("used_cpu_user", format_args!("{:.6}", user.as_secs_f64()));
    }
}

fn cluster(text: &mut Text, _: &Asking<'_>) {
    text.add("cluster_enabled", 0);
}

/// The databases in which there is something that the client may see.
fn keyspace(text: &mut Text, asking: &Asking<'_>) {
    let Ok(tx) = asking.server.executor.db().begin() else { return };
    let now = asking.server.executor.clock().now();
    for (db, count) in key_counts(&tx, now, |path| asking.standing.may(path).is_ok()) {
        let KeyCount { keys, expires, mean_left, is_estimate } = count;
        let estimated = if is_estimate { ",estimated=1" } else { "" };
        let counts = format_args!("keys={keys},expires={expires},avg_ttl={mean_left}{estimated}");
        text.add(&format!("db{}", db.number()), counts);
    }
}

/// A number of bytes for people.
#[expect(clippy::cast_precision_loss, reason = "two places are shown")]
fn human(bytes: u64) -> String {
    let units = [(1 << 40, 'T'), (1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => format!("{bytes}B"),
    }
}
