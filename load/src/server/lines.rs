//! What is asked of Redis and memcached beside the requests of a run: who they are, whether they are empty, and to forget
//! all.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bytes::BytesMut;

use super::Server;
use crate::Error;
use crate::wire::{command, number, shown};

/// A line of an answer is no longer than this.
const MOST_LINE: u64 = 64 * 1024;
/// What memcached says of itself has no more lines than this.
const MOST_LINES: usize = 1000;
/// For so long, so often, it is given time to find what was flushed.
const CRAWL: Duration = Duration::from_millis(50);
const CRAWLS: u32 = 60;

/// A connection that blocks, and is spoken to line by line.
pub(super) struct Lines<'a> {
    stream: BufReader<TcpStream>,
    server: &'a Server,
}

impl<'a> Lines<'a> {
    pub(super) fn connect(server: &'a Server) -> Result<Self, Error> {
        Ok(Self { stream: BufReader::new(server.connect()?), server })
    }

    /// A connection that speaks Redis' protocol, and has said who asks, where there is something to say.
    pub(super) fn introduced(server: &'a Server) -> Result<Self, Error> {
        let mut lines = Self::connect(server)?;
        if !server.token.is_none() {
            lines.redis(&[b"AUTH", server.token.secret()])?;
        }
        Ok(lines)
    }

    /// The socket; nothing is unread.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// The server's name and version. boltkv tells Redis' version as its own, whose commands it has, for clients that ask.
    pub(super) fn redis_version(mut self) -> Result<String, Error> {
        let info = self.redis(&[b"INFO", b"server"])?;
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::to_owned)
        };
        match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => Ok(format!("Valkey {version}")),
            (None, Some(version)) if field("boltkv_version").is_some() => Ok(format!("boltkv, as Redis {version}")),
            (None, Some(version)) => Ok(format!("Redis {version}")),
            (None, None) => Err(self.server.broken("it does not tell its version")),
        }
    }

    /// Whether this database holds nothing.
    pub(super) fn redis_is_empty(mut self, database: u32) -> Result<(), Error> {
        self.redis_select(database)?;
        let count: u64 = number(self.redis(&[b"DBSIZE"])?.as_bytes()).map_err(|what| self.server.broken(what))?;
        if count == 0 {
            return Ok(());
        }
        let keys = if count == 1 { "key" } else { "keys" };
        Err(Error::Occupied(format!("database {database} has {count} {keys}: a run wants one that is empty")))
    }

    pub(super) fn redis_select(&mut self, database: u32) -> Result<(), Error> {
        if database == 0 {
            return Ok(());
        }
        self.redis(&[b"SELECT", database.to_string().as_bytes()]).map(drop)
    }

    pub(super) fn redis_flush(mut self, database: u32) -> Result<(), Error> {
        self.redis_select(database)?;
        self.redis(&[b"FLUSHDB"]).map(drop)
    }

    /// Asks Redis, and gives what it says: a line, a number or a string.
    fn redis(&mut self, words: &[&[u8]]) -> Result<String, Error> {
        let mut out = BytesMut::new();
        command(words, &mut out);
        let line = self.ask(&out)?;
        let Some((kind, rest)) = line.split_first() else { return Err(self.server.broken("an empty line")) };
        let rest = String::from_utf8_lossy(rest).into_owned();
        match kind {
            b'+' | b':' => Ok(rest),
            b'-' => Err(Error::Refused { what: "a command", why: shown(rest.as_bytes()) }),
            b'$' => {
                let len: u64 = number(rest.as_bytes()).map_err(|what| self.server.broken(what))?;
                let mut text = Vec::new();
                let read = (&mut self.stream).take(len.min(MOST_LINE).saturating_add(2)).read_to_end(&mut text);
                read.map_err(|error| self.server.silent(error))?;
                Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
            }
            _ => Err(self.server.broken(format!("it says \"{}\"", shown(&line)))),
        }
    }

    /// memcached's name and version.
    pub(super) fn memcached_version(mut self) -> Result<String, Error> {
        let line = self.ask(b"version\r\n")?;
        match line.strip_prefix(b"VERSION ") {
            Some(version) => Ok(format!("memcached {}", shown(version))),
            None => Err(self.server.broken(format!("it says \"{}\"", shown(&line)))),
        }
    }

    pub(super) fn memcached_is_empty(mut self) -> Result<(), Error> {
        match self.memcached_items()? {
            0 => Ok(()),
            count => Err(Error::Occupied(format!("the cache has {count} items: a run wants one that is empty"))),
        }
    }

    fn memcached_items(&mut self) -> Result<u64, Error> {
        let mut line = self.ask(b"stats\r\n")?;
        for _ in 0..MOST_LINES {
            if let Some(count) = line.strip_prefix(b"STAT curr_items ") {
                let count = number(count).map_err(|what| self.server.broken(what))?;
                // The rest is not wanted, but has to be read.
                while self.line()?.starts_with(b"STAT ") {}
                return Ok(count);
            }
            if !line.starts_with(b"STAT ") {
                break;
            }
            line = self.line()?;
        }
        Err(self.server.broken("it does not tell how many items it has"))
    }

    pub(super) fn memcached_flush(mut self) -> Result<(), Error> {
        let line = self.ask(b"flush_all\r\n")?;
        if line != b"OK" {
            return Err(Error::Refused { what: "flush_all", why: shown(&line) });
        }
        // What was flushed is still counted until somebody comes across it. It is gone all the same: a crawler that is
        // off, or slow, is no error.
        for _ in 0..CRAWLS {
            self.ask(b"lru_crawler crawl all\r\n")?;
            thread::sleep(CRAWL);
            if self.memcached_items()? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>, Error> {
        self.stream.get_mut().write_all(request).map_err(|error| self.server.silent(error))?;
        self.line()
    }

    /// A line without its end.
    fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        let read = (&mut self.stream).take(MOST_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| self.server.silent(error))?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line.to_vec()),
            None if line.is_empty() => Err(self.server.broken("it closed the connection")),
            None => Err(self.server.broken(format!("it says \"{}\"", shown(&line)))),
        }
    }
}
