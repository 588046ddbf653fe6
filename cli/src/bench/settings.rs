//! From the command line to a server and a work.

use std::env;
use std::path::Path;
use std::str::FromStr;

use boltkv_client::Token;
use boltkv_load::{Dialect, Limit, Mix, Op, Order, Server, Target, Work};

use super::{Bench, Distribution, Report};
use crate::arguments::{Size, address_with, is_loopback};
use crate::failure::{Failure, Outcome};
use crate::permission::folder_of;
use crate::remote::address_variable;
use crate::remote_tls;

/// One generator thread is enough for this many cores of a server beside it.
const CORES_A_THREAD: usize = 4;

/// The bucket, where none is named.
const BUCKET: &str = "boltkv-bench";

/// From so many bytes to so many, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range(usize, usize);

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let bytes = |text: &str| -> Result<usize, String> {
            let Size(bytes) = text.trim().parse::<Size>().map_err(str::to_owned)?;
            usize::try_from(bytes).map_err(|_| "more bytes than can be counted".to_owned())
        };
        let (from, to) = (bytes(from)?, bytes(to)?);
        if from > to { Err("the smallest value is larger than the largest".to_owned()) } else { Ok(Self(from, to)) }
    }
}

impl Bench {
    pub(super) fn server(&self) -> Outcome<Server> {
        let (target, dialect) = (Target::from(self.target), self.dialect.map_or(Dialect::Binary, Dialect::from));
        if self.dialect.is_some() && target != Target::Boltkv {
            return Err(Failure::usage(format!("--dialect is for boltkv: {target} has only one protocol here")));
        }
        let variable = address_variable().filter(|_| target == Target::Boltkv);
        let named = self.addr.clone().or_else(|| env::var(variable?).ok());
        if named.as_ref().is_some_and(|named| named.starts_with("unix:")) {
            return Err(Failure::usage(
                "a server is measured over TCP, and --addr (or BOLTKV_ADDR) names a unix socket",
            ));
        }
        let addr = address_with(named.as_deref().unwrap_or("127.0.0.1"), target.usual_port());
        let server = Server {
            target,
            dialect,
            addr: addr.map_err(|why| Failure::usage(format!("--addr: {why}")))?,
            bucket: self.bucket()?,
            database: self.database.unwrap_or_default(),
            timeout: self.timeout,
            token: if target == Target::Boltkv { self.token.token()? } else { Token::NONE },
        };
        if target == Target::Boltkv && !is_loopback(&server.addr) {
            refuse_encryption()?;
        }
        // What names a place of a kind that the server does not have is not passed over.
        if self.bucket.is_some() && !server.has_buckets() {
            return Err(Failure::usage("--bucket is for boltkv by its own protocol: there are no buckets here"));
        }
        if self.database.is_some() && !server.has_databases() {
            return Err(Failure::usage("--database is for Redis' protocol: there are no databases by number here"));
        }
        Ok(server)
    }

    fn bucket(&self) -> Outcome<boltkv_client::Path> {
        match &self.bucket {
            Some(bucket) if bucket.is_root() => {
                Err(Failure::usage("there are only buckets at the top, /: name one of them"))
            }
            Some(bucket) => Ok(bucket.clone()),
            None => BUCKET.parse().map_err(|error| Failure::usage(format!("{BUCKET}: {error}"))),
        }
    }

    pub(super) fn work(&self) -> Work {
        let Range(smallest, largest) = self.value_size;
        Work {
            mix: Mix::only(Op::Get),
            order: match self.distribution {
                Distribution::Uniform => Order::Uniform,
                Distribution::Zipfian => Order::Zipfian,
                Distribution::Sequential => Order::Sequential,
            },
            keys: self.keys,
            // More bytes than a key may have are refused with the rest.
            key_size: usize::try_from(self.key_size.0).unwrap_or(usize::MAX),
            value_size: smallest..=largest,
            scan_length: self.scan_length,
            connections: self.clients,
            pipeline: self.pipeline,
            threads: self.threads.unwrap_or_else(usual_threads).min(self.clients.max(1)),
            rate: self.rate,
            limit: self.requests.map_or(Limit::Time(self.duration), Limit::Requests),
            timeout: self.timeout,
            seed: self.seed,
        }
    }
}

/// Nothing is sent in the clear where others may see it and all other commands would encrypt it.
fn refuse_encryption() -> Outcome {
    let Some(variable) = remote_tls::asked_by() else { return Ok(()) };
    let what = "`bench` does not encrypt: measure from the server's own machine, or without this variable";
    Err(Failure::usage(format!("{variable} asks for encryption (TLS), and {what}")))
}

/// A server on the same machine needs most of it.
fn usual_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / CORES_A_THREAD).clamp(1, 4))
}

/// Says before anything is measured what would keep it from being drawn.
pub(super) fn may_plot(file: &Path) -> Outcome {
    let wrong = |why: &str| Err(Failure::usage(format!("--plot {}: {why}", file.display())));
    if !file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        return wrong("it is an SVG that is drawn, and its name ends with .svg");
    }
    if folder_of(file).is_dir() && !file.is_dir() { Ok(()) } else { wrong("no file can be there") }
}

/// Draws what was measured.
pub(super) fn plot(file: &Path, report: &Report) -> Outcome {
    let lines: Vec<_> = report.tests.iter().map(|(mix, measured)| (mix.to_string(), measured)).collect();
    let title = format!("{} at {}", report.version, report.server.addr);
    boltkv_load::plot(file, &title, &lines).map_err(|error| Failure::not_done(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_values_is_one_or_two() {
        assert_eq!("100".parse(), Ok(Range(100, 100)));
        assert_eq!("10-4KiB".parse(), Ok(Range(10, 4096)));
        assert_eq!("0 - 1k".parse(), Ok(Range(0, 1024)));
        for text in ["", "-", "10-", "20-10", "ten", "1-2-3"] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
