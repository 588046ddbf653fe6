//! The crowds themselves.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use boltkv_protocol::Token;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::PATIENCE;

/// Threads of a crowd that does something.
const THREADS: usize = 4;
/// Connections of each of them, where it keeps some.
const KEPT: usize = 25;
/// Those that stand still and each of which costs the server more than a few KiB are fewer.
const FEW: usize = 1_000;

/// A crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nobody.
    Nobody,
    /// Connections that were answered once.
    Idle,
    /// The same, encrypted.
    IdleTls,
    /// Connections that have said nothing.
    Silent,
    /// A line that comes a byte a second.
    Line,
    /// A HELLO that does.
    Hello,
    /// A handshake that does.
    Handshake,
    /// A frame of a megabyte that does, of clients that are let in.
    Frame,
    /// Megabytes that are asked for and not taken.
    Unread,
    /// Connections that are made and reset.
    Connects,
    /// Wrong tokens.
    WrongTokens,
    /// Handshakes from beginning to end.
    Handshakes,
    /// Handshakes that are begun, and left when the server has done its part.
    Greetings,
    /// The same, where its certificate is RSA's.
    GreetingsRsa,
    /// Lines, a hundred at a time.
    Lines,
}

/// Where the server is, and how it encrypts.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) addr: String,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The first thing that is said then.
    greeting: Arc<[u8]>,
}

/// A crowd that is there until it is told to leave.
pub(super) struct Crowd {
    over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// One of them.
enum Member {
    Plain(TcpStream),
    Encrypted { _stream: Box<StreamOwned<ClientConnection, TcpStream>> },
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 15] = [
        Self::Nobody,
        Self::Idle,
        Self::IdleTls,
        Self::Silent,
        Self::Line,
        Self::Hello,
        Self::Handshake,
        Self::Frame,
        Self::Unread,
        Self::Connects,
        Self::WrongTokens,
        Self::Handshakes,
        Self::Greetings,
        Self::GreetingsRsa,
        Self::Lines,
    ];

    /// Its name, for people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Idle => "idle connections",
            Self::IdleTls => "idle connections, encrypted",
            Self::Silent => "connections that say nothing",
            Self::Line => "half a line, and a byte a second",
            Self::Hello => "half a HELLO, and a byte a second",
            Self::Handshake => "half a handshake, and a byte a second",
            Self::Frame => "half a SET of 1 MiB, and a byte a second",
            Self::Unread => "20 GETs of 1 MiB each, not taken",
            Self::Connects => "flood: connections made and reset",
            Self::WrongTokens => "flood: wrong tokens",
            Self::Handshakes => "flood: handshakes",
            Self::Greetings => "flood: handshakes, begun and left open",
            Self::GreetingsRsa => "flood: handshakes, begun and left open, the certificate RSA-3072",
            Self::Lines => "flood: PINGs, 100 at a time on 100 connections",
        }
    }

    /// Whether those in it have no token, on a server that asks for one.
    pub(super) const fn is_of_strangers(self) -> bool {
        matches!(
            self,
            Self::Silent
                | Self::Line
                | Self::Hello
                | Self::Handshake
                | Self::Connects
                | Self::WrongTokens
                | Self::Handshakes
                | Self::Greetings
                | Self::GreetingsRsa
        )
    }

    pub(super) const fn is_encrypted(self) -> bool {
        matches!(self, Self::IdleTls | Self::Handshake | Self::Handshakes | Self::Greetings | Self::GreetingsRsa)
    }

    pub(super) const fn is_flood(self) -> bool {
        matches!(
            self,
            Self::Connects | Self::WrongTokens | Self::Handshakes | Self::Greetings | Self::GreetingsRsa | Self::Lines
        )
    }

    /// What its members send a byte a second.
    const fn dribbles(self) -> bool {
        matches!(self, Self::Line | Self::Hello | Self::Handshake | Self::Frame)
    }
}

impl Place {
    /// # Errors
    /// Nothing can be said in that way.
    pub(super) fn new(addr: String, tls: Option<Arc<ClientConfig>>) -> Result<Self> {
        let mut greeting = Vec::new();
        if let Some(config) = &tls {
            client(config)?.write_tls(&mut greeting)?;
        }
        Ok(Self { addr, tls, greeting: greeting.into() })
    }
}

impl Crowd {
    /// Has it come, and waits until it is there.
    pub(super) fn gather(kind: Kind, place: &Place, size: usize) -> Result<Self> {
        if kind == Kind::Unread {
            put_something_large(place)?;
        }
        let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (tell, told) = channel();
        let start = |_| {
            let (place, tell, over, done) = (place.clone(), tell.clone(), Arc::clone(&over), Arc::clone(&done));
            thread::spawn(move || match kind {
                Kind::Nobody => drop(tell.send(())),
                _ if kind.is_flood() => flood(kind, &place, &over, &done, &tell),
                _ => stand(kind, &place, size, &over, &tell),
            })
        };
        let threads: Vec<_> = (0..if kind.is_flood() { THREADS } else { 1 }).map(start).collect();
        for _ in &threads {
            told.recv_timeout(PATIENCE).context("the crowd does not come")?;
        }
        Ok(Self { over, done, threads })
    }

    /// How often it has done what it does.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    pub(super) fn leave(self) {
        self.over.store(true, Relaxed);
        for thread in self.threads {
            // What it could not do is seen in what was done.
            let _ = thread.join();
        }
    }
}

