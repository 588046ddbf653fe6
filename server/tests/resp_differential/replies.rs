//! What makes two replies the same: their bytes, or, where Redis has no order or draws, or where time passes, what they mean.

use super::draw::{KEYS, Words};

/// How far times may lie apart that are counted from now, in milliseconds: both servers are asked one after the other.
const TOLERANCE: i64 = 60_000;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Tree {
    /// Its line, and the bytes behind it where it has any.
    Leaf(Vec<u8>, Vec<u8>),
    /// What begins its line, and what is in it.
    Items(u8, Vec<Tree>),
}

/// How the replies to a command are compared.
#[derive(Debug, Clone, Copy)]
enum Relation {
    Same,
    /// The same items in any order, so many of them together.
    AnyOrder(usize),
    /// A cursor, and then such items.
    Scanned(usize),
    /// What Redis counts, which has counted more: what has expired, until it comes to it.
    AtMost,
    /// Numbers that may be apart by so much.
    Near(i64),
    /// One of the keys that there are, or none for both.
    AKey,
    /// As many.
    AsMany,
}

/// Which commands wait for EXEC, as far as the replies tell.
#[derive(Debug, Default)]
pub(crate) struct Queued(Option<Vec<Words>>);

impl Queued {
    /// Whether both replies say the same.
    pub(crate) fn are_same(&mut self, said: &Words, our: &[u8], their: &[u8]) -> bool {
        let name = said[0].to_ascii_uppercase();
        let queued = match name.as_slice() {
            b"MULTI" if our == b"+OK\r\n" => self.0.replace(Vec::new()),
            b"EXEC" | b"DISCARD" | b"RESET" => self.0.take(),
            _ => {
                if our == b"+QUEUED\r\n"
                    && let Some(queued) = &mut self.0
                {
                    queued.push(said.clone());
                }
                None
            }
        };
        if our == their {
            return true;
        }
        let (our, their) = (tree(&mut &*our), tree(&mut &*their));
        match (name.as_slice(), queued, our, their) {
            (b"EXEC", Some(queued), Tree::Items(b'*', ours), Tree::Items(b'*', theirs)) => {
                let each = queued.iter().zip(ours.iter().zip(&theirs));
                ours.len() == queued.len()
                    && ours.len() == theirs.len()
                    && each.into_iter().all(|(said, (our, their))| holds(relation(said), our, their))
            }
            (_, _, our, their) => holds(relation(said), &our, &their),
        }
    }
}

fn relation(said: &Words) -> Relation {
    match said[0].to_ascii_uppercase().as_slice() {
        b"KEYS" | b"HKEYS" | b"HVALS" => Relation::AnyOrder(1),
        b"HGETALL" => Relation::AnyOrder(2),
        b"SCAN" => Relation::Scanned(1),
        b"HSCAN" => Relation::Scanned(2),
        b"PTTL" | b"PEXPIRETIME" => Relation::Near(TOLERANCE),
        b"TTL" | b"EXPIRETIME" => Relation::Near(TOLERANCE / 1_000),
        b"DBSIZE" => Relation::AtMost,
        b"RANDOMKEY" => Relation::AKey,
        b"HRANDFIELD" => Relation::AsMany,
        _ => Relation::Same,
    }
}

fn holds(relation: Relation, our: &Tree, their: &Tree) -> bool {
    if our == their {
        return true;
    }
    match (relation, our, their) {
        (Relation::AnyOrder(together), Tree::Items(kind, ours), Tree::Items(other, theirs)) => {
            let sorted = |items: &[Tree]| {
                let mut chunks: Vec<_> = items.chunks(together).map(<[Tree]>::to_vec).collect();
                chunks.sort();
                chunks
            };
            kind == other && sorted(ours) == sorted(theirs)
        }
        (Relation::Scanned(together), Tree::Items(b'*', ours), Tree::Items(b'*', theirs)) => {
            match (&ours[..], &theirs[..]) {
                ([cursor, ours], [other, theirs]) => {
                    cursor == other && holds(Relation::AnyOrder(together), ours, theirs)
                }
                _ => false,
            }
        }
        (Relation::Near(tolerance), our, their) => match (number(our), number(their)) {
            // What is below is no time.
            (Some(our), Some(their)) => our >= 0 && their >= 0 && our.abs_diff(their) <= tolerance.unsigned_abs(),
            _ => false,
        },
        (Relation::AtMost, our, their) => number(our).is_some_and(|our| number(their).is_some_and(|their| our < their)),
        (Relation::AKey, Tree::Leaf(_, our), Tree::Leaf(line, _)) => {
            line.first() == Some(&b'$') && line != b"$-1" && KEYS.iter().any(|key| key.as_bytes() == our)
        }
        (Relation::AsMany, Tree::Items(kind, ours), Tree::Items(other, theirs)) => {
            kind == other && ours.len() == theirs.len()
        }
        // A field.
        (Relation::AsMany, Tree::Leaf(our, _), Tree::Leaf(their, _)) => {
            [our, their].iter().all(|line| line.first() == Some(&b'$') && *line != b"$-1")
        }
        _ => false,
    }
}

fn number(tree: &Tree) -> Option<i64> {
    let Tree::Leaf(line, _) = tree else { return None };
    std::str::from_utf8(line.strip_prefix(b":")?).ok()?.parse().ok()
}

/// Takes a reply off the front.
fn tree(rest: &mut &[u8]) -> Tree {
    let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
    let (line, behind) = (&rest[..end], &rest[end + 2..]);
    *rest = behind;
    let count = || std::str::from_utf8(&line[1..]).unwrap().parse::<i64>().unwrap();
    match line[0] {
        b'*' | b'~' | b'%' if count() >= 0 => {
            let items = if line[0] == b'%' { 2 * count() } else { count() };
            Tree::Items(line[0], (0..items).map(|_| tree(rest)).collect())
        }
        b'$' | b'=' if count() >= 0 => {
            let (bytes, behind) = rest.split_at(usize::try_from(count()).unwrap());
            *rest = &behind[2..];
            Tree::Leaf(line.to_vec(), bytes.to_vec())
        }
        _ => Tree::Leaf(line.to_vec(), Vec::new()),
    }
}
