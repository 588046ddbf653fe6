//! `boltkv import --from-redis`: a copy of what a running Redis has.
//!
//! The Redis is asked as any of its clients would: SCAN for keys, some at a time, then their types and times, then their
//! values, many commands in flight. What differs from what the server has is put there by transactions of bounded size.
//! Nothing of the Redis is changed, and nothing that it does not have is deleted from the server but fields of its hashes.
//!
//! - `from`: where the Redis is, and who asks; `source`: the connection to it; `reply`: what it says
//! - `copy`: a database, step by step; `hashes`: those among its keys
//! - `target`: what is put, and looked at, on the server
//! - `report`: what is told

mod copy;
mod from;
mod hashes;
mod reply;
mod report;
mod source;
mod target;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use boltkv_client::Client;

use super::Import;
use crate::failure::{Failure, Outcome, before_a_verdict};
use crate::file::{Interrupt, json_line};
use copy::Copy;
use from::{Databases, From};
use report::Report;
use source::Source;
use target::Target;

pub(in crate::import) use from::RedisArgs;

/// Where a Redis has no end of databases, these are looked at.
const MOST_DATABASES: u32 = 1_024;

impl Import {
    /// Copies a Redis, and tells of it.
    #[expect(clippy::needless_pass_by_value, reason = "it has a password in it, and is done with")]
    pub(super) fn copy_redis(&self, from: From) -> Outcome {
        let began = Instant::now();
        let mut report = self.remote.run(async |client| self.copy(client, &from).await)?;
        report.seconds = began.elapsed().as_secs_f64();
        let mut out = io::stdout().lock();
        let told = if self.json { json_line(&report, &mut out) } else { report.print(&mut out) };
        before_a_verdict(told.map_err(|error| Failure::result(&error)))?;
        report.failure(self.redis.skip_unsupported).map_or(Ok(()), Err)
    }

    async fn copy(&self, client: Client, from: &From) -> Outcome<Report> {
        let done = Arc::new(AtomicU64::new(0));
        let _interrupt = Interrupt::new({
            let done = Arc::clone(&done);
            move || format!("{} keys are on the server, and the same command goes on", done.load(Relaxed))
        })?;
        let patience = self.remote.timeout();
        let source = Source::connect(from, patience).await?;
        let mut copy = Copy::new(source, Target::new(client, patience), self.redis.if_absent, Arc::clone(&done));
        let copied = copy_databases(&mut copy, from.databases).await;
        copied.map_err(|failure| {
            let done = done.load(Relaxed);
            failure.followed_by(&format!("; {done} keys are on the server, and the same command goes on"))
        })
    }
}

async fn copy_databases(copy: &mut Copy, databases: Databases) -> Outcome<Report> {
    let mut report = Report { databases: Vec::new(), seconds: 0.0 };
    copy.begin().await?;
    match databases {
        Databases::One(number) if copy.source.select(number).await? => {
            report.databases.push(copy.database(number).await?);
        }
        Databases::One(number) => {
            return Err(Failure::not_done(format!("the Redis has no database {number}")));
        }
        Databases::All => {
            for number in 0..MOST_DATABASES {
                if !copy.source.select(number).await? {
                    break;
                }
                if copy.source.size().await? > 0 {
                    report.databases.push(copy.database(number).await?);
                }
            }
        }
    }
    Ok(report)
}
