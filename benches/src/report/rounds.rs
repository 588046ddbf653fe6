//! How often the works of a section were done, and how long each run had.

use std::collections::BTreeMap;

use crate::results::Results;

/// So many works of one number of rounds are named; more are counted.
const NAMED: usize = 3;

/// The rounds that there really are, by works; whoever was left out of a work is not counted in it. What was asked for
/// and the time limit follow where they are known.
pub(super) fn said(results: &Results) -> String {
    let mut by_rounds: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for (work, rounds) in done(results) {
        by_rounds.entry(rounds).or_default().push(work);
    }
    let mut parts: Vec<_> = by_rounds.iter().map(|(rounds, works)| part(*rounds, works)).collect();
    parts.reverse();
    let asked = results.rounds.map_or_else(String::new, |asked| format!(" ({asked} asked for)"));
    let limit = results.limit.map_or_else(String::new, |limit| format!(" A run was given up after {limit} s."));
    format!("Rounds: {}{asked}.{limit}", parts.join("; "))
}

/// The fewest and the most rounds that anyone did each work in.
fn done(results: &Results) -> BTreeMap<&str, (usize, usize)> {
    let left_out =
        |work, contestant| results.left_out.iter().any(|out| out.work == work && out.contestant == contestant);
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for run in results.runs.iter().filter(|run| !left_out(run.work.as_str(), run.contestant.as_str())) {
        *counts.entry((run.work.as_str(), run.contestant.as_str())).or_default() += 1;
    }
    let mut works: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for ((work, _), count) in counts {
        let (fewest, most) = works.entry(work).or_insert((count, count));
        (*fewest, *most) = (count.min(*fewest), count.max(*most));
    }
    works
}

fn part((fewest, most): (usize, usize), works: &[&str]) -> String {
    let rounds = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    if works.len() <= NAMED {
        format!("{rounds} of {}", works.join(", "))
    } else {
        format!("{rounds} of each of {} works", works.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{LeftOut, Run, made_up};

    fn results(runs: &[(&str, &str)]) -> Results {
        let run = |(work, contestant): &(&str, &str)| {
            let (work, contestant) = ((*work).to_owned(), (*contestant).to_owned());
            Run { work, contestant, ..Run::default() }
        };
        let left_out = vec![LeftOut { work: "w".to_owned(), contestant: "nut".to_owned(), why: String::new() }];
        Results { left_out, ..made_up(runs.iter().map(run).collect()) }
    }

    #[test]
    fn rounds_are_those_that_there_are_and_who_is_left_out_does_not_count() {
        let mut results =
            results(&[("w", "a"), ("w", "nut"), ("w", "a"), ("x", "a"), ("y", "a"), ("y", "b"), ("y", "b")]);
        assert_eq!(said(&results), "Rounds: 2 of w; 1 to 2 of y; 1 of x.");
        (results.rounds, results.limit) = (Some(2), Some(60));
        assert_eq!(said(&results), "Rounds: 2 of w; 1 to 2 of y; 1 of x (2 asked for). A run was given up after 60 s.");
    }

    #[test]
    fn many_works_are_counted() {
        let runs = ["u", "v", "x", "y"].map(|work| (work, "a"));
        assert_eq!(said(&results(&runs)), "Rounds: 1 of each of 4 works.");
    }
}
