//! What was measured, as it is kept in a JSON file and read back for the report.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::work::{Contents, Cost};
use crate::works::Suite;

/// Everything that one call of the program has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// What the works were taken from.
    pub suite: Suite,
    /// Where.
    pub machine: Machine,
    /// The command that does it again.
    pub command: String,
    /// Whether the works were a hundredth of their size, to try the program and not the engines.
    pub quick: bool,
    /// How often each work was to be done, but for those that are done once; `None` in files from before it was kept.
    #[serde(default)]
    pub rounds: Option<usize>,
    /// Seconds after which a run was given up; `None` as above.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Who took part, in which version.
    pub versions: BTreeMap<String, String>,
    /// What was measured.
    pub runs: Vec<Run>,
    /// What was not, and why.
    pub left_out: Vec<LeftOut>,
}

/// One work, done once by one engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The work's name.
    pub work: String,
    /// The contestant's.
    pub contestant: String,
    /// What each figure cost.
    pub costs: BTreeMap<String, Total>,
    /// The most private memory that its process had, in bytes; sampled every few milliseconds. `None` where
    /// instructions were counted.
    pub peak_private: Option<u64>,
    /// Bytes of its file in use at the end.
    pub used: Option<u64>,
    /// Bytes of all that lies in its folder once its process has ended; `None` as for the memory, and in files from
    /// before it was kept.
    #[serde(default)]
    pub file_bytes: Option<u64>,
    /// What its database held at the end, which is the same for every engine; `None` where instructions were counted,
    /// for bugfruit, which cannot list what it holds, and in files from before it was kept.
    #[serde(default)]
    pub contents: Option<Contents>,
}

/// What the stages of one figure cost together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// Operations.
    pub operations: u64,
    /// Seconds; in a work that is counted, instructions.
    pub spent: f64,
    /// What was read; the same for every engine.
    pub witness: u64,
    /// Bytes of all files in the folder after the last of them; `None` where instructions were counted, and in files from
    /// before it was kept.
    #[serde(default)]
    pub file_bytes: Option<u64>,
}

impl Total {
    /// Operations per second, or per instruction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of operations, far below 2^52")]
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.spent
    }
}

/// A work that an engine did not do, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The work's name.
    pub work: String,
    /// The contestant's.
    pub contestant: String,
    /// Why.
    pub why: String,
}

impl Run {
    /// Counts what a stage has cost.
    pub fn add(&mut self, cost: Cost) {
        let total = self.costs.entry(cost.figure).or_default();
        total.operations += cost.operations;
        total.spent += cost.seconds;
        total.witness = total.witness.wrapping_add(cost.witness);
        total.file_bytes = cost.file_bytes;
    }
}

impl Results {
    /// The runs of one work by one contestant: one a round.
    pub fn of<'r>(&'r self, work: &'r str, contestant: &'r str) -> impl Iterator<Item = &'r Run> {
        self.runs.iter().filter(move |run| run.work == work && run.contestant == contestant)
    }

    /// The contestants of a work, in the order in which they came.
    #[must_use]
    pub fn contestants(&self, work: &str) -> Vec<&str> {
        let mut names = Vec::new();
        for run in self.runs.iter().filter(|run| run.work == work) {
            if !names.contains(&run.contestant.as_str()) {
                names.push(&run.contestant);
            }
        }
        names
    }

    /// The figures of a work.
    #[must_use]
    pub fn figures(&self, work: &str) -> BTreeSet<&str> {
        let runs = self.runs.iter().filter(|run| run.work == work);
        runs.flat_map(|run| run.costs.keys()).map(String::as_str).collect()
    }

    /// Operations per second: one rate a round.
    pub fn rates<'r>(&'r self, work: &'r str, contestant: &'r str, figure: &'r str) -> impl Iterator<Item = f64> {
        self.of(work, contestant).filter_map(move |run| run.costs.get(figure).map(Total::rate))
    }

    /// Who has read something else in a work than the first one, or holds something else at its end: they did not do
    /// the same.
    #[must_use]
    pub fn disagreements(&self, work: &str) -> Vec<LeftOut> {
        let mut seen: BTreeMap<&str, &Total> = BTreeMap::new();
        let mut held = None;
        let mut found = Vec::new();
        let mut other = |run: &Run, why: String| {
            let other = LeftOut { work: work.to_owned(), contestant: run.contestant.clone(), why };
            // It does so in each round, but is named once.
            if !found.contains(&other) {
                found.push(other);
            }
        };
        for run in self.runs.iter().filter(|run| run.work == work) {
            for (figure, total) in &run.costs {
                let first = *seen.entry(figure).or_insert(total);
                if (first.witness, first.operations) != (total.witness, total.operations) {
                    other(run, format!("has read something else than the others in {figure}"));
                }
            }
            held = held.or(run.contents);
            if run.contents.is_some() && run.contents != held {
                other(run, "holds something else at the end than the others".to_owned());
            }
        }
        found
    }
}

/// Reads a file of results.
///
/// # Errors
/// A file that is missing or was not written by [`write()`].
pub fn read<R: DeserializeOwned>(path: &Path) -> Result<R> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file)).with_context(|| format!("{} is no result", path.display()))
}

/// Writes a file of results.
///
/// # Errors
/// Those of writing.
pub fn write(path: &Path, results: &impl Serialize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?);
    serde_json::to_writer(&mut file, results)?;
    Ok(file.flush()?)
}

/// What nobody has measured, for tests.
#[cfg(test)]
pub(crate) fn made_up(runs: Vec<Run>) -> Results {
    Results {
        suite: Suite::Peers,
        machine: Machine::default(),
        command: String::new(),
        quick: false,
        rounds: None,
        limit: None,
        versions: BTreeMap::new(),
        runs,
        left_out: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(contestant: &str, witness: u64) -> Run {
        let mut run = Run { work: "w".to_owned(), contestant: contestant.to_owned(), ..Run::default() };
        run.add(Cost { figure: "get".to_owned(), operations: 10, seconds: 2.0, witness, file_bytes: Some(1) });
        run
    }

    #[test]
    fn stages_of_one_figure_are_summed() {
        let mut run = run("a", 1);
        run.add(Cost { figure: "get".to_owned(), operations: 20, seconds: 1.0, witness: 2, file_bytes: Some(7) });
        assert_eq!(run.costs["get"], Total { operations: 30, spent: 3.0, witness: 3, file_bytes: Some(7) });
        assert!((run.costs["get"].rate() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_engine_that_reads_something_else_is_found() {
        assert!(made_up(vec![run("a", 1), run("b", 1)]).disagreements("w").is_empty());
        assert_eq!(made_up(vec![run("a", 1), run("b", 2)]).disagreements("w").len(), 1);
        let rounds = [run("a", 1), run("b", 2), run("c", 3), run("b", 2), run("c", 3)];
        assert_eq!(made_up(rounds.to_vec()).disagreements("w").len(), 2, "each is named once");
    }

    #[test]
    fn an_engine_that_holds_something_else_at_the_end_is_found() {
        let holds = |name, entries| Run { contents: Some(Contents { entries, hash: 1 }), ..run(name, 1) };
        let runs = vec![run("a", 1), holds("b", 9), holds("c", 9), run("d", 1), holds("e", 8)];
        let found = made_up(runs).disagreements("w");
        assert_eq!(found.iter().map(|out| out.contestant.as_str()).collect::<Vec<_>>(), ["e"]);
    }
}
