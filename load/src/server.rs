//! Who is asked: how connections are opened, and a place on the server that is ours alone. Nothing that was there before
//! is ever touched, unless the caller says that it is from an earlier run.

mod boltkv;
mod lines;

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use boltkv_protocol::{Path, Token};

use crate::connection::Opened;
use crate::wire::{Boltkv, Memcached, Redis};
use crate::{Error, Op, Work};
use lines::Lines;

/// Which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// boltkv, by its binary protocol or by RESP 2: see [`Dialect`].
    Boltkv,
    /// Redis or Valkey, by RESP 2.
    Redis,
    /// memcached, by its text protocol.
    Memcached,
}

/// Which of its protocols boltkv is asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Its own, in binary.
    #[default]
    Binary,
    /// That of Redis, RESP 2.
    Resp,
}

/// The protocol that a server is asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Binary,
    Resp,
    Memcached,
}

/// However long an answer may take, a server that is there takes a connection sooner.
const MOST_TO_CONNECT: Duration = Duration::from_secs(5);

/// A server, and the place on it that is measured.
#[derive(Debug, Clone)]
pub struct Server {
    /// Which server it is.
    pub target: Target,
    /// boltkv: by which of its protocols.
    pub dialect: Dialect,
    /// Where: a host and a port.
    pub addr: String,
    /// boltkv, in binary: the bucket.
    pub bucket: Path,
    /// Redis, and boltkv by RESP: the number of the database.
    pub database: u32,
    /// How long an answer may take while places are made and removed.
    pub timeout: Duration,
    /// boltkv: what says who asks, where the server wants to know.
    pub token: Token,
}

impl Target {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boltkv => "boltkv",
            Self::Redis => "redis",
            Self::Memcached => "memcached",
        }
    }

    /// The port on which it usually listens.
    #[must_use]
    pub const fn usual_port(self) -> u16 {
        match self {
            Self::Boltkv => 7878,
            Self::Redis => 6379,
            Self::Memcached => 11211,
        }
    }
}

impl Dialect {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Resp => "resp",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Server {
    const fn spoken(&self) -> Spoken {
        match (self.target, self.dialect) {
            (Target::Boltkv, Dialect::Binary) => Spoken::Binary,
            (Target::Boltkv, Dialect::Resp) | (Target::Redis, _) => Spoken::Resp,
            (Target::Memcached, _) => Spoken::Memcached,
        }
    }

    /// Whether its places are buckets.
    #[must_use]
    pub const fn has_buckets(&self) -> bool {
        matches!(self.spoken(), Spoken::Binary)
    }

    /// Whether its places are databases by number.
    #[must_use]
    pub const fn has_databases(&self) -> bool {
        matches!(self.spoken(), Spoken::Resp)
    }

    /// The place that is ours, for people: `bucket boltkv-bench`.
    #[must_use]
    pub fn place(&self) -> String {
        match self.spoken() {
            Spoken::Binary => format!("bucket {}", self.bucket),
            Spoken::Resp => format!("database {}", self.database),
            Spoken::Memcached => "the whole cache".to_owned(),
        }
    }

    /// What the server calls itself, with its version.
    ///
    /// # Errors
    /// Those of connecting, and what is no such server.
    pub fn version(&self) -> Result<String, Error> {
        match self.spoken() {
            Spoken::Binary => Ok(boltkv::Connected::new(self)?.hello.server),
            Spoken::Resp => Lines::introduced(self)?.redis_version(),
            Spoken::Memcached => Lines::connect(self)?.memcached_version(),
        }
    }

    /// Makes the place that is ours. It must not be there (a bucket), or has to be empty (a database, a cache). Answers the
    /// bucket that is to be removed in the end: the topmost of those that were made, where others were missing above it.
    ///
    /// # Errors
    /// [`Error::Occupied`] where it is there, or not empty; what the server refuses; those of connecting.
    pub fn prepare(&self) -> Result<Path, Error> {
        match self.spoken() {
            Spoken::Binary => return boltkv::Connected::new(self)?.create(&self.bucket),
            Spoken::Resp => Lines::introduced(self)?.redis_is_empty(self.database)?,
            Spoken::Memcached => Lines::connect(self)?.memcached_is_empty()?,
        }
        Ok(self.bucket.clone())
    }

    /// Sees whether the place is there, for a run that uses what another has left. A database and a cache always are.
    ///
    /// # Errors
    /// [`Error::Missing`] where it is not; what the server refuses; those of connecting.
    pub fn find(&self) -> Result<(), Error> {
        match self.spoken() {
            Spoken::Binary => boltkv::Connected::new(self)?.find(&self.bucket),
            Spoken::Resp | Spoken::Memcached => Ok(()),
        }
    }

    /// Removes it, with all that a run has put there. Only for whoever has [prepared](Self::prepare) it: of databases and
    /// caches all is removed, because there was nothing.
    ///
    /// # Errors
    /// What the server refuses; those of connecting.
    pub fn remove(&self) -> Result<(), Error> {
        match self.spoken() {
            Spoken::Binary => boltkv::Connected::new(self)?.delete(&self.bucket),
            Spoken::Resp => Lines::introduced(self)?.redis_flush(self.database),
            Spoken::Memcached => Lines::connect(self)?.memcached_flush(),
        }
    }

    /// Says what of a work this kind of server cannot do at all. Nothing is asked of it.
    ///
    /// # Errors
    /// [`Error::Impossible`].
    pub fn can(&self, work: &Work) -> Result<(), Error> {
        if self.target == Target::Memcached && work.mix.has(Op::Scan) {
            return Err(Error::Impossible("memcached has no scan".to_owned()));
        }
        Ok(())
    }

    /// Opens a connection for a run.
    pub(crate) fn open(&self, work: &Work) -> Result<Opened, Error> {
        match self.spoken() {
            Spoken::Binary => {
                let connected = boltkv::Connected::new(self)?;
                connected.hello.can(work)?;
                let wire = Boltkv::new(self.bucket.clone(), connected.hello.max_frame, work.pipeline);
                Ok((connected.stream, Box::new(wire)))
            }
            Spoken::Resp => {
                let mut lines = Lines::introduced(self)?;
                lines.redis_select(self.database)?;
                Ok((lines.into_stream(), Box::new(Redis::default())))
            }
            Spoken::Memcached => Ok((self.connect()?, Box::new(Memcached::default()))),
        }
    }

    /// A socket that blocks, but never for longer than the timeout.
    fn connect(&self) -> Result<TcpStream, Error> {
        let failed = |source| Error::Connect { addr: self.addr.clone(), source };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
        for address in self.addr.to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, self.timeout.min(MOST_TO_CONNECT)) {
                Ok(stream) => return self.set_up(&stream).map(|()| stream).map_err(failed),
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    fn set_up(&self, stream: &TcpStream) -> io::Result<()> {
        // Requests are gathered before they are written; waiting for more of them is not TCP's to do.
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))
    }

    /// For `map_err`: what is there is not what was meant.
    fn broken(&self, what: impl Into<String>) -> Error {
        Error::Protocol { addr: self.addr.clone(), target: self.target.name(), what: what.into() }
    }

    /// For `map_err`: it takes connections and does not answer.
    fn silent(&self, source: io::Error) -> Error {
        let late = matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let source = if late {
            io::Error::new(io::ErrorKind::TimedOut, "it takes the connection and does not answer")
        } else {
            source
        };
        Error::Connect { addr: self.addr.clone(), source }
    }
}
