//! A line of those who wait for one of a few places, in which each address has its turn: of those who come from one, no number
//! holds up who comes from another.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, Sender};

use crate::peer::Origin;

/// Who of one address goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// Who came first.
    Oldest,
    /// Who came last: where those who came first are sent away for want of room, they would be let in only to be sent away.
    Newest,
}

/// Places, and who waits for one.
#[derive(Debug)]
pub(crate) struct Line {
    most: usize,
    /// So many of them are one address'.
    most_of_one: usize,
    first: First,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    taken: usize,
    by_origin: HashMap<Origin, Own>,
    /// The addresses of which somebody waits, in the order of their turns.
    turns: VecDeque<Origin>,
}

/// What is one address'.
#[derive(Debug, Default)]
struct Own {
    taken: usize,
    waiting: BTreeMap<u64, Sender<Place>>,
}

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    line: Arc<Line>,
    origin: Origin,
}

/// Somebody in the line, until this is dropped.
struct Waiter<'l> {
    line: &'l Line,
    origin: Origin,
    number: u64,
}

impl Line {
    /// For so many places, of which so many may be one address'.
    pub(crate) fn new(most: usize, most_of_one: usize, first: First) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, first, waiting: Mutex::default() })
    }

    /// A place for somebody from there, when it is his turn.
    pub(crate) async fn place(self: &Arc<Self>, origin: Origin) -> Place {
        let (sender, place) = oneshot::channel();
        let _waiter = self.stand(origin, sender);
        self.call();
        match place.await {
            Ok(place) => place,
            // Who stands in the line is not passed over.
            Err(_) => pending().await,
        }
    }

    fn stand(&self, origin: Origin, sender: Sender<Place>) -> Waiter<'_> {
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        let own = waiting.by_origin.entry(origin).or_default();
        let is_first = own.waiting.is_empty();
        own.waiting.insert(number, sender);
        if is_first {
            waiting.turns.push_back(origin);
        }
        Waiter { line: self, origin, number }
    }

    /// Gives the places that are free to those whose turn it is.
    fn call(self: &Arc<Self>) {
        loop {
            let called = self.lock().call(self);
            let Some((sender, origin)) = called else { return };
            // Who has gone meanwhile gives it back at once.
            drop(sender.send(Place { line: Arc::clone(self), origin }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds it can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Takes a place for whose turn it is.
    fn call(&mut self, line: &Line) -> Option<(Sender<Place>, Origin)> {
        if self.taken >= line.most {
            return None;
        }
        for _ in 0..self.turns.len() {
            let origin = self.turns.pop_front()?;
            let Some(own) = self.by_origin.get_mut(&origin) else { continue };
            let called = match line.first {
                _ if own.taken >= line.most_of_one => None,
                First::Oldest => own.waiting.pop_first(),
                First::Newest => own.waiting.pop_last(),
            };
            if !own.waiting.is_empty() {
                self.turns.push_back(origin);
            }
            if let Some((_, sender)) = called {
                own.taken += 1;
                self.taken += 1;
                return Some((sender, origin));
            }
        }
        None
    }

    fn forget_if_gone(&mut self, origin: Origin) {
        if self.by_origin.get(&origin).is_some_and(|own| own.taken == 0 && own.waiting.is_empty()) {
            self.by_origin.remove(&origin);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.line.lock();
        let Some(own) = waiting.by_origin.get_mut(&self.origin) else { return };
        if own.waiting.remove(&self.number).is_some() && own.waiting.is_empty() {
            waiting.turns.retain(|origin| *origin != self.origin);
        }
        waiting.forget_if_gone(self.origin);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut waiting = self.line.lock();
            waiting.taken -= 1;
            if let Some(own) = waiting.by_origin.get_mut(&self.origin) {
                own.taken -= 1;
            }
            waiting.forget_if_gone(self.origin);
        }
        self.line.call();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const ONE: Origin = Origin::V4([192, 0, 2, 1]);
    const TWO: Origin = Origin::V4([192, 0, 2, 2]);

    type Standing = Pin<Box<dyn Future<Output = Place>>>;

    /// Somebody who has begun to wait.
    fn stand(line: &Arc<Line>, origin: Origin) -> Standing {
        let line = Arc::clone(line);
        let mut standing: Standing = Box::pin(async move { line.place(origin).await });
        assert!(look(&mut standing).is_none(), "all places are taken");
        standing
    }

    fn look(standing: &mut Standing) -> Option<Place> {
        match standing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    /// In which order those who stand there get the one place.
    fn order(first: First, origins: &[Origin]) -> Vec<usize> {
        let line = Line::new(1, 1, first);
        let mut here = Box::pin(async { line.place(ONE).await }) as Pin<Box<dyn Future<Output = Place> + '_>>;
        let Poll::Ready(mut place) = here.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("the place is free");
        };
        let mut standing: Vec<_> = origins.iter().map(|origin| Some(stand(&line, *origin))).collect();
        let mut order = Vec::new();
        for _ in origins {
            drop(place);
            let called = standing.iter_mut().enumerate().find_map(|(at, one)| Some((at, look(one.as_mut()?)?)));
            let (at, next) = called.unwrap();
            standing[at] = None;
            order.push(at);
            place = next;
        }
        drop(place);
        assert!(line.lock().by_origin.is_empty() && line.lock().turns.is_empty() && line.lock().taken == 0);
        order
    }

    // Promises: ops-tls-line.
    #[test]
    fn each_address_has_its_turn_and_of_one_the_first_or_the_last_goes_first() {
        let crowd_and_one = [ONE, ONE, ONE, ONE, TWO, TWO];
        assert_eq!(order(First::Oldest, &crowd_and_one), [0, 4, 1, 5, 2, 3]);
        assert_eq!(order(First::Newest, &crowd_and_one), [3, 5, 2, 4, 1, 0]);
    }

    #[tokio::test]
    async fn one_address_has_no_more_than_its_part_and_who_goes_leaves_nothing() {
        let line = Line::new(4, 2, First::Oldest);
        let own = [line.place(ONE).await, line.place(ONE).await];
        let (mut third, gone) = (stand(&line, ONE), stand(&line, ONE));
        let other = line.place(TWO).await;
        drop(gone);
        assert!(look(&mut third).is_none());
        drop(other);
        assert!(look(&mut third).is_none(), "that was not its part");
        drop(own);
        // It was called, and goes without having looked.
        drop(third);
        assert!(line.lock().by_origin.is_empty() && line.lock().turns.is_empty() && line.lock().taken == 0);
    }
}
