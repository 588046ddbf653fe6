//! The table of all metrics: what each is called, what it is, and where its value comes from.
//!
//! Units are base units. What is counted in requests, pages or the like has no unit in its name.

use std::fmt::Display;

use boltkv_protocol::ErrorCode;
use boltkv_storage::{JournalFigures, Stats};

use MetricKind::{Counter, Gauge, Histogram};

use super::measured::Measured;
use super::text::Text;
use crate::counters::{Command, Kind, TIME_BOUNDS};
use crate::stats::GROUP_BOUNDS;

/// A metric.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    /// What it counts or measures; empty for what has no unit.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the documents"))]
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    /// Writes its samples; none where there is nothing to say.
    pub(super) value: fn(&Measured<'_>, &mut Text),
}

/// What can be done with the values of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// It only rises, until the server is started again.
    Counter,
    Gauge,
    Histogram,
}

/// Times are kept in nanoseconds.
const NANOS: u32 = 1_000_000_000;

impl MetricKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    help: &'static str,
    value: fn(&Measured<'_>, &mut Text),
) -> Metric {
    Metric { name, kind, unit, help, value }
}

/// All metrics, in the order in which people read about them.
#[rustfmt::skip]
pub(super) const METRICS: &[Metric] = &[
    metric("boltkv_requests_total", Counter, "requests",
        "Requests that were answered, by command and by what came of them: ok, or the name of an error.",
        requests),
    metric("boltkv_request_duration_seconds", Histogram, "seconds",
        "From when the bytes of a request were read off the socket to when its reply is ready: reads, writes, \
         and streams to their end.",
        latencies),
    metric("boltkv_received_bytes_total", Counter, "bytes",
        "Bytes that clients have sent.",
        |now, text| text.value(now.shared.counters.received())),
    metric("boltkv_sent_bytes_total", Counter, "bytes",
        "Bytes of replies that clients have taken.",
        |now, text| text.value(now.shared.counters.sent())),
    metric("boltkv_connections", Gauge, "connections",
        "Connections that are open.",
        |now, text| text.value(now.shared.stats.connections()[0])),
    metric("boltkv_connections_limit", Gauge, "connections",
        "Connections that may be open (--max-connections).",
        |now, text| text.value(now.shared.limits.max_connections)),
    metric("boltkv_connections_accepted_total", Counter, "connections",
        "Connections that were accepted.",
        |now, text| text.value(now.shared.stats.connections()[1])),
    metric("boltkv_connections_refused_total", Counter, "connections",
        "Connections that had no place: limit, all were taken and the connection was told so; silent, it had \
         said nothing yet, or not who it is, and made room for another.",
        refused),
    metric("boltkv_connections_panicked_total", Counter, "connections",
        "Connections that a defect of the server has ended.",
        |now, text| text.value(now.shared.stats.panicked())),
    metric("boltkv_accept_failures_total", Counter, "attempts",
        "Attempts to accept a connection for which the system had no descriptor or no memory; it waits meanwhile.",
        |now, text| text.value(now.shared.stats.accepts_failed())),
    metric("boltkv_authentication_failures_total", Counter, "attempts",
        "Attempts to say who one is that were not believed.",
        |now, text| text.value(now.shared.access.failed())),
    metric("boltkv_write_queue_requests", Gauge, "requests",
        "Writes that wait for the writer.",
        |now, text| text.value(now.shared.executor.queue().0)),
    metric("boltkv_write_queue_bytes", Gauge, "bytes",
        "Bytes of the writes that wait for the writer.",
        |now, text| text.value(now.shared.executor.queue().1)),
    metric("boltkv_write_group_requests", Histogram, "requests",
        "Writes that the writer took at a time, to do them in one transaction.",
        |now, text| text.histogram(&[], &GROUP_BOUNDS, &now.shared.stats.groups(), 1)),
    metric("boltkv_commit_duration_seconds", Histogram, "seconds",
        "Commits of the writer: writing, and syncing where writes are answered once they are on the disk.",
        |now, text| text.histogram(&[], &TIME_BOUNDS, &now.shared.stats.commits(), NANOS)),
    metric("boltkv_syncs_total", Counter, "syncs",
        "Syncs of the file and of the journal.",
        |now, text| written(now, text, |database| database.commits.syncs)),
    metric("boltkv_sync_seconds_total", Counter, "seconds",
        "The part of the time of commits that was spent in syncs.",
        sync_seconds),
    metric("boltkv_sync_longest_seconds", Gauge, "seconds",
        "The longest sync that commits have waited for.",
        |now, text| written(now, text, |database| database.commits.sync_longest.as_secs_f64())),
    metric("boltkv_unsynced_commits", Gauge, "commits",
        "Commits that a power cut would take now.",
        |now, text| written(now, text, |database| database.unsynced_commits)),
    metric("boltkv_txid", Gauge, "",
        "The newest transaction.",
        |now, text| text.value(now.database.txid)),
    metric("boltkv_writable", Gauge, "",
        "1: a write would be tried; 0: the server only reads, or writes have failed.",
        |now, text| text.value(u8::from(now.shared.executor.is_writable()))),
    metric("boltkv_read_only", Gauge, "",
        "1: the server was told to write nothing.",
        |now, text| text.value(u8::from(now.shared.executor.is_read_only()))),
    metric("boltkv_memory_used_bytes", Gauge, "bytes",
        "What connections and waiting writes take of the budget for what is large.",
        |now, text| text.value(now.shared.memory.used())),
    metric("boltkv_memory_limit_bytes", Gauge, "bytes",
        "That budget: --memory, less twice what may wait for the writer.",
        |now, text| text.value(now.shared.memory.limit())),
    metric("boltkv_open_readers", Gauge, "snapshots",
        "Read transactions that are open: scans, backups, snapshots of clients.",
        |now, text| text.value(now.database.open_readers)),
    metric("boltkv_oldest_reader_seconds", Gauge, "seconds",
        "For how long the oldest state that is still read has not been the newest: since then it keeps pages \
         from being used again.",
        |now, text| text.value(now.database.oldest_reader_age.unwrap_or_default().as_secs_f64())),
    metric("boltkv_snapshots", Gauge, "snapshots",
        "Snapshots that clients hold open.",
        |now, text| text.value(now.snapshots.0)),
    metric("boltkv_snapshot_oldest_seconds", Gauge, "seconds",
        "For how long the oldest of them has been open.",
        |now, text| text.value(now.snapshots.1.as_secs_f64())),
    metric("boltkv_backups", Gauge, "backups",
        "Backups under way.",
        |now, text| text.value(now.shared.executor.turns().backups.places.taken())),
    metric("boltkv_watches", Gauge, "watches",
        "Watches under way.",
        |now, text| text.value(now.shared.executor.turns().watches.places.taken())),
    metric("boltkv_shrinking", Gauge, "",
        "1 while the file is being made smaller.",
        |now, text| text.value(now.shared.executor.turns().shrinks.places.taken())),
    metric("boltkv_expired_keys_total", Counter, "keys",
        "Keys that were removed because their time had come.",
        |now, text| text.value(now.shared.stats.expired_keys())),
    metric("boltkv_expiry_lag_seconds", Gauge, "seconds",
        "For how long the next key to be removed has been due: nobody sees it, but it takes its place in the file.",
        |now, text| text.value(now.expiry_lag.as_secs_f64())),
    metric("boltkv_page_size_bytes", Gauge, "bytes",
        "Bytes of a page.",
        |now, text| text.value(now.database.page_size)),
    metric("boltkv_pages", Gauge, "pages",
        "Pages of the file, up to the last one in use.",
        |now, text| text.value(now.database.pages)),
    metric("boltkv_free_pages", Gauge, "pages",
        "Pages that the next write can take.",
        |now, text| maybe(text, now.database.free_pages)),
    metric("boltkv_pending_pages", Gauge, "pages",
        "Pages that are free once nobody sees them any more and, with a journal, a write after the next checkpoint has come.",
        |now, text| maybe(text, now.database.pending_pages)),
    metric("boltkv_file_size_bytes", Gauge, "bytes",
        "Length of the file.",
        |now, text| maybe(text, now.file_bytes)),
    metric("boltkv_max_size_bytes", Gauge, "bytes",
        "The size that the file does not grow past (--max-size); missing where there is none.",
        |now, text| maybe(text, now.database.max_size)),
    metric("boltkv_file_system_free_bytes", Gauge, "bytes",
        "Bytes that are free on the file system of the file, and of its journal.",
        free),
    metric("boltkv_journal_segments", Gauge, "segments",
        "Files of the journal: written, kept, and ready to be written over.",
        |now, text| journal(now, text, |journal| journal.segments)),
    metric("boltkv_journal_bytes", Gauge, "bytes",
        "Bytes of these files.",
        |now, text| journal(now, text, |journal| journal.bytes)),
    metric("boltkv_journal_waiting_bytes", Gauge, "bytes",
        "Bytes of records that the file does not hold yet: what is done again after a crash.",
        |now, text| journal(now, text, |journal| journal.since_checkpoint)),
    metric("boltkv_journal_limit_bytes", Gauge, "bytes",
        "After so many of them a checkpoint is due; one is begun after half to three quarters.",
        |now, text| journal(now, text, |journal| journal.checkpoint_size)),
    metric("boltkv_journal_written_bytes_total", Counter, "bytes",
        "Bytes written to the journal.",
        |now, text| journal(now, text, |journal| journal.bytes_written)),
    metric("boltkv_journal_replayed_transactions", Gauge, "transactions",
        "Transactions that the journal alone had when the file was opened.",
        |now, text| journal(now, text, |journal| journal.replayed)),
    metric("boltkv_checkpoints_total", Counter, "checkpoints",
        "How often the file was brought up to date.",
        |now, text| journal(now, text, |journal| journal.checkpoints)),
    metric("boltkv_checkpoint_longest_stall_seconds", Gauge, "seconds",
        "The longest time for which writes have waited for one.",
        |now, text| journal(now, text, |journal| journal.longest_stall.as_secs_f64())),
    metric("boltkv_checkpoint_last_stall_seconds", Gauge, "seconds",
        "The last such time.",
        |now, text| journal(now, text, |journal| journal.last_stall.as_secs_f64())),
    metric("boltkv_journal_memory_limit_bytes", Gauge, "bytes",
        "Memory that what is new may take; up to twice that while long readers see what was in it.",
        |now, text| journal(now, text, |journal| journal.memory)),
    metric("boltkv_journal_memory_used_bytes", Gauge, "bytes",
        "What is taken of it.",
        |now, text| journal(now, text, |journal| journal.memory_used)),
    metric("boltkv_journal_memory_allocated_bytes", Gauge, "bytes",
        "What the process has for it: what only long readers see, and what is free again, among it.",
        |now, text| journal(now, text, |journal| journal.memory_allocated)),
    metric("boltkv_journal_memory_leaves", Gauge, "leaves",
        "Leaf pages that are newer in it than in the file.",
        |now, text| journal(now, text, |journal| journal.memory_leaves)),
    metric("boltkv_journal_memory_passes_total", Counter, "passes",
        "How often it was nearly full, and the oldest of it was given back beside the commits.",
        |now, text| journal(now, text, |journal| journal.memory_passes)),
    metric("boltkv_journal_memory_waits_total", Counter, "commits",
        "Commits that were held back, because it was nearly full or the journal filled faster than a checkpoint was made.",
        |now, text| journal(now, text, |journal| journal.memory_waits)),
    metric("boltkv_journal_memory_missed_total", Counter, "commits",
        "Commits that found nothing of it free: long readers had it, or writes came too fast.",
        |now, text| journal(now, text, |journal| journal.memory_missed)),
    metric("process_cpu_seconds_total", Counter, "seconds",
        "Time that the threads of the process had on a processor.",
        |now, text| maybe(text, now.process.cpu)),
    metric("process_resident_memory_bytes", Gauge, "bytes",
        "Memory of the process, pages of the mapped file among them.",
        |now, text| maybe(text, now.process.resident_bytes)),
    metric("process_open_fds", Gauge, "files",
        "Files and sockets that it has open.",
        |now, text| maybe(text, now.process.open_files)),
    metric("process_max_fds", Gauge, "files",
        "Files and sockets that it may have open.",
        |now, text| maybe(text, now.process.most_files)),
    metric("process_start_time_seconds", Gauge, "seconds",
        "When it was started, since 1970.",
        |now, text| maybe(text, now.process.started)),
    metric("boltkv_build_info", Gauge, "",
        "Always 1; the label says which version runs.",
        |_, text| text.labelled(&[("version", env!("CARGO_PKG_VERSION"))], 1)),
];

