//! Threads for connections that send many requests at once.
//!
//! Connections that wait for each answer are served best by few threads: more of them take the processors from each other,
//! from the writer and from the system's network, and who has lost its processor keeps everybody waiting whose turn it has.
//! A connection that sends many requests at once is a long turn for its thread each time, and there more threads do more.
//! So there are some for such connections; of these they take their share, the first of all to begin with, so that one alone is
//! in nobody's way.
//!
//! Of the others that only read they serve a few, too: one in 24, from the eighth on. With more than that the threads are in
//! each other's way, as said above; but what is left of the processors while everybody's threads have all to do that they can
//! is enough for some, who are answered sooner, and make it fewer for the rest. (Two processors, with the load generator, beside
//! Redis in the same round: 8 clients' GETs 0.81 times as many without, 0.96 times with the eighth's there; with 50 clients it is
//! as many with one in 12, 16, 24 or 40, but of those served there the slowest wait for whoever has the processor: with one in
//! 12 the slowest thousandth took 1.6 to 3.4 times Redis' time, with one in 24 1.1 to 1.5 times. With one in three it was 7 %
//! more, with half of them 4 % less, and the slowest hundredth took 1.6 and 1.9 times as long.)
//!
//! Where the system knows it, these threads wait for a processor until who has it lets it go or has used up its time (`yielding`):
//! whoever they took it from may be who serves all the others. (The same, in turns, four times ten
//! rounds by two load generators: 50 clients' GETs 6 to 24 % faster, the slowest hundredth after 0.56 to 0.96 of the time; for
//! one and 8 clients, for SETs and for many at once no difference that could be told from noise.)

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::lone::Lone;

/// Of so many connections that read and wait for each answer, one is served by the threads for bursts,
const ONE_IN: usize = 24;
/// to begin with this one.
const FIRST: usize = 8;

/// The threads, and how many connections of which kind are served where.
#[derive(Debug)]
pub(crate) struct Bursts {
    /// `None` when it is over.
    runtime: Option<Runtime>,
    /// The runtime that serves everybody.
    home: Handle,
    here: Threads,
    there: Threads,
    /// The other threads of the server's own.
    lone: Lone,
}

/// What a connection's way is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Many requests at once.
    Bursts,
    /// One after the other, each when the one before it was answered; and no writes.
    Singly,
}

/// Some threads, and how many connections they serve.
#[derive(Debug)]
struct Threads {
    number: usize,
    bursts: AtomicUsize,
    singly: AtomicUsize,
}

impl Threads {
    fn new(number: usize) -> Self {
        Self { number, bursts: AtomicUsize::new(0), singly: AtomicUsize::new(0) }
    }

    const fn of(&self, way: Way) -> &AtomicUsize {
        match way {
            Way::Bursts => &self.bursts,
            Way::Singly => &self.singly,
        }
    }
}

/// Where such a connection is served, for as long as it goes on so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where all others are.
    Here,
    /// By the threads for bursts.
    There,
}

impl Bursts {
    /// Starts so many threads. To be called within the runtime that serves everybody.
    ///
    /// # Errors
    /// The system's, which has none.
    pub(crate) fn start(threads: NonZeroUsize) -> io::Result<Self> {
        let name = "boltkv-bursts";
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(threads.get()).thread_name(name).on_thread_start(yielding).enable_all().build()?;
        let home = Handle::current();
        let [here, there] = [home.metrics().num_workers(), threads.get()].map(Threads::new);
        Ok(Self { runtime: Some(runtime), home, here, there, lone: Lone::default() })
    }

    /// The place of one more. Connections that ask at the same moment may not see each other: it need not be exact.
    pub(crate) fn take_place(&self, way: Way) -> Place {
        let [here, there] = [&self.here, &self.there].map(|threads| threads.of(way).load(Relaxed));
        let is_there = match way {
            Way::Bursts => there * self.here.number <= here * self.there.number,
            Way::Singly => here + there + 1 >= ONE_IN * there + FIRST,
        };
        let place = if is_there { Place::There } else { Place::Here };
        self.at(place).of(way).fetch_add(1, Relaxed);
        place
    }

    /// One that had this place is gone, or goes on in another way.
    pub(crate) fn leave(&self, way: Way, place: Place) {
        self.at(place).of(way).fetch_sub(1, Relaxed);
    }

    /// The runtime of the threads for bursts.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// The runtime of the threads that serve everybody.
    pub(crate) const fn home(&self) -> &Handle {
        &self.home
    }

    /// The threads that serve one connection each.
    pub(crate) const fn lone(&self) -> &Lone {
        &self.lone
    }

    const fn at(&self, place: Place) -> &Threads {
        match place {
            Place::Here => &self.here,
            Place::There => &self.there,
        }
    }
}

impl Drop for Bursts {
    fn drop(&mut self) {
        // The last who shares it may be one of its own threads, or another runtime's, where nobody may wait. No session is
        // left then: each shares it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// From now on this thread takes the processor from nobody when it is woken (`SCHED_BATCH`). Takes no privilege.
#[cfg(target_os = "linux")]
fn yielding() {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy};

    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
    // A niceness belongs to it: the one that there is. None is asked for by its own number.
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let as_nice = |priority: &ThreadPriority| priority.to_posix(policy).is_ok_and(|found| found == nice);
    let priorities = (0..=u8::MAX).map_while(|value| ThreadPriorityValue::try_from(value).ok());
    let Some(priority) = priorities.map(ThreadPriority::Crossplatform).find(as_nice) else {
        return;
    };
    let thread = thread_priority::thread_native_id();
    if let Err(error) = thread_priority::set_thread_priority_and_policy(thread, priority, policy) {
        // It serves as well, and is in others' way at times.
        tracing::debug!(?error, "a thread for bursts is not told to yield");
    }
}

#[cfg(not(target_os = "linux"))]
const fn yielding() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_goes_to_them_and_then_each_has_its_share() {
        let bursts = Bursts::start(NonZeroUsize::new(2).unwrap()).unwrap();
        let take = || bursts.take_place(Way::Bursts);
        let places: Vec<_> = (0..6).map(|_| take()).collect();
        let (here, there) = (Place::Here, Place::There);
        assert_eq!(places, [there, here, there, there, here, there]);
        bursts.leave(Way::Bursts, there);
        bursts.leave(Way::Bursts, there);
        assert_eq!([(); 3].map(|()| take()), [there, there, there]);
    }

    #[tokio::test]
    async fn of_those_that_wait_for_each_answer_they_serve_a_few() {
        let bursts = Bursts::start(NonZeroUsize::MIN).unwrap();
        let take = || bursts.take_place(Way::Singly);
        let there: Vec<_> = (1..=50).filter(|_| take() == Place::There).collect();
        assert_eq!(there, [8, 32]);
        bursts.leave(Way::Singly, Place::There);
        assert_eq!([take(), take()], [Place::There, Place::Here]);
        assert_eq!(bursts.take_place(Way::Bursts), Place::There, "that is a matter of its own");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_yields_is_as_nice_as_before() {
        /// Its niceness and its policy, as the system says.
        fn of_this_thread() -> [String; 2] {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
            [16, 38].map(|field| fields[field].to_owned())
        }
        let every_niceness = || {
            for nice in rustix::process::getpriority_process(None).unwrap()..20 {
                rustix::process::setpriority_process(None, nice).unwrap();
                yielding();
                assert_eq!(of_this_thread(), [nice.to_string(), "3".into()]);
            }
        };
        std::thread::spawn(every_niceness).join().unwrap();
    }
}
