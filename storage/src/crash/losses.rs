//! Which of the ways in which a crash may go are tried.

use super::random::Random;
use crate::disk::sim::{Harm, Loss, Platter};

/// With up to this many pieces every selection is tried.
const FEW: usize = 3;
/// Places at which the newest change is torn.
const TEARS: usize = 3;
/// Random selections beside the chosen ones.
const RANDOM: usize = 6;
/// A shorn piece has at most this many bytes: a meta has more, so that it is cut through.
const MOST_SHORN: usize = 79;

/// Losses that are worth a look after the newest change of a file. All of the prefixes are among
/// them, taken over all moments: this one's is everything.
pub(super) fn losses(platter: &Platter, random: &mut Random) -> Vec<Loss> {
    let selections = if platter.pieces() <= FEW { every_selection(platter) } else { chosen(platter, random) };
    let loss = |kept| Loss { kept, harmed: None, len: platter.len() };
    let mut losses: Vec<Loss> = selections.into_iter().map(loss).collect();
    losses.extend(shorn(platter, random));
    losses.extend(destroyed(platter, random));
    // Whatever came through, the length may be an older one.
    if platter.lengths().len() > 1 {
        let older = &platter.lengths()[..platter.lengths().len() - 1];
        let shorter: Vec<Loss> =
            losses.iter().map(|loss| Loss { len: older[random.below(older.len())], ..loss.clone() }).collect();
        losses.extend(shorter);
    }
    losses
}

/// Everything came, but a piece of the newest change only in part: its first piece, where a page has
/// its header, and some other.
fn shorn(platter: &Platter, random: &mut Random) -> Vec<Loss> {
    let Some(newest) = platter.changes().pop() else { return Vec::new() };
    let pieces = [newest.start, newest.start + random.below(newest.len())];
    let harms = pieces.map(|piece| Some((piece, Harm::Shorn(1 + random.below(MOST_SHORN)))));
    harms.map(|harmed| Loss { kept: vec![true; platter.pieces()], harmed, len: platter.len() }).into()
}

/// Everything came, but one sector of the newest change was destroyed: its first one, or some other. And of all that is on
/// its way something came, and one sector of it was destroyed.
fn destroyed(platter: &Platter, random: &mut Random) -> Vec<Loss> {
    let Some(newest) = platter.changes().pop() else { return Vec::new() };
    let pieces = platter.pieces();
    let some = if random.once_in(2) { newest.start } else { newest.start + random.below(newest.len()) };
    let any = random.below(pieces);
    let coins = (0..pieces).map(|at| at == any || random.once_in(2)).collect();
    let ways = [(some, vec![true; pieces]), (any, coins)];
    let loss = |(piece, kept)| {
        let harmed = Some((piece, Harm::Destroyed(random.next())));
        Loss { kept, harmed, len: platter.len() }
    };
    ways.map(loss).into()
}

fn every_selection(platter: &Platter) -> Vec<Vec<bool>> {
    let pieces = platter.pieces();
    let selections = 0..1_u32 << pieces;
    selections.map(|selection| (0..pieces).map(|at| selection & (1 << at) != 0).collect()).collect()
}

fn chosen(platter: &Platter, random: &mut Random) -> Vec<Vec<bool>> {
    let pieces = platter.pieces();
    let changes = platter.changes();
    let newest = changes.last().cloned().unwrap_or_default();
    let mut selections: Vec<Vec<bool>> = vec![vec![true; pieces]];
    let mut keep = |came: &dyn Fn(usize) -> bool| selections.push((0..pieces).map(came).collect());
    keep(&|at| newest.contains(&at));
    for change in &changes[..changes.len().saturating_sub(1)] {
        keep(&|at| !change.contains(&at));
    }
    for _ in 0..TEARS.min(newest.len() - 1) {
        let cut = newest.start + 1 + random.below(newest.len() - 1);
        keep(&|at| at < cut);
        keep(&|at| at < newest.start || at >= cut);
    }
    for round in 0..RANDOM {
        let coins: Vec<bool> = (0..pieces).map(|_| random.once_in(2 + round / 2)).collect();
        keep(&|at| coins[at] == (round % 2 == 0));
    }
    selections
}
