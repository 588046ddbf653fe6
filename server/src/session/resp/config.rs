//! CONFIG: the settings that there are here, by the names that Redis has for them.

use std::collections::BTreeSet;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::Writer;
use boltkv_storage::Durability;
use tracing::info;

use super::refusals::{integer, not_here, shown};
use crate::commands::{Call, Failure, named_so};
use crate::config::MOST_SLOW;
use crate::shared::Shared;
use crate::slow_log::SlowLimits;

/// Settings of how Redis lays out a hash in memory. Here it lies in the file, as it always does: any number is right.
const WITHOUT_MEANING: [(&str, &str); 4] = [
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "512"),
    ("hash-max-ziplist-value", "64"),
];

/// What can be changed while the server runs.
const SLOWER_THAN: &str = "slowlog-log-slower-than";
const SLOW_LEN: &str = "slowlog-max-len";

/// Answers CONFIG.
pub(super) fn say(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    match call.spec.subcommand(call.args.word(1)).map_or("", |sub| sub.name) {
        "GET" => get(call, server, out)?,
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
    let Shared { limits, timeouts, executor, slow_log, .. } = server;
    let slow = slow_log.limits();
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
        (SLOWER_THAN, slow.from_us.map_or_else(|| "-1".to_owned(), |from| from.to_string())),
        (SLOW_LEN, slow.most.to_string()),
        ("timeout", timeouts.idle.as_secs().to_string()),
    ];
    settings.extend(WITHOUT_MEANING.map(|(name, value)| (name, value.to_owned())));
    settings
}

fn get(call: &Call, server: &Shared, out: &mut Writer<'_>) -> Result<(), Failure> {
    let found = named_so(settings(server), |(name, _)| name, call.args.from(2))?;
    out.map(found.len());
    for (name, value) in found {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    }
    Ok(())
}

/// What is so already can be asked for, and the slow log changed; all else is told when the server is started. Where
/// something is refused, nothing is changed.
fn set(call: &Call, server: &Shared) -> Result<(), Failure> {
    if call.args.len() % 2 == 1 {
        return Err(Failure::syntax());
    }
    let (settings, mut slow) = (settings(server), server.slow_log.limits());
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
            () => match limit_slow(&mut slow, name, value) {
                Ok(()) => continue,
                Err(why) => why,
            },
        };
        let line = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}");
        return Err(Failure::new(ErrorCode::Unsupported, line));
    }
    if slow != server.slow_log.limits() {
        server.slow_log.limit(slow);
        info!(most = slow.most, from_us = slow.from_us, "the slow log is changed until the server is started again");
    }
    Ok(())
}

/// Changes a setting of the slow log, or says why not.
fn limit_slow(slow: &mut SlowLimits, name: &str, value: &[u8]) -> Result<(), &'static str> {
    let value = || integer(value).map_err(|_| "argument couldn't be parsed into an integer");
    match name {
        SLOWER_THAN => {
            let from = value()?;
            if from < -1 {
                return Err("argument must be between -1 and 9223372036854775807 inclusive");
            }
            slow.from_us = u64::try_from(from).ok();
        }
        SLOW_LEN => {
            // As when the server is started: what is kept takes memory.
            let most = u32::try_from(value()?).ok().filter(|&most| most as usize <= MOST_SLOW);
            slow.most = most.ok_or("argument must be between 0 and 10000 inclusive")?;
        }
        _ => return Err("can't set immutable config"),
    }
    Ok(())
}
