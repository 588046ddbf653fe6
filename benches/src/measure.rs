//! Measures works: each in interleaved rounds, by everyone who takes part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::contestant::Contestant;
use crate::machine::Machine;
use crate::results::{self, LeftOut, Results};
use crate::runner::Runner;
use crate::works::{Entry, Scale, Suite};
use crate::{goprogram, print, versions};

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What the works are taken from.
    pub suite: Suite,
    /// The works, with those who take part.
    pub entries: Vec<Entry>,
    /// How often each.
    pub rounds: usize,
    /// How long one run may take.
    pub limit: Duration,
    /// Where databases are made.
    pub folder: PathBuf,
    /// How large the works are.
    pub scale: Scale,
    /// The command that asked for this.
    pub command: String,
    /// The file that results are kept in; until there are all, from work to work, in one beside it with `.unfinished`
    /// after its name, so that hours are not lost to what ends them.
    pub keep: Option<PathBuf>,
}

/// Measures, and prints each row once it is known.
///
/// # Errors
/// Those of folders, processes and of writing, to standard output too. An engine that fails is left out, and said to be.
pub fn measure(plan: &Plan) -> Result<Results> {
    let built = tempfile::tempdir()?;
    let takes_part = |engine: &str| plan.entries.iter().flat_map(|entry| &entry.field).any(|name| is(name, engine));
    let go: BTreeMap<_, _> = goprogram::ENGINES
        .into_iter()
        .filter(|engine| takes_part(engine))
        .map(|engine| (engine, goprogram::build(engine, built.path())))
        .collect();
    let mut results = Results {
        machine: Machine::with(&plan.folder)?,
        command: plan.command.clone(),
        suite: plan.suite,
        quick: plan.scale == Scale::Quick,
        rounds: Some(plan.rounds),
        limit: Some(plan.limit.as_secs()),
        versions: versions::of_crates(),
        runs: Vec::new(),
        left_out: Vec::new(),
    };
    for program in go.values().flatten() {
        results.versions.extend(goprogram::versions(program)?);
    }
    let go = go.into_iter().map(|(engine, built)| (engine, built.map_err(|why| format!("{why:#}")))).collect();
    let runner = Runner { folder: plan.folder.clone(), go, limit: plan.limit };
    // A file that cannot be written is known before hours of work. One that is there stays until all is measured.
    let unfinished = plan.keep.as_ref().map(|file| {
        let mut name = file.clone().into_os_string();
        name.push(".unfinished");
        PathBuf::from(name)
    });
    if let Some(file) = &unfinished {
        results::write(file, &results)?;
    }
    if results.machine.files.starts_with("tmpfs") {
        eprintln!("{} lies in memory, where a sync costs nothing: --folder names another", plan.folder.display());
    }
    if results.quick {
        writeln!(std::io::stdout().lock(), "{}\n", print::TRIAL)?;
    }
    for entry in &plan.entries {
        work(entry, plan.rounds, &runner, &mut results)?;
        results.left_out.extend(results.disagreements(&entry.work.name));
        show(entry, &results)?;
        if let Some(file) = &unfinished {
            results::write(file, &results)?;
        }
    }
    if let (Some(file), Some(unfinished)) = (&plan.keep, &unfinished) {
        fs::rename(unfinished, file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(results)
}

/// Prints what a work came to, and who cannot be compared.
fn show(entry: &Entry, results: &Results) -> Result<()> {
    let work = &entry.work.name;
    let mut out = std::io::stdout().lock();
    if entry.rows.is_empty() {
        writeln!(out, "{}", print::work(results, work))?;
    }
    for row in &entry.rows {
        writeln!(out, "{}", print::row(row, results, work))?;
    }
    for other in results.disagreements(work) {
        writeln!(out, "  NOT COMPARABLE: {} {}\n", other.contestant, other.why)?;
    }
    Ok(())
}

/// Whether a contestant's name is that of an engine, in whatever setting.
fn is(name: &str, engine: &str) -> bool {
    name.split('+').next() == Some(engine)
}

/// Lets everyone do a work, in turn, as often as there are rounds. Who has failed is not asked again.
fn work(entry: &Entry, rounds: usize, runner: &Runner, results: &mut Results) -> Result<()> {
    let mut out: BTreeSet<&str> = BTreeSet::new();
    // A count of instructions hardly changes from one time to the next.
    let rounds = if entry.once || entry.work.counted { 1 } else { rounds };
    for round in 0..rounds {
        // Each round begins with another one, so that nobody always comes after the same neighbour's writes.
        let (late, early) = entry.field.split_at(round % entry.field.len().max(1));
        for &name in early.iter().chain(late) {
            if out.contains(name) {
                continue;
            }
            progress(&format!("{}: round {} of {rounds}, {name}", entry.work.name, round + 1));
            match runner.run(&entry.work, &name.parse()?)? {
                Ok(run) => results.runs.push(run),
                Err(why) => {
                    out.insert(name);
                    results.runs.retain(|run| run.work != entry.work.name || run.contestant != name);
                    progress("");
                    eprintln!("{}: {name} is left out: {why}", entry.work.name);
                    let (work, contestant) = (entry.work.name.clone(), name.to_owned());
                    results.left_out.push(LeftOut { work, contestant, why });
                }
            }
        }
    }
    progress("");
    Ok(())
}

/// Says where we are, in one line that the next one replaces; to a terminal only.
pub(crate) fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

/// Cuts a suite down to works of the names in `only`, or whose names begin so where no work has that name, done by `engines` in whatever setting; an empty
/// list is no limit.
///
/// # Errors
/// A name that fits nothing.
pub fn choose(suite: Vec<Entry>, only: &[String], engines: &[String]) -> Result<Vec<Entry>> {
    let known: Vec<_> = suite.iter().map(|entry| entry.work.name.clone()).collect();
    if let Some(name) = only.iter().find(|name| !known.iter().any(|work| work.starts_with(name.as_str()))) {
        bail!("no work {name:?}; there are {}", known.join(", "));
    }
    for name in engines {
        name.parse::<Contestant>()?;
    }
    let fits =
        |work: &str, name: &str| work == name || !known.iter().any(|known| known == name) && work.starts_with(name);
    let wanted = |work: &str| only.is_empty() || only.iter().any(|name| fits(work, name));
    let mut chosen: Vec<_> = suite.into_iter().filter(|entry| wanted(&entry.work.name)).collect();
    for entry in &mut chosen {
        let wanted = |name: &str| engines.is_empty() || engines.iter().any(|chosen| chosen == name || is(name, chosen));
        entry.field.retain(|name| wanted(name));
    }
    chosen.retain(|entry| !entry.field.is_empty());
    if chosen.is_empty() {
        bail!("nothing of this is done by {}", engines.join(", "));
    }
    Ok(chosen)
}
