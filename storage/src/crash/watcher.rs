//! Somebody who follows the journal while the work goes on. What was told of it is a state that there was, and no crash takes
//! it back.

use super::followed::follow;
use super::model::Model;
use crate::{Db, Error, Follower, JournalPosition};

/// A follower, and the model to which it makes what it is told.
#[derive(Debug)]
pub(super) struct Watcher {
    /// `None` where there is no journal, or what it wanted next was not kept.
    follower: Option<Follower>,
    told: Model,
    /// Which of the states that is.
    state: usize,
}

impl Watcher {
    /// Begins behind the newest state, which is durable.
    pub(super) fn behind_newest(db: &Db, states: &[Model]) -> Self {
        let state = states.len() - 1;
        let follower = db.durable_position().map(|position| db.follow(position).expect("it is this journal's"));
        Self { follower, told: states[state].clone(), state }
    }

    /// Takes what can be told; which state that has led to, where it is another one, and the position behind it.
    pub(super) fn take(&mut self, states: &[Model]) -> Option<(usize, JournalPosition)> {
        let before = self.told.clone();
        loop {
            match self.follower.as_mut()?.next() {
                Ok(Some(transaction)) => follow(&mut self.told, transaction),
                Ok(None) => break,
                Err(Error::JournalGap { .. }) => self.follower = None,
                Err(error) => panic!("nothing fails, and still: {error}"),
            }
        }
        if self.told == before {
            return None;
        }
        let further = states[self.state..].iter().position(|state| *state == self.told);
        self.state += further.expect("what was told is a state that there was");
        Some((self.state, self.follower.as_ref()?.position()))
    }
}
