//! A connection to the Redis: many commands at a time, and their replies in order.

use std::io;
use std::time::Duration;

use boltkv_protocol::resp::{Version, Writer};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, split};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::from::From;
use super::reply::{self, Reply};
use crate::failure::{Failure, Outcome};

/// However long an answer may take, a server that is there takes a connection sooner.
const MOST_TO_CONNECT: Duration = Duration::from_secs(5);
/// What is read of the socket at a time.
const BUFFER: usize = 64 * 1024;

/// What the Redis says, and what is said to it.
type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A Redis that is being asked.
pub(super) struct Source {
    /// Its address, for messages.
    addr: String,
    reader: BufReader<Input>,
    writer: Output,
    timeout: Duration,
}

/// Commands that are sent together.
#[derive(Default)]
pub(super) struct Commands {
    bytes: BytesMut,
    count: usize,
}

impl Commands {
    pub(super) fn add(&mut self, words: &[&[u8]]) {
        // A command is an array of values, as a reply may be.
        let mut writer = Writer::new(&mut self.bytes, Version::Two, usize::MAX);
        writer.array(words.len());
        for word in words {
            writer.bulk(word);
        }
        self.count += 1;
    }

    /// The same command for each key.
    pub(super) fn of_each<'k>(name: &str, keys: impl IntoIterator<Item = &'k Bytes>) -> Self {
        let mut commands = Self::default();
        for key in keys {
            commands.add(&[name.as_bytes(), key]);
        }
        commands
    }
}

impl Source {
    /// Connects, and says who asks.
    pub(super) async fn connect(from: &From, patience: Duration) -> Outcome<Self> {
        let addr = from.addr.clone();
        let failed = |why: String| Failure::unreachable(format!("could not connect to the Redis at {addr}: {why}"));
        let stream = timeout(patience.min(MOST_TO_CONNECT), TcpStream::connect(&addr)).await;
        let stream = stream.map_err(|_| failed("no answer".to_owned()))?.map_err(|error| failed(error.to_string()))?;
        stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
        let (reader, writer): (Input, Output) = match &from.tls {
            None => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Some(tls) => {
                let encrypted = timeout(patience.min(MOST_TO_CONNECT), tls.encrypt(&addr, stream)).await;
                let encrypted = encrypted.map_err(|_| failed("no answer to who wants to encrypt".to_owned()))?;
                let encrypted = encrypted.map_err(|error| failed(format!("could not encrypt: {error}")))?;
                let (reader, writer) = split(encrypted);
                (Box::new(reader), Box::new(writer))
            }
        };
        let reader = BufReader::with_capacity(BUFFER, reader);
        let mut source = Self { addr: addr.clone(), reader, writer, timeout: patience };
        match (from.user.as_deref(), from.password.as_deref()) {
            (Some(user), password) => {
                let password = password.unwrap_or_default();
                source.one(&[b"AUTH", user.as_bytes(), password.as_bytes()]).await?;
            }
            (None, Some(password)) => drop(source.one(&[b"AUTH", password.as_bytes()]).await?),
            (None, None) => {}
        }
        Ok(source)
    }

    /// Asks, and waits for all replies. A refusal is a reply.
    pub(super) async fn ask(&mut self, commands: &Commands) -> Outcome<Vec<Reply>> {
        let Self { addr, reader, writer, timeout: patience } = self;
        let (addr, patience) = (&*addr, *patience);
        let late = move || io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {patience:?}"));
        let write = async {
            // No timeout of its own: the replies have one, and who takes no commands sends none.
            writer.write_all(&commands.bytes).await?;
            writer.flush().await
        };
        let read = async {
            let mut replies = Vec::with_capacity(commands.count);
            while replies.len() < commands.count {
                replies.push(timeout(patience, reply::read(reader)).await.map_err(|_| late())??);
            }
            Ok::<_, io::Error>(replies)
        };
        // At once: a server that waits until its replies are read would not read more commands meanwhile.
        let done = tokio::try_join!(write, read);
        let ((), replies) = done.map_err(|error| {
            let what = if error.kind() == io::ErrorKind::UnexpectedEof {
                "it closed the connection".to_owned()
            } else {
                error.to_string()
            };
            Failure::unreachable(format!("the Redis at {addr} is lost: {what}"))
        })?;
        Ok(replies)
    }