fn maybe(text: &mut Text, value: Option<impl Display>) {
    if let Some(value) = value {
        text.value(value);
    }
}

fn written<V: Display>(now: &Measured<'_>, text: &mut Text, value: impl FnOnce(&Stats) -> V) {
    maybe(text, now.written().map(value));
}

fn journal<V: Display>(now: &Measured<'_>, text: &mut Text, value: impl FnOnce(&JournalFigures) -> V) {
    maybe(text, now.journal().map(value));
}

fn sync_seconds(now: &Measured<'_>, text: &mut Text) {
    written(now, text, |database| database.commits.sync_time.as_secs_f64());
}

/// Commands of the wire are there from the start, so that their rates are; what else there was, once it was.
fn requests(now: &Measured<'_>, text: &mut Text) {
    let results = || [None].into_iter().chain(ErrorCode::ALL.iter().copied().map(Some)).chain([Some(UNNAMED)]);
    for command in Command::all() {
        for result in results() {
            let count = now.shared.counters.requests(command, result);
            if count > 0 || (result.is_none() && command.is_on_the_wire()) {
                let result = result.map_or("ok", ErrorCode::name);
                text.labelled(&[("command", command.name()), ("result", result)], count);
            }
        }
    }
}

/// A code that has no name.
const UNNAMED: ErrorCode = ErrorCode::Other(u8::MAX);

fn latencies(now: &Measured<'_>, text: &mut Text) {
    for (name, kind) in [("read", Kind::Read), ("write", Kind::Write), ("stream", Kind::Stream)] {
        text.histogram(&[("kind", name)], &TIME_BOUNDS, &now.shared.counters.latencies(kind), NANOS);
    }
}

fn refused(now: &Measured<'_>, text: &mut Text) {
    let stats = &now.shared.stats;
    for (reason, count) in [("limit", stats.connections()[2]), ("silent", stats.displaced())] {
        text.labelled(&[("reason", reason)], count);
    }
}

fn free(now: &Measured<'_>, text: &mut Text) {
    for (of, bytes) in now.free_bytes {
        if let Some(bytes) = bytes {
            text.labelled(&[("of", of)], bytes);
        }
    }
}
