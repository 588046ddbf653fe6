//! `boltkv`: one binary to serve bolt files, to talk to a server, and to work on files.
//!
//! One file a command. A command reads its arguments and prints; what it does, the storage, server and client crates do.

mod allocator;
mod arguments;
mod backup;
mod bbolt_words;
mod bench;
mod bucket;
mod clients;
mod completion;
mod condition;
mod config;
mod delete;
mod delete_range;
mod expire;
mod export;
mod failure;
mod file;
mod get;
mod health;
mod import;
mod incr;
mod lines;
mod moment;
mod patience;
mod permission;
mod ping;
mod remote;
mod remote_tls;
mod rows;
mod scan;
mod serve;
mod set;
mod shell;
mod shrink;
mod slowlog;
mod stats;
mod tips;
mod token;
mod txn;
mod watch;
mod words;

use std::iter;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::failure::Outcome;

/// A networked key-value server on a file of bbolt's format
#[derive(Debug, Parser)]
#[command(name = "boltkv", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "Exit codes:
  0  done
  1  not found, a check that failed, or a request that was refused; of `health`: no answer
  2  the command line cannot be used
  3  the server could not be reached or did not answer, or the file could not be opened; nothing was written
  4  a write was sent and never answered, or the disk failed under it: it may have been done or not;
     or it was done, and what came of it could not be printed
  5  of `txn`: a condition does not hold; nothing was done
  130, 143
     ended by Ctrl-C, or by SIGTERM; `serve` ends in order then, with 0";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    #[command(subcommand)]
    Config(config::Command),
    Get(get::Get),
    #[command(visible_alias = "put")]
    Set(set::Set),
    #[command(visible_alias = "del")]
    Delete(delete::Delete),
    DeleteRange(delete_range::DeleteRange),
    Incr(incr::Incr),
    Expire(expire::Expire),
    Ttl(expire::Ttl),
    Persist(expire::Persist),
    Scan(scan::Scan),
    Txn(txn::TxnCommand),
    #[command(subcommand)]
    Bucket(bucket::Bucket),
    Backup(backup::Backup),
    Restore(file::restore::Restore),
    Export(export::Export),
    Import(import::Import),
    Shrink(shrink::Shrink),
    Watch(watch::Watch),
    Ping(ping::Ping),
    Stats(stats::Stats),
    Health(health::Health),
    Clients(clients::Clients),
    #[command(name = "slowlog")]
    SlowLog(slowlog::SlowLog),
    #[command(subcommand)]
    Token(token::Token),
    Bench(Box<bench::Bench>),
    #[command(subcommand)]
    File(file::File),
    Completion(completion::Completion),
}

impl Command {
    fn run(&self) -> Outcome {
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Config(config) => config.run(),
            Self::Get(get) => get.run(),
            Self::Set(set) => set.run(),
            Self::Delete(delete) => delete.run(),
            Self::DeleteRange(delete_range) => delete_range.run(),
            Self::Incr(incr) => incr.run(),
            Self::Expire(expire) => expire.run(),
            Self::Ttl(ttl) => ttl.run(),
            Self::Persist(persist) => persist.run(),
            Self::Scan(scan) => scan.run(),
            Self::Txn(txn) => txn.run(),
            Self::Bucket(bucket) => bucket.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::Export(export) => export.run(),
            Self::Import(import) => import.run(),
            Self::Shrink(shrink) => shrink.run(),
            Self::Watch(watch) => watch.run(),
            Self::Ping(ping) => ping.run(),
            Self::Stats(stats) => stats.run(),
            Self::Health(health) => health.run(),
            Self::Clients(clients) => clients.run(),
            Self::SlowLog(slowlog) => slowlog.run(),
            Self::Token(token) => token.run(),
            Self::Bench(bench) => bench.run(),
            Self::File(file) => file.run(),
            Self::Completion(completion) => completion.run(),
        }
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let args: Vec<_> = args.collect();
    if file::bbolt::is_called(&program) {
        return file::bbolt::run(&args);
    }
    let cli = Cli::try_parse_from(iter::once(&program).chain(&args));
    let cli = cli.unwrap_or_else(|error| tips::with_tips(error, &mut Cli::command(), &args).exit());
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
