//! Looking for damage: every page of a snapshot must be used once, or free once.

use std::fmt;

use crate::db::Snapshot;
use crate::error::Excerpt;
use crate::format::{BranchPage, LeafPage, NO_FREELIST, Page, Pgid, bucket_value, freelist_ids};
use crate::freelist::Run;
use crate::tx::{MAX_DEPTH, Pages, Source, View};
use crate::walk::Allowance;
use crate::{Error, Result};

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The page that it was found on.
    pub page: Pgid,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {}: {}", self.page, self.what)
    }
}

/// How [`Tx::check_with`](crate::Tx::check_with) looks for damage.
///
/// ```
/// # use boltkv_storage::{CheckOptions, Error, Options};
/// # let db = Options::new().open_in_memory()?;
/// # let tx = db.begin()?;
/// let options = CheckOptions::new().print_key(|key| String::from_utf8_lossy(key).into_owned());
/// for problem in tx.check_with(&options)? {
///     eprintln!("{problem}");
/// }
/// # Ok::<_, Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions {
    from_page: Option<Pgid>,
    print_key: fn(&[u8]) -> String,
    most_problems: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { from_page: None, print_key: |key| Excerpt(key).to_string(), most_problems: 10_000 }
    }
}

impl CheckOptions {
    /// The defaults: the whole file; keys escaped and cut; up to 10,000 problems.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Look only at this page and what it leads to: a bucket's root
    /// ([`Bucket::root_page`](crate::Bucket::root_page)), or any branch or leaf. Pages that nothing
    /// uses are not found then. Default: the whole file.
    #[must_use]
    pub fn from_page(mut self, page: Pgid) -> Self {
        self.from_page = Some(page);
        self
    }

    /// How a key is written in a problem's text. Default: quoted, escaped, cut after 64 bytes.
    #[must_use]
    pub fn print_key(mut self, print_key: fn(&[u8]) -> String) -> Self {
        self.print_key = print_key;
        self
    }

    /// After how many problems to stop looking, at least 1: a file of noise has one in every few
    /// bytes. Default: 10,000.
    #[must_use]
    pub fn most_problems(mut self, most: usize) -> Self {
        self.most_problems = most.max(1);
        self
    }
}

/// A set of pages: one bit each.
pub(crate) struct PageSet {
    bits: Vec<u64>,
}

impl PageSet {
    pub(crate) fn new(mark: Pgid) -> Self {
        // The high-water mark was compared with the file's length: this is 1/32,768 of the file.
        let words = usize::try_from(mark.div_ceil(64)).unwrap_or(0);
        Self { bits: vec![0; words] }
    }

    pub(crate) fn contains(&self, id: Pgid) -> bool {
        self.word(id).is_some_and(|&word| word & bit(id) != 0)
    }

    /// `false` if it was there already.
    pub(crate) fn insert(&mut self, id: Pgid) -> bool {
        let Some(word) = usize::try_from(id / 64).ok().and_then(|at| self.bits.get_mut(at)) else { return true };
        let new = *word & bit(id) == 0;
        *word |= bit(id);
        new
    }

    fn word(&self, id: Pgid) -> Option<&u64> {
        self.bits.get(usize::try_from(id / 64).ok()?)
    }
}

fn bit(id: Pgid) -> u64 {
    1 << (id % 64)
}

/// The pages that a snapshot uses, the freelist's not among them.
///
/// # Errors
/// The first damage: with it nobody can say which pages are in use.
pub(crate) fn reachable(snapshot: &Snapshot) -> Result<PageSet> {
    let mut walk = Walk::new(snapshot.pages(), CheckOptions::new().most_problems(1));
    walk.bucket(snapshot.meta.root);
    match walk.problems.into_iter().next() {
        Some(Problem { page, what }) => Err(Error::Corrupt { page, what }),
        None => Ok(walk.used),
    }
}

pub(crate) fn check(snapshot: &Snapshot, options: &CheckOptions) -> Vec<Problem> {
    let meta = &snapshot.meta;
    let mut walk = Walk::new(snapshot.pages(), *options);
    walk.bucket(options.from_page.unwrap_or(meta.root));
    if meta.freelist != NO_FREELIST {
        walk.freelist(meta.freelist);
    }
    walk.problems
}

/// A walk over all trees of a snapshot, which notes what is wrong and goes on.
struct Walk<'a> {
    pages: Pages<'a>,
    used: PageSet,
    /// What inline buckets may still take: they lie in pages, and damaged ones overlap.
    inline: Allowance,
    options: CheckOptions,
    problems: Vec<Problem>,
    /// Subtrees that are still to be visited.
    ahead: Vec<Subtree<'a>>,
}

/// A page, and what its parent says of the keys below it: `low` is included, `high` is not.
struct Subtree<'a> {
    page: Pgid,
    /// The page of an inline bucket, which lies within `page`.
    inline: Option<LeafPage<'a>>,
    depth: usize,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
}

impl<'a> Subtree<'a> {
    fn root(page: Pgid, inline: Option<LeafPage<'a>>) -> Self {
        Self { page, inline, depth: 0, low: None, high: None }
    }
}

impl<'a> Walk<'a> {
    fn new(pages: Pages<'a>, options: CheckOptions) -> Self {
        let inline = Allowance::new(&Source { pages, work: None });
        Self { pages, used: PageSet::new(pages.mark()), inline, options, problems: Vec::new(), ahead: Vec::new() }
    }