/// Stands there, and says a byte a second, where that is what it does. Who is sent away comes again.
fn stand(kind: Kind, place: &Place, size: usize, over: &AtomicBool, tell: &Sender<()>) {
    let size = if matches!(kind, Kind::IdleTls | Kind::Unread | Kind::Frame) { size.min(FEW) } else { size };
    let mut members: Vec<_> = (0..size).map(|_| begin(kind, place).ok()).collect();
    let _ = tell.send(());
    while !over.load(Relaxed) {
        let round = Instant::now();
        for member in members.iter_mut().filter(|_| kind.dribbles()) {
            if member.is_none() {
                *member = begin(kind, place).ok();
            }
            let Some(Member::Plain(stream)) = member else { continue };
            if stream.write_all(b"x").is_err() {
                *member = begin(kind, place).ok();
            }
            if over.load(Relaxed) {
                return;
            }
        }
        while !over.load(Relaxed) && round.elapsed() < Duration::from_secs(1) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// One more comes, and says what it says at once.
fn begin(kind: Kind, place: &Place) -> Result<Member> {
    let mut stream = connect(&place.addr)?;
    match kind {
        Kind::Idle => {
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut [0; 5])?;
        }
        Kind::IdleTls => {
            let mut stream = encrypted(stream, place)?;
            stream.write_all(b"PING\r\n")?;
            stream.read_exact(&mut [0; 5])?;
            return Ok(Member::Encrypted { _stream: Box::new(stream) });
        }
        Kind::Line => stream.write_all(b"SET k ")?,
        Kind::Hello => stream.write_all(b"\0\0\x0f\xa0\0\0\0\x01\x01\0BKV1")?,
        Kind::Handshake => stream.write_all(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03")?,
        Kind::Frame => {
            stream.write_all(b"\0\0\0\x14\0\0\0\x01\x01\0BKV1\x01\x01\0\0\0\0\0\0\0\0")?;
            stream.write_all(b"\0\x10\0\0\0\0\0\x02\x11\0\x01\0\x06crowds\0\x01k")?;
        }
        Kind::Unread => stream.write_all("GET large\r\n".repeat(20).as_bytes())?,
        _ => {}
    }
    Ok(Member::Plain(stream))
}

fn flood(kind: Kind, place: &Place, over: &AtomicBool, done: &AtomicU64, tell: &Sender<()>) {
    let _ = tell.send(());
    let mut kept = VecDeque::new();
    while !over.load(Relaxed) {
        // What fails is not counted, and tried again: a server may say no.
        if let Ok(times) = once(kind, place, &mut kept) {
            done.fetch_add(times, Relaxed);
        }
    }
}

/// Does once what a flood is made of; how often that was.
fn once(kind: Kind, place: &Place, kept: &mut VecDeque<TcpStream>) -> Result<u64> {
    if kind == Kind::Lines {
        while kept.len() < KEPT {
            kept.push_back(connect(&place.addr)?);
        }
        for stream in kept.iter_mut() {
            stream.write_all("PING\r\n".repeat(100).as_bytes())?;
        }
        for stream in kept.iter_mut() {
            stream.read_exact(&mut [0; 500])?;
        }
        return Ok(100 * KEPT as u64);
    }
    let mut stream = connect(&place.addr)?;
    // Or the ports that nobody may use for a minute would run out.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    match kind {
        Kind::WrongTokens => {
            stream.write_all(b"AUTH wrong\r\n")?;
            kept.push_back(stream);
            if kept.len() > FEW / THREADS {
                kept.pop_front();
            }
        }
        Kind::Handshakes => drop(encrypted(stream, place)?),
        Kind::Greetings | Kind::GreetingsRsa => {
            stream.write_all(&place.greeting)?;
            kept.push_back(stream);
            if kept.len() > FEW {
                kept.pop_front();
            }
        }
        _ => {}
    }
    Ok(1)
}

fn encrypted(stream: TcpStream, place: &Place) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let config = place.tls.as_ref().context("nobody said how to encrypt")?;
    let mut stream = StreamOwned::new(client(config)?, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

fn client(config: &Arc<ClientConfig>) -> Result<ClientConnection> {
    Ok(ClientConnection::new(Arc::clone(config), "127.0.0.1".try_into()?)?)
}

fn connect(addr: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn put_something_large(place: &Place) -> Result<()> {
    // In text the bucket is made when it is needed.
    say(&place.addr, &Token::NONE, "SET small v")?;
    let mut stream = connect(&place.addr)?;
    let len = 1_u32 << 20;
    stream.write_all(b"\0\0\0\x14\0\0\0\x01\x01\0BKV1\x01\x01\0\0\0\0\0\0\0\0")?;
    let head = b"\0\0\0\x02\x11\0\x01\0\x07default\0\x05large";
    let frame = u32::try_from(head.len())? + 4 + len + 1;
    stream.write_all(&[&frame.to_be_bytes()[..], head, &len.to_be_bytes(), &vec![b'v'; 1 << 20], b"\0"].concat())?;
    stream.shutdown(Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new())?;
    let told = say(&place.addr, &Token::NONE, "EXISTS large")?;
    anyhow::ensure!(told.starts_with('1'), "the server took no large value: {told:?}");
    Ok(())
}

/// What a line is answered with, on a connection of its own; after what AUTH is, where there is a token.
pub(super) fn say(addr: &str, token: &Token, line: &str) -> Result<String> {
    let mut stream = connect(addr)?;
    if !token.is_none() {
        stream.write_all(&[b"AUTH ", token.secret(), b"\r\n"].concat())?;
    }
    stream.write_all(format!("{line}\r\nQUIT\r\n").as_bytes())?;
    let mut told = String::new();
    stream.read_to_string(&mut told)?;
    Ok(told)
}

/// This process may have as many files open as the system lets it.
pub(super) fn raise_open_files() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
