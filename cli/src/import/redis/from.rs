//! Where the Redis is, and who asks it: from the command line, the environment and files.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fs};

use boltkv_client::Tls;
use clap::Args;

use crate::arguments::address_with;
use crate::failure::{Failure, Outcome};

/// The port on which Redis usually listens.
const USUAL_PORT: u16 = 6379;
/// The variables of the environment: a URL, which may have the password in it; the password, also by redis-cli's name for it.
const URL: &str = "BOLTKV_REDIS_URL";
const PASSWORDS: [&str; 2] = ["BOLTKV_REDIS_PASSWORD", "REDISCLI_AUTH"];
/// The most that is read of a file with a password, in bytes.
const MOST_OF_FILE: u64 = 4 * 1024;

/// The options that are about a Redis.
#[derive(Debug, Args)]
pub(in crate::import) struct RedisArgs {
    /// Copy this Redis: `HOST:PORT`, `HOST`, or `redis://[USER@]HOST[:PORT][/DATABASE]`, encrypted with `rediss://`; none: what `BOLTKV_REDIS_URL` says
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["file", "csv", "skip"]
    )]
    from_redis: Option<String>,
    /// Which of its databases: a number, or `all` [default: 0, or that of the URL]
    #[arg(long, value_name = "N|all", requires = "from_redis")]
    redis_db: Option<Databases>,
    /// A file whose first line is the password of that Redis; `BOLTKV_REDIS_PASSWORD` has the password itself
    #[arg(long, value_name = "FILE", requires = "from_redis")]
    redis_password_file: Option<PathBuf>,
    /// Take only a Redis that has a certificate from one of those in this file (PEM), for `rediss://`; otherwise those are
    /// taken whom this system trusts
    #[arg(long, value_name = "FILE", requires = "from_redis")]
    redis_tls_ca: Option<PathBuf>,
    /// Of a Redis: change nothing that is there already, neither values nor fields of hashes
    #[arg(long, requires = "from_redis")]
    pub(super) if_absent: bool,
    /// Of a Redis: end with 0 also where keys were left out that boltkv cannot hold: lists, sets, sorted sets, streams
    #[arg(long, requires = "from_redis")]
    pub(super) skip_unsupported: bool,
}

/// Which databases are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Databases {
    One(u32),
    All,
}

impl FromStr for Databases {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            number => number.parse().map(Self::One).map_err(|_| "not the number of a database, nor `all`"),
        }
    }
}

/// A Redis, and who asks it.
pub(in crate::import) struct From {
    /// Host and port.
    pub(super) addr: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) databases: Databases,
    /// How to encrypt; `None`: not at all.
    pub(super) tls: Option<Tls>,
}

/// What an address or a URL says.
#[derive(Debug)]
struct Parsed {
    addr: String,
    user: Option<String>,
    password: Option<String>,
    databases: Databases,
    encrypted: bool,
}

impl RedisArgs {
    /// What is to be copied; `None` where no Redis is.
    pub(in crate::import) fn from(&self) -> Outcome<Option<From>> {
        let Some(given) = &self.from_redis else { return self.refuse_what_is_of_a_redis().map(|()| None) };
        let from = match given.as_str() {
            "" => {
                let missing = || Failure::usage(format!("--from-redis names no address, and {URL} is not set"));
                parse(&variable(URL).ok_or_else(missing)?).map_err(|why| Failure::usage(format!("{URL}: {why}")))?
            }
            given => {
                let from = parse(given).map_err(|why| Failure::usage(format!("--from-redis: {why}")))?;
                if from.password.is_some() {
                    let why = "all who may list processes see a password there";
                    let [password, _] = PASSWORDS;
                    return Err(Failure::usage(format!(
                        "--from-redis: {why}: give it by {password} or --redis-password-file, or the whole URL by {URL}"
                    )));
                }
                from
            }
        };
        let tls = match &self.redis_tls_ca {
            Some(_) if !from.encrypted => {
                let why = "--redis-tls-ca says who is to be trusted, and only rediss://HOST is encrypted";
                return Err(Failure::usage(why));
            }
            ca if from.encrypted => Some(trusting(ca.as_deref())?),
            _ => None,
        };
        let Parsed { addr, user, password, databases, .. } = from;
        let databases = self.redis_db.unwrap_or(databases);
        Ok(Some(From { addr, user, password: self.password(password)?, databases, tls }))
    }

    /// The password, where the URL has this one. What is set for redis-cli may be meant for another Redis.
    fn password(&self, of_url: Option<String>) -> Outcome<Option<String>> {
        if let Some(file) = &self.redis_password_file {
            return first_line(file).map(Some);
        }
        let [own, of_redis_cli] = PASSWORDS;
        Ok(variable(own).or(of_url).or_else(|| variable(of_redis_cli)))
    }