    fn has_enough(&self) -> bool {
        self.problems.len() >= self.options.most_problems
    }

    /// Visits a bucket's tree, and those of the buckets in it.
    fn bucket(&mut self, root: Pgid) {
        self.ahead.push(Subtree::root(root, None));
        while let Some(subtree) = self.ahead.pop() {
            if self.has_enough() {
                return;
            }
            if let Err(error) = self.subtree(&subtree) {
                self.error(error, subtree.page);
            }
        }
    }

    fn subtree(&mut self, subtree: &Subtree<'a>) -> Result<()> {
        if let Some(inline) = subtree.inline {
            self.inline.spend_page(&View::Leaf(inline))?;
            return self.leaf(inline, subtree);
        }
        let (run, bytes) = self.pages.bytes(subtree.page)?;
        if !self.mark_used(run) {
            return Ok(());
        }
        match Page::parse(subtree.page, bytes)? {
            Page::Leaf(leaf) => self.leaf(leaf, subtree),
            Page::Branch(branch) => self.branch(branch, subtree),
        }
    }

    /// Notes that a run is in use; `false`, and a problem, if a page of it was already.
    fn mark_used(&mut self, run: Run) -> bool {
        for id in run.start..run.start + run.len {
            if !self.used.insert(id) {
                self.problem(id, "it is referenced twice".into());
                return false;
            }
        }
        true
    }

    fn branch(&mut self, branch: BranchPage<'a>, subtree: &Subtree<'a>) -> Result<()> {
        if subtree.depth >= MAX_DEPTH {
            return Err(Error::corrupt(subtree.page, format!("the tree is deeper than {MAX_DEPTH} levels")));
        }
        self.keys_in_order(subtree, branch.len(), |index| branch.key(index))?;
        for index in 0..branch.len() {
            let high = if index + 1 < branch.len() { Some(branch.key(index + 1)?) } else { subtree.high };
            let child = branch.child(index)?;
            let low = Some(branch.key(index)?);
            self.ahead.push(Subtree { page: child, inline: None, depth: subtree.depth + 1, low, high });
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: LeafPage<'a>, subtree: &Subtree<'a>) -> Result<()> {
        self.keys_in_order(subtree, leaf.len(), |index| leaf.key(index))?;
        for index in 0..leaf.len() {
            let entry = leaf.entry(index)?;
            if !entry.is_bucket {
                continue;
            }
            // A damaged bucket does not keep us from looking at those beside it.
            match bucket_value(subtree.page, entry.value) {
                Ok((_, Some(inline))) => self.ahead.push(Subtree::root(subtree.page, Some(inline))),
                Ok((header, None)) => self.ahead.push(Subtree::root(header.root.get(), None)),
                Err(error) => self.error(error, subtree.page),
            }
        }
        Ok(())
    }

    /// Keys must ascend, and lie within what the parent says.
    fn keys_in_order(
        &mut self,
        subtree: &Subtree<'a>,
        len: usize,
        key_at: impl Fn(usize) -> Result<&'a [u8]>,
    ) -> Result<()> {
        let mut before: Option<&[u8]> = None;
        for index in 0..len {
            let key = key_at(index)?;
            let what = if key.is_empty() {
                Some("is empty".to_owned())
            } else if before.is_some_and(|before| before >= key) {
                Some("is not above the one before it".to_owned())
            } else if subtree.low.is_some_and(|low| key < low) {
                subtree.low.map(|low| format!("is below its parent's key {}", (self.options.print_key)(low)))
            } else {
                let high = subtree.high.filter(|&high| key >= high);
                high.map(|high| format!("is not below its parent's next key {}", (self.options.print_key)(high)))
            };
            if let Some(what) = what {
                let key = (self.options.print_key)(key);
                self.problem(subtree.page, format!("key {key} of element {index} {what}"));
            }
            before = Some(key);
        }
        Ok(())
    }

    /// Every page that is not in use must be free, once. (From a page on, nobody knows all that is in
    /// use.)
    fn freelist(&mut self, page: Pgid) {
        let mark = self.pages.mark();
        let mut free = PageSet::new(mark);
        if let Err(error) = self.read_freelist(page, &mut free) {
            self.error(error, page);
            return;
        }
        let whole = self.options.from_page.is_none();
        for id in 2..mark {
            if self.has_enough() {
                return;
            }
            match (self.used.contains(id), free.contains(id)) {
                (true, true) => self.problem(id, "it is in use and free".into()),
                (false, false) if whole => self.problem(id, "it is neither in use nor free".into()),
                _ => {}
            }
        }
    }

    fn read_freelist(&mut self, page: Pgid, free: &mut PageSet) -> Result<()> {
        let (run, bytes) = self.pages.bytes(page)?;
        self.mark_used(run);
        for id in freelist_ids(page, bytes)? {
            if id < 2 || id >= self.pages.mark() {
                self.problem(page, format!("it lists page {id}, outside of 2..{}", self.pages.mark()));
            } else if !free.insert(id) {
                self.problem(id, "it is freed twice".into());
            }
        }
        Ok(())
    }

    fn error(&mut self, error: Error, page: Pgid) {
        match error {
            Error::Corrupt { page, what } => self.problem(page, what),
            other => self.problem(page, other.to_string()),
        }
    }

    fn problem(&mut self, page: Pgid, what: String) {
        if !self.has_enough() {
            self.problems.push(Problem { page, what });
        }
    }
}