    /// Asks one thing, which must not be refused.
    pub(super) async fn one(&mut self, words: &[&[u8]]) -> Outcome<Reply> {
        let mut commands = Commands::default();
        commands.add(words);
        let reply = self.ask(&commands).await?.pop();
        let name = words.first().copied().unwrap_or_default();
        match reply {
            Some(Reply::Refused(why)) => Err(self.refused(&String::from_utf8_lossy(name), &why)),
            Some(reply) => Ok(reply),
            None => Err(self.unexpected(&String::from_utf8_lossy(name))),
        }
    }

    /// How many keys there are in the database that is selected.
    pub(super) async fn size(&mut self) -> Outcome<u64> {
        match self.one(&[b"DBSIZE"]).await? {
            Reply::Number(count) => Ok(u64::try_from(count).unwrap_or(0)),
            _ => Err(self.unexpected("DBSIZE")),
        }
    }

    /// How many keys of a database have a time, by what INFO says; 0 where it says nothing.
    pub(super) async fn timed(&mut self, number: u32) -> Outcome<u64> {
        let mut commands = Commands::default();
        commands.add(&[b"INFO", b"keyspace"]);
        let Some(Reply::Value(info)) = self.ask(&commands).await?.pop() else { return Ok(0) };
        let info = String::from_utf8_lossy(&info);
        let of = info.lines().find_map(|line| line.strip_prefix(&format!("db{number}:")));
        let count = of.and_then(|fields| fields.split(',').find_map(|field| field.strip_prefix("expires=")));
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// What time it is there, in milliseconds since 1970.
    pub(super) async fn now(&mut self) -> Outcome<u64> {
        let Reply::Array(parts) = self.one(&[b"TIME"]).await? else { return Err(self.unexpected("TIME")) };
        let number = |reply: &Reply| match reply {
            Reply::Value(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
            _ => None,
        };
        match parts.iter().map(number).collect::<Vec<_>>()[..] {
            [Some(seconds), Some(micros)] => Ok(seconds.saturating_mul(1_000).saturating_add(micros / 1_000)),
            _ => Err(self.unexpected("TIME")),
        }
    }

    /// From now on commands are about this database. Whether there is one of that number.
    pub(super) async fn select(&mut self, number: u32) -> Outcome<bool> {
        let mut commands = Commands::default();
        commands.add(&[b"SELECT", number.to_string().as_bytes()]);
        match self.ask(&commands).await?.pop() {
            Some(Reply::Word(_)) => Ok(true),
            Some(Reply::Refused(why)) if why.starts_with("NOAUTH") || why.starts_with("NOPERM") => {
                Err(self.refused("SELECT", &why))
            }
            Some(Reply::Refused(_)) => Ok(false),
            _ => Err(self.unexpected("SELECT")),
        }
    }

    /// What is said where the Redis does not do what it is asked.
    pub(super) fn refused(&self, name: &str, why: &str) -> Failure {
        let hint = if why.starts_with("NOAUTH") || why.starts_with("WRONGPASS") {
            "; --redis-password-file FILE or BOLTKV_REDIS_PASSWORD says who you are"
        } else {
            ""
        };
        Failure::not_done(format!("the Redis at {} refuses {name}: {why}{hint}", self.addr))
    }

    /// What is said where a reply is none to what was asked.
    pub(super) fn unexpected(&self, name: &str) -> Failure {
        Failure::unreachable(format!("the Redis at {} answers {name} otherwise than Redis does", self.addr))
    }
}
