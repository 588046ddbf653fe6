//! One thread's loop over its connections: waits for what arrives, counts it, and asks on.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime, timerfd_create,
    timerfd_settime,
};

use crate::connection::{Answered, Arrived, Connection, Opened};
use crate::keys::{Picker, is_prefixed, share, write_key};
use crate::measured::{Measured, OfOp};
use crate::pace::Pace;
use crate::run::Shared;
use crate::wire::{Asked, Fared};
use crate::{Error, Limit, Op, Work};

/// Nothing is waited for longer than this without a look at whether the run is over: in nanoseconds.
const TICK: u64 = 50_000_000;
/// So many events are taken at once.
const EVENTS: usize = 256;
/// What the timer's events carry instead of a connection's number.
const TIMER: u64 = u64::MAX;
/// A value is taken from somewhere within this many bytes more than the longest one has, so that few are alike.
const VARIETY: usize = 4096;

/// One thread's part of a run.
pub(crate) struct Worker<'a> {
    work: &'a Work,
    shared: &'a Shared<'a>,
    epoll: OwnedFd,
    timer: OwnedFd,
    connections: Vec<Option<Connection>>,
    draw: Draw,
    pace: Option<Pace>,
    /// How many requests may still be sent.
    left: u64,
    /// Which connection is looked at first for the next request that is due.
    turn: usize,
    in_flight: usize,
    /// What was measured; kinds by their index, so that an answer is a look-up in an array.
    measured: Measured,
    of: [Option<OfOp>; 4],
}

/// Draws requests.
struct Draw {
    random: SmallRng,
    picker: Picker,
    prefixed: bool,
    key: Vec<u8>,
    values: Arc<[u8]>,
}

