//! How far a long command is: shown on standard error to people, and only if it takes over a second.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is over sooner needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);

/// What the command is at, for the message of one that is interrupted: the newest that has not ended.
static CURRENT: Mutex<Vec<(ProgressBar, Unit)>> = Mutex::new(Vec::new());

/// What is counted.
#[derive(Debug, Clone)]
enum Unit {
    Bytes,
    Other(String),
    /// Only the time.
    Nothing,
}

fn current() -> MutexGuard<'static, Vec<(ProgressBar, Unit)>> {
    // A list is whole after any panic.
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the line away, and says how far the command came.
pub(super) fn stop() -> Option<String> {
    let (bar, unit) = current().pop()?;
    // Clearing a bar also moves it to its end.
    let (position, length) = (bar.position(), bar.length());
    bar.finish_and_clear();
    let shown = |count| match &unit {
        Unit::Bytes => BinaryBytes(count).to_string(),
        Unit::Other(unit) => format!("{} {unit}", HumanCount(count)),
        Unit::Nothing => String::new(),
    };
    if matches!(unit, Unit::Nothing) {
        return Some(format!("after {:.1} s", bar.elapsed().as_secs_f64()));
    }
    let (at, of) = (shown(position), length.map(shown));
    Some(of.map_or_else(|| format!("after {at}"), |of| format!("after {at} of {of}")))
}

/// A progress line, gone without a trace when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Waits for the second to pass; dropping the sender ends the wait. `None` where nobody would see it.
    waiting: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Something that goes on, nobody knows how long.
    pub(super) fn doing(what: &str) -> Self {
        Self::start(ProgressBar::no_length(), Unit::Nothing, &format!("{{spinner}} {what}, {{elapsed}}"))
    }

    /// A count of what was done, in `unit`.
    pub(crate) fn counting(unit: &str) -> Self {
        let template = format!("{{spinner}} {{human_pos}} {unit}, {{elapsed}}");
        Self::start(ProgressBar::no_length(), Unit::Other(unit.into()), &template)
    }

    /// Nobody is shown it where lines go to a terminal: they say enough, and would be mixed up with it.
    pub(crate) fn hide_if(&mut self, to_terminal: bool) {
        if to_terminal {
            self.waiting = None;
        }
    }

    /// As [`Self::doing`], while lines are printed: on a terminal these lines say enough, and would be mixed up with it.
    pub(super) fn while_printing(what: &str) -> Option<Self> {
        (!io::stdout().is_terminal()).then(|| Self::doing(what))
    }

    /// As [`Self::of_pages`], while lines are printed.
    pub(super) fn while_printing_pages(total: u64) -> Option<Self> {
        (!io::stdout().is_terminal()).then(|| Self::of_pages(total))
    }

    /// A bar over so many bytes.
    pub(crate) fn of_bytes(total: u64) -> Self {
        let template = "{wide_bar} {binary_bytes} of {binary_total_bytes}, {eta} left";
        Self::start(ProgressBar::new(total), Unit::Bytes, template)
    }

    /// A bar over so many pages.
    pub(crate) fn of_pages(total: u64) -> Self {
        let template = "{wide_bar} {human_pos} of {human_len} pages, {eta} left";
        Self::start(ProgressBar::new(total), Unit::Other("pages".into()), template)
    }

    /// A bar over so many keys.
    pub(crate) fn of_keys(total: u64) -> Self {
        let template = "{wide_bar} {human_pos} of {human_len} keys, {per_sec}, {eta} left";
        Self::start(ProgressBar::new(total), Unit::Other("keys".into()), template)
    }

    fn start(bar: ProgressBar, unit: Unit, template: &str) -> Self {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        current().push((bar.clone(), unit));
        let waiting = io::stderr().is_terminal().then(|| show_later(bar.clone()));
        Self { bar, waiting }
    }

    /// How much there is to do, as far as is known by now.
    pub(crate) fn is_of(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// How much of the bar is done by now.
    pub(crate) fn reach(&self, position: u64) {
        self.bar.set_position(position);
    }

    pub(crate) fn advance(&self, by: u64) {
        self.bar.inc(by);
    }
}

fn show_later(bar: ProgressBar) -> (Sender<()>, JoinHandle<()>) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(REDRAW);
        }
    });
    (done, thread)
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.waiting.take() {
            drop(done);
            // It only waits and draws; if it could not, there is nothing to clear.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
        current().pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_stopped_says_how_far_it_was_and_not_the_end() {
        let progress = Progress::of_bytes(4096);
        progress.reach(1024);
        assert_eq!(stop().as_deref(), Some("after 1.00 KiB of 4.00 KiB"));
        drop(progress);
    }
}
