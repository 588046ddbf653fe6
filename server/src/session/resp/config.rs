//! CONFIG: the settings that there are here, by the names that Redis has for them.

use std::collections::BTreeSet;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::Writer;
use boltkv_storage::Durability;

use super::refusals::{integer, not_here, shown};
use crate::commands::{Call, Failure, matches_ignoring_case};
use crate::shared::Shared;

/// Settings of how Redis lays out a hash in memory. Here it lies in the file, as it always does: any number is right.
const WITHOUT_MEANING: [(&str, &str); 4] = [
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "512"),
    ("hash-max-ziplist-value", "64"),
];

/// Answers CONFIG.
pub(super) fn say(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "GET" => get(call, server, out),
        "SET" => {
            set(call, server)?;
            out.ok();
        }
        "RESETSTAT" => {
            server.since.reset(server);
            out.ok();
        }
        name => return Err(not_here(call.spec.name, name)),
    }
    Ok(())
}

/// All settings, as they are.
fn settings(server: &Shared) -> Vec<(&'static str, String)> {
    let Shared { limits, timeouts, executor, .. } = server;
    let appendfsync = match executor.db().durability() {
        Durability::Interval { .. } => "everysec",
        Durability::Never => "no",
        _ => "always",
    };
    let mut settings = vec![
        ("appendfsync", appendfsync.to_owned()),
        ("appendonly", "yes".to_owned()),
        ("cluster-enabled", "no".to_owned()),
        ("databases", "16".to_owned()),
        ("maxclients", limits.max_connections.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("notify-keyspace-events", String::new()),
        ("port", server.port.to_string()),
        ("proto-max-bulk-len", limits.max_frame.to_string()),
        ("save", String::new()),
        ("slowlog-log-slower-than", timeouts.slow.as_micros().to_string()),
        ("slowlog-max-len", limits.slow_log.to_string()),
        ("timeout", timeouts.idle.as_secs().to_string()),
    ];
    settings.extend(WITHOUT_MEANING.map(|(name, value)| (name, value.to_owned())));
    settings
}

fn get(call: &Call, server: &Shared, out: &mut Writer<'_>) {
    let mut found = settings(server);
    found.retain(|(name, _)| call.args.from(2).any(|pattern| matches_ignoring_case(pattern, name.as_bytes())));
    out.map(found.len());
    for (name, value) in found {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    }
}

/// What is so already can be asked for; all else is told when the server is started.
fn set(call: &Call, server: &Shared) -> Result<(), Failure> {
    if call.args.len() % 2 == 1 {
        return Err(Failure::syntax());
    }
    let settings = settings(server);
    let mut named = BTreeSet::new();
    for at in (2..call.args.len()).step_by(2) {
        let (name, value) = (call.args.word(at), call.args.word(at + 1));
        let known = settings.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
        let Some((name, now)) = known else {
            let line = format!("ERR Unknown option or number of arguments for CONFIG SET - '{}'", shown(name));
            return Err(Failure::new(ErrorCode::Malformed, line));
        };
        let why = match () {
            () if !named.insert(name) => "duplicate parameter",
            () if now.as_bytes().eq_ignore_ascii_case(value) => continue,
            () if WITHOUT_MEANING.iter().any(|(other, _)| other == name) && integer(value).is_ok() => continue,
            () => "can't set immutable config",
        };
        let line = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
        return Err(Failure::new(ErrorCode::Unsupported, line));
    }
    Ok(())
}