/// Bytes to take values from: as they come at random, so that nothing compresses them.
pub(crate) fn values(work: &Work) -> Arc<[u8]> {
    let mut random = SmallRng::seed_from_u64(work.seed);
    let mut values = vec![0; if work.mix.has(Op::Set) { work.value_size.end().saturating_add(VARIETY) } else { 0 }];
    random.fill(&mut values[..]);
    values.into()
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        work: &'a Work,
        shared: &'a Shared<'a>,
        values: Arc<[u8]>,
        opened: Vec<Opened>,
        (thread, threads): (u64, u64),
    ) -> Result<Self, Error> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::io("no epoll"))?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let timer = timer.map_err(Error::io("no timer"))?;
        // By edges: one call for each socket in the whole run.
        let watched = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)
            .map_err(Error::io("no timer among the events"))?;
        let mut connections = Vec::with_capacity(opened.len());
        for (number, opened) in (0..).zip(opened) {
            let connection = Connection::new(opened, work.pipeline).map_err(Error::io("a connection that blocks"))?;
            epoll::add(&epoll, &connection.stream, EventData::new_u64(number), watched)
                .map_err(Error::io("no connection among the events"))?;
            connections.push(Some(connection));
        }
        let draw = Draw {
            random: SmallRng::seed_from_u64(work.seed.wrapping_add(thread).wrapping_add(1)),
            picker: Picker::new(work.order, work.keys, thread, threads),
            prefixed: is_prefixed(work.keys, work.key_size),
            key: vec![0; work.key_size],
            values,
        };
        let part = |requests| {
            let part = share(requests, thread, threads);
            part.end - part.start
        };
        Ok(Self {
            work,
            shared,
            epoll,
            timer,
            connections,
            draw,
            pace: work.rate.map(|rate| Pace::new(rate, thread, threads)),
            left: match work.limit {
                Limit::Requests(requests) => part(requests),
                Limit::Time(_) => u64::MAX,
            },
            turn: 0,
            in_flight: 0,
            measured: Measured::new(),
            of: [const { None }; 4],
        })
    }

    /// Asks until the limit is reached and all is answered.
    pub(crate) fn run(mut self) -> Result<Measured, Error> {
        let origin = Instant::now();
        let end = match self.work.limit {
            Limit::Time(time) => nanos(time),
            Limit::Requests(_) => u64::MAX,
        };
        let cpu = cpu_time();
        let mut events = Vec::with_capacity(EVENTS);
        let (mut is_over, mut looked) = (false, 0);
        let now = || nanos(origin.elapsed());
        self.start();
        loop {
            let at = now();
            is_over |= at >= end || self.left == 0 || self.shared.stop.load(Relaxed);
            if self.pace.is_some() {
                if !is_over {
                    self.send_due(at);
                } else if self.left > 0 {
                    self.give_up_due(at.min(end.saturating_sub(1)))?;
                }
            }
            if is_over {
                self.left = 0;
                if self.in_flight == 0 {
                    break;
                }
            }
            if at.saturating_sub(looked) >= TICK {
                looked = at;
                self.give_up_silent(at);
                if self.connections.iter().all(Option::is_none) {
                    break;
                }
            }
            events.clear();
            self.wait(&mut events, at)?;
            let at = now();
            let answered = self.measured.requests;
            for &Event { flags, data } in events.iter().filter(|event| event.data.u64() != TIMER) {
                let number = usize::try_from(data.u64()).unwrap_or(usize::MAX);
                let has_ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                self.attend(number, at, at <= end, has_ended)?;
            }
            self.shared.answered.fetch_add(self.measured.requests - answered, Relaxed);
        }
        Ok(self.finish(now().min(end), cpu))
    }

    /// The first requests of a closed loop.
    fn start(&mut self) {
        if self.pace.is_none() {
            (0..self.connections.len()).for_each(|number| self.ask_on(number, 0));
        }
    }

    fn wait(&self, events: &mut Vec<Event>, now: u64) -> Result<(), Error> {
        let room = self.connections.iter().flatten().any(Connection::has_room);
        if let Some(pace) = self.pace.as_ref().filter(|_| self.left > 0 && room) {
            self.set_timer(pace.due().saturating_sub(now).clamp(1, TICK))?;
        }
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timespec(TICK))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::io("could not wait for events")(error)),
        }
    }

    fn set_timer(&self, after: u64) -> Result<(), Error> {
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(after) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
            .map(drop)
            .map_err(Error::io("could not set a timer"))
    }

    /// A connection has something, or room to write; or its end, which is told once, and may lie behind what it has.
    fn attend(&mut self, number: usize, now: u64, in_time: bool, has_ended: bool) -> Result<(), Error> {
        while let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) {
            let arrived = match connection.read(now) {
                Ok(arrived) => arrived,
                Err(error) => {
                    self.lose(number, &error.to_string());
                    return Ok(());
                }
            };
            loop {
                let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
                match connection.answer() {
                    Ok(Some(answered)) => self.count(answered, now, in_time)?,
                    Ok(None) => break,
                    Err(broken) => {
                        self.lose(number, &broken);
                        return Ok(());
                    }
                }
            }
            if self.pace.is_none() {
                self.ask_on(number, now);
            } else {
                self.flush(number);
            }
            match arrived {
                Arrived::More => {}
                Arrived::All if has_ended => {}
                Arrived::All | Arrived::Nothing => break,
            }
        }
        Ok(())
    }

    /// Counts an answer.
    fn count(&mut self, Answered { op, started, answer }: Answered, now: u64, in_time: bool) -> Result<(), Error> {
        self.in_flight -= 1;
        if let Fared::Refused(why) = &answer.fared {
            self.shared.failed.fetch_add(1, Relaxed);
            self.measured.fail(why, 1);
            return Ok(());
        }
        let latency = now.saturating_sub(started).max(1);
        let of = kind(&mut self.of, op)?;
        of.latencies.saturating_record(latency);
        match answer.fared {
            Fared::Missing => of.missing += 1,
            Fared::Entries(entries) if in_time => of.entries += entries,
            _ => {}
        }
        // What comes after the end belongs to no second of the run.
        if in_time {
            self.measured.requests += 1;
            self.measured.series.note(now, latency);
        }
        Ok(())
    }

    /// Closed loop: fills a connection up, and writes.
    fn ask_on(&mut self, number: usize, now: u64) {
        while self.left > 0
            && self.connections.get(number).is_some_and(|it| it.as_ref().is_some_and(Connection::has_room))
        {
            if !self.ask(number, now, now) {
                return;
            }
        }
        self.flush(number);
    }

    /// Open loop: sends what is due by now, each by the next connection that has room.
    fn send_due(&mut self, now: u64) {
        let count = self.connections.len();
        while self.left > 0 {
            let free = (0..count).map(|step| (self.turn + step) % count);
            let room = |number: &usize| self.connections[*number].as_ref().is_some_and(Connection::has_room);
            let Some(number) = free.into_iter().find(room) else { break };
            let Some(due) = self.pace.as_mut().and_then(|pace| pace.take(now)) else { break };
            self.turn = (number + 1) % count;
            if self.ask(number, due, now) {
                // A request by itself: its answer is not to wait for others.
                self.flush(number);
            }
        }
    }

    /// Notes what was due by the end and could not be sent, with the time that it has waited.
    fn give_up_due(&mut self, end: u64) -> Result<(), Error> {
        while self.left > 0 {
            let Some(due) = self.pace.as_mut().and_then(|pace| pace.take(end)) else { break };
            self.left -= 1;
            self.measured.unsent += 1;
            let op = self.work.mix.pick(&mut self.draw.random);
            kind(&mut self.of, op)?.latencies.saturating_record(end.saturating_sub(due).max(1));
        }
        Ok(())
    }

    /// Puts a request on its way by this connection, which has room. Whether it could be.
    fn ask(&mut self, number: usize, at: u64, now: u64) -> bool {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else { return false };
        let op = self.work.mix.pick(&mut self.draw.random);
        let asked = self.draw.request(op, self.work);
        self.left -= 1;
        let broken = connection.ask(asked, at, now).err();
        match broken {
            None => self.in_flight += 1,
            Some(broken) => {
                self.lose(number, &broken);
                return false;
            }
        }
        true
    }

    fn flush(&mut self, number: usize) {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else { return };
        if let Err(error) = connection.flush() {
            self.lose(number, &error.to_string());
        }
    }

    fn give_up_silent(&mut self, now: u64) {
        let timeout = nanos(self.work.timeout);
        for number in 0..self.connections.len() {
            let silent = self.connections[number].as_ref().is_some_and(|it| it.silent_for(now) > timeout);
            if silent {
                self.lose(number, &format!("no answer within {:?}", self.work.timeout));
            }
        }
    }

    /// A connection is no more, and with it all that was in flight.
    fn lose(&mut self, number: usize, why: &str) {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::take) else { return };
        let lost = connection.in_flight();
        self.in_flight -= lost;
        let lost = u64::try_from(lost).unwrap_or(u64::MAX).max(1);
        self.shared.failed.fetch_add(lost, Relaxed);
        self.measured.fail(&format!("connection lost: {why}"), lost);
        self.measured.lost += 1;
        shut(&connection.stream);
    }

    fn finish(mut self, elapsed: u64, cpu: Duration) -> Measured {
        self.measured.elapsed = Duration::from_nanos(elapsed);
        self.measured.cpu = cpu_time().saturating_sub(cpu);
        self.measured.interrupted = self.shared.stop.load(Relaxed);
        let of = Op::ALL.into_iter().zip(self.of);
        self.measured.of = of.filter_map(|(op, of)| Some((op, of?))).collect();
        self.measured
    }
}