    /// clap asks for --from-redis with these, but not beside a FILE, which excludes it.
    fn refuse_what_is_of_a_redis(&self) -> Outcome {
        let given = [
            ("--redis-db", self.redis_db.is_some()),
            ("--redis-password-file", self.redis_password_file.is_some()),
            ("--redis-tls-ca", self.redis_tls_ca.is_some()),
            ("--if-absent", self.if_absent),
            ("--skip-unsupported", self.skip_unsupported),
        ];
        let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        Err(Failure::usage(format!("{option} is for --from-redis: lines replace what is there already")))
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Who is trusted: whoever has a certificate from one of those in a file, or from whom this system trusts.
fn trusting(ca: Option<&Path>) -> Outcome<Tls> {
    let mut builder = Tls::builder();
    if let Some(file) = ca {
        let failed = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        let pem = fs::read(file).map_err(|error| failed(format!("could not read: {error}")))?;
        builder = builder.roots(&pem).map_err(|error| failed(error.to_string()))?;
    }
    builder.build().map_err(|error| Failure::usage(format!("cannot encrypt: {error}")))
}

/// The first line of a file, without its end.
fn first_line(path: &Path) -> Outcome<String> {
    let failed = |why: String| Failure::usage(format!("{}: could not read the password: {why}", path.display()));
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_OF_FILE).read_to_string(&mut text));
    read.map_err(|error| failed(error.to_string()))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(failed("its first line is empty".to_owned())),
    }
}

/// Reads an address or a URL.
fn parse(text: &str) -> Result<Parsed, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        let addr = address_with(text, USUAL_PORT).map_err(str::to_owned)?;
        return Ok(Parsed { addr, user: None, password: None, databases: Databases::One(0), encrypted: false });
    };
    let encrypted = match scheme {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err("neither HOST:PORT nor redis://HOST:PORT".to_owned()),
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // A password may have slashes in it; the host has no `@`.
    let (who, place) = rest.rsplit_once('@').map_or((None, rest), |(who, place)| (Some(who), place));
    let (addr, database) = place.split_once('/').unwrap_or((place, ""));
    let databases = match database {
        "" => Databases::One(0),
        number => Databases::One(number.parse().map_err(|_| "what stands behind the last / is no number".to_owned())?),
    };
    let (user, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
        None => (None, None),
        Some((user, password)) => (decoded(user)?, decoded(password)?),
    };
    let addr = address_with(if addr.is_empty() { "127.0.0.1" } else { addr }, USUAL_PORT).map_err(str::to_owned)?;
    Ok(Parsed { addr, user, password, databases, encrypted })
}

/// A part of a URL, in which `%40` is an `@`; `None` where it is empty.
fn decoded(part: &str) -> Result<Option<String>, String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or("a % in it is not followed by two hexadecimal digits")?);
        rest = after.get(2..).unwrap_or_default();
    }
    let text = String::from_utf8(bytes).map_err(|_| "who asks is no UTF-8".to_owned())?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, Option<String>, Databases) {
        let Parsed { addr, user, password, databases, .. } = parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        (addr, user, password, databases)
    }

    #[test]
    fn an_address_or_a_url_says_where_and_who() {
        let some = |text: &str| Some(text.to_owned());
        for (text, addr, user, password, database) in [
            ("db", "db:6379", None, None, 0),
            ("db:7000", "db:7000", None, None, 0),
            ("::1", "[::1]:6379", None, None, 0),
            ("redis://db", "db:6379", None, None, 0),
            ("redis://db:7000/3?x=y", "db:7000", None, None, 3),
            ("redis:///2", "127.0.0.1:6379", None, None, 2),
            ("redis://ada@db/", "db:6379", some("ada"), None, 0),
            ("redis://:s%40e/c:ret@db/1", "db:6379", None, some("s@e/c:ret"), 1),
            ("redis://ada:b@[::1]:7000", "[::1]:7000", some("ada"), some("b"), 0),
        ] {
            assert_eq!(parts(text), (addr.to_owned(), user, password, Databases::One(database)), "{text}");
        }
        for text in ["", "6379", "redis://db/x", "http://db", "redis://a%4@db", "redis://a%ff@db"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for (text, encrypted) in
            [("db", false), ("redis://db", false), ("rediss://ada@db:7000/1", true), ("valkeys://db", true)]
        {
            assert_eq!(parse(text).unwrap().encrypted, encrypted, "{text}");
        }
        assert_eq!("all".parse(), Ok(Databases::All));
        assert!("-1".parse::<Databases>().is_err());
    }
}
