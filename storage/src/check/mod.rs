//! Looking for damage: every page of a snapshot must be used once, or free once.
//!
//! - `walk`: looks at every page, and notes what is wrong
//! - `crew`: several threads walk a large file together, to say whether it is sound
//!
//! Takes memory for two bits a page and for what is still ahead, whatever the file's size.

mod crew;
mod walk;

use std::fmt;

use crate::base::Excerpt;
use crate::format::{NO_FREELIST, Pgid};
use crate::pages::Snapshot;
use crate::{Error, Result};

use crate::pages::PageSet;
use walk::{Seen, Walk};

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
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    from_page: Option<Pgid>,
    print_key: fn(&[u8]) -> String,
    most_problems: usize,
    threads: Option<usize>,
    progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        Self {
            from_page: None,
            print_key: |key| Excerpt(key).to_string(),
            most_problems: 10_000,
            threads: None,
            progress: None,
        }
    }
}

impl fmt::Debug for CheckOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckOptions")
            .field("from_page", &self.from_page)
            .field("most_problems", &self.most_problems)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl<'a> CheckOptions<'a> {
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

    /// How many threads look at once, the calling one among them; at least 1. A file in which they
    /// find nothing wrong is done then; one with problems is looked at once more, by one thread, so
    /// that what is found does not depend on who was faster. Default: as many as the process may
    /// run at once, but one for a small file.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// What is told, from any of the threads, how many pages were looked at so far; of a file with
    /// problems the count may begin again, once. All pages are
    /// [`Tx::size`](crate::Tx::size) / [`Db::page_size`](crate::Db::page_size), the free ones, which
    /// are not looked at, among them. It is called for every page, and should be quick. Default:
    /// nobody is told.
    #[must_use]
    pub fn progress(mut self, tell: &'a (dyn Fn(u64) + Sync)) -> Self {
        self.progress = Some(tell);
        self
    }
}

/// The pages that a snapshot uses, the freelist's not among them.
///
/// # Errors
/// The first damage: with it nobody can say which pages are in use.
pub(crate) fn reachable(snapshot: &Snapshot) -> Result<PageSet> {
    let (used, problems) = walk_trees(snapshot, snapshot.meta.root, &CheckOptions::new().most_problems(1));
    match problems.into_iter().next() {
        Some(Problem { page, what }) => Err(Error::corrupt(page, what)),
        None => Ok(used),
    }
}

/// What is wrong with a snapshot, in the order of the pages.
pub(crate) fn check(snapshot: &Snapshot, options: &CheckOptions<'_>) -> Vec<Problem> {
    let meta = &snapshot.meta;
    let (used, mut problems) = walk_trees(snapshot, options.from_page.unwrap_or(meta.root), options);
    if meta.freelist != NO_FREELIST {
        let seen = Seen::new(None);
        let mut walk = Walk::new(snapshot.pages(), *options, &used, &seen, 1);
        walk.problems = problems;
        walk.freelist(meta.freelist);
        problems = walk.problems;
    }
    // What was found on one page stays in the order of finding.
    problems.sort_by_key(|problem| problem.page);
    problems
}

/// The pages that `root` leads to, and what is wrong with them.
fn walk_trees(snapshot: &Snapshot, root: Pgid, options: &CheckOptions<'_>) -> (PageSet, Vec<Problem>) {
    let pages = snapshot.pages();
    let threads = crew::threads(options, pages.mark());
    if threads > 1
        && let Some(used) = crew::walk(pages, root, options, threads)
    {
        return (used, Vec::new());
    }
    let (used, seen) = (PageSet::new(pages.mark()), Seen::new(options.progress));
    let mut walk = Walk::new(pages, *options, &used, &seen, 1);
    walk.bucket(root);
    let problems = walk.problems;
    (used, problems)
}