impl Draw {
    fn request(&mut self, op: Op, work: &Work) -> Asked<'_> {
        let number = self.picker.next(&mut self.random);
        write_key(number, self.prefixed, &mut self.key);
        let value = if op == Op::Set {
            let len = if work.value_size.start() == work.value_size.end() {
                *work.value_size.end()
            } else {
                self.random.random_range(work.value_size.clone())
            };
            let from = self.random.random_range(0..VARIETY);
            self.values.get(from..from + len).unwrap_or_default()
        } else {
            &[]
        };
        Asked { slot: 0, op, key: &self.key, value, scan_length: work.scan_length }
    }
}

/// What is known of a kind, made when it is first met: a kind that is not asked takes no memory.
fn kind(of: &mut [Option<OfOp>; 4], op: Op) -> Result<&mut OfOp, Error> {
    let slot = &mut of[op.index()];
    match slot {
        Some(of) => Ok(of),
        None => Ok(slot.insert(OfOp::new()?)),
    }
}

/// One that cannot be shut down is closed all the same when it is dropped.
fn shut(stream: &TcpStream) {
    let _: io::Result<()> = stream.shutdown(std::net::Shutdown::Both);
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Of less than a second.
fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: i64::try_from(nanos).unwrap_or(0).min(999_999_999) }
}

/// The processor time that this thread has had.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
