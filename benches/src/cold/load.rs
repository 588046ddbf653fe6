//! What is asked of the server: GETs of random keys on some connections, so many in flight on each, and on one more a PING
//! every millisecond. All in lines of text, so that nothing but the server is measured.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::data::splitmix;

/// Time between two PINGs.
const EVERY: Duration = Duration::from_millis(1);

/// How long an answer may take: far more than any does.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connections, and how many GETs each has in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Burst {
    pub(super) connections: u64,
    pub(super) in_flight: usize,
}

/// What was seen.
#[derive(Debug)]
pub(super) struct Figures {
    /// GETs a second.
    pub(super) rate: f64,
    /// From a burst's sending to its last answer.
    pub(super) burst: Times,
    pub(super) ping: Times,
}

/// How long something took each time.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// What so many in a thousand did not take longer than; `None` where there is nothing.
    pub(super) fn per_mille(&self, part: usize) -> Option<Duration> {
        self.0.get((self.0.len().saturating_sub(1)) * part / 1000).copied()
    }
}

/// The value of a key. A line of text shows it as it is.
pub(super) fn value(n: u64, len: usize) -> Vec<u8> {
    let mut value = format!("{n:016}").into_bytes();
    value.resize(len, b'x');
    value
}

/// A connection, and numbers at random.
struct Client {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    /// How many numbers it has asked for, from a start of its own on.
    asked: u64,
}

impl Client {
    fn new(port: u16, seed: u64) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("no connection")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), line: Vec::new(), asked: seed })
    }

    fn number(&mut self) -> u64 {
        self.asked += 1;
        splitmix(self.asked)
    }

    /// Sends requests, and waits for answers of these lengths, which begin so.
    fn ask(&mut self, requests: &str, answers: impl Iterator<Item = (String, usize)>) -> Result<Duration> {
        let sent = Instant::now();
        self.stream.get_mut().write_all(requests.as_bytes())?;
        for (answer, len) in answers {
            self.line.clear();
            self.stream.read_until(b'\n', &mut self.line)?;
            if !self.line.starts_with(answer.as_bytes()) || self.line.len() != len + 1 {
                bail!("the server answered {:?}", self.line.escape_ascii().to_string());
            }
        }
        Ok(sent.elapsed())
    }

    fn bursts(mut self, burst: Burst, entries: u64, value: usize, over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let keys: Vec<_> = (0..burst.in_flight).map(|_| self.number() % entries).collect();
            let requests: String = keys.iter().flat_map(|n| ["GET ".to_owned(), format!("{n:016}\n")]).collect();
            times.push(self.ask(&requests, keys.iter().map(|n| (format!("{n:016}"), value)))?);
        }
        Ok(times)
    }

    fn pings(mut self, over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while !over.load(Ordering::Relaxed) {
            thread::sleep(EVERY);
            times.push(self.ask("PING\n", std::iter::once(("PONG".to_owned(), 4)))?);
        }
        Ok(times)
    }
}

/// Puts the load on for so long.
///
/// # Errors
/// A connection fails, or something was answered that is not right.
pub(super) fn run(port: u16, load: Option<Burst>, file: (u64, usize), time: Duration) -> Result<Figures> {
    let (entries, value) = file;
    let over = AtomicBool::new(false);
    let ping = Client::new(port, 0)?;
    let of_load = |burst: Burst| (1..=burst.connections).map(|seed| Client::new(port, seed << 32));
    let clients = load.into_iter().flat_map(of_load).collect::<Result<Vec<_>>>()?;
    let joined = "a thread of the load panicked";
    thread::scope(|scope| {
        let over = &over;
        let ping = scope.spawn(move || ping.pings(over));
        let burst = load.unwrap_or(Burst { connections: 0, in_flight: 0 });
        let clients: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(move || client.bursts(burst, entries, value, over))).collect();
        let begun = Instant::now();
        thread::sleep(time);
        over.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().map_err(|_| anyhow::anyhow!(joined))??);
        }
        let seconds = begun.elapsed().as_secs_f64();
        let ping = Times::of(ping.join().map_err(|_| anyhow::anyhow!(joined))??);
        #[expect(clippy::cast_precision_loss, reason = "a count of requests, far below 2^52")]
        let rate = (times.len() * burst.in_flight) as f64 / seconds;
        Ok(Figures { rate, burst: Times::of(times), ping })
    })
}
