//! From a path to a database: find or create the file, lock it, find its newest meta.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use super::durable::is_full;
use super::recover::{self, Found};
use super::replay::Way;
use super::room::limit;
use super::writer::{Writer, map_size};
use super::{DamagedMeta, Figures, JournalOptions, Options, Shared};
use crate::disk::{Disk, Folder, HeapDisk, JournalFolder, OsFolder, Publish, create};
use crate::format::{
    META_BYTES, Meta, MetaFields, Metas, NO_FREELIST, PageWriter, Pgid, TxId, ends_in_first_meta, freelist_ids,
    freelist_page, is_page_size,
};
use crate::journal::DamagedPage;
use crate::pages::{Freelist, Recents, Run, Snapshot};
use crate::{Error, Result};

/// Page size of a new file where the options name none.
const DEFAULT_PAGE_SIZE: u32 = 4096;
/// How many rivals for one name are borne before giving up.
const MOST_TRIES: usize = 100;

/// The transaction of a new file's newest meta.
const NEWEST_OF_NEW: TxId = 1;

impl Shared {
    pub(crate) fn open_with(path: &Path, options: &Options) -> Result<Self> {
        options.journal.as_ref().map_or(Ok(()), JournalOptions::check)?;
        recover::refuse_own_folder(path, options)?;
        recover::refuse_orphans(path, options)?;
        recover::refuse_no_folder(path, options)?;
        let to_be_made = recover::asked(path, options).filter(|folder| folder.symlink_metadata().is_err());
        let opened = Self::open_in(&OsFolder { map: options.map }, path, options, recover::folders);
        if let (Err(error), Some(made)) = (&opened, to_be_made)
            && !matches!(error, Error::JournalInUse { .. })
        {
            // Who is refused leaves nothing; one in which something is stays.
            let _ = fs::remove_dir(made);
        }
        opened
    }

    /// Opens the file of that name in a folder. `journals` says where its journal may be, once it is there.
    pub(crate) fn open_in<F: Folder>(
        folder: &F,
        path: &Path,
        options: &Options,
        journals: impl FnOnce(&Path, &Options) -> Result<Vec<Arc<dyn JournalFolder>>>,
    ) -> Result<Self> {
        let file = open_locked(folder, path, options)?;
        // What is no database gets no folder for its journal.
        let len = file.len().map_err(Error::io("look at", Some(path)))?;
        newest_meta(&file, len, Some(path))?;
        let journals = journals(path, options)?;
        let file = Arc::new(file);
        let open = || Self::on_disk_beside(file.clone(), Some(path), options, journals.clone());
        let (shared, found) = open()?;
        // Before anything is committed to a file its name has to be on the disk. Who created, renamed or restored it may
        // not have seen to that, so that everybody who will write does.
        if !options.read_only
            && let Err(error) = folder.sync(path)
        {
            let is_new = shared.readers.current().meta.txid <= NEWEST_OF_NEW;
            // A folder that may not be read has kept the name of a file with commits so far.
            if is_new || error.kind() != io::ErrorKind::PermissionDenied {
                return Err(Error::io("sync the folder of", Some(path))(error));
            }
        }
        shared.keep_journal_found(found, open)
    }

    pub(crate) fn new_in_memory(options: &Options) -> Result<Self> {
        let disk = HeapDisk::default();
        disk.write_at(&new_database(options)?, 0).map_err(Error::io("create a database in memory", None))?;
        Self::on_disk(Arc::new(disk), None, options, None)
    }

    /// Opens what is on a disk that belongs to this process, with a journal in this folder if there is one.
    pub(crate) fn on_disk(
        disk: Arc<dyn Disk>,
        path: Option<&Path>,
        options: &Options,
        journal: Option<Arc<dyn JournalFolder>>,
    ) -> Result<Self> {
        let journals = Vec::from_iter(journal);
        let open = move || Self::on_disk_beside(Arc::clone(&disk), path, options, journals.clone());
        let (shared, found) = open()?;
        shared.keep_journal_found(found, open)
    }

    /// Keeps the journal that was found; where there was too little room for that, opens once more, and takes as little as
    /// can be.
    fn keep_journal_found(
        self,
        found: Option<Found>,
        open: impl FnOnce() -> Result<(Self, Option<Found>)>,
    ) -> Result<Self> {
        let kept = found.map_or(Ok(()), |found| self.keep_journal(found, Way::Fast));
        if kept.as_ref().is_err_and(is_full) {
            drop(self);
            let (shared, found) = open()?;
            found.map_or(Ok(()), |found| shared.keep_journal(found, Way::Frugal))?;
            return Ok(shared);
        }
        kept.map(|()| self)
    }

    /// Opens what is on a disk, and looks into the journals beside it.
    fn on_disk_beside(
        disk: Arc<dyn Disk>,
        path: Option<&Path>,
        options: &Options,
        journals: Vec<Arc<dyn JournalFolder>>,
    ) -> Result<(Self, Option<Found>)> {
        if !options.read_only {
            // A process that was killed may have left a meta in the system's cache only. The pages
            // that its transaction freed must not be written over before it is on the disk.
            disk.sync().map_err(Error::io("sync", path))?;
        }
        let len = disk.len().map_err(Error::io("look at", path))?;
        if !options.read_only {
            may_write_all(&*disk, len).map_err(Error::io("write", path))?;
        }
        let (mut meta, mut damaged_meta) = newest_meta(&*disk, len, path)?;
        meta.validate(len)?;
        if let Some(damaged) = &mut damaged_meta {
            let mut page = DamagedPage { page: damaged.page, bytes: [0; META_BYTES] };
            let offset = damaged.page * u64::from(meta.page_size);
            disk.read_at(&mut page.bytes, offset).map_err(Error::io("read", path))?;
            if let Some(newest) = recover::known_meta(&journals, &meta, &page, options)? {
                newest.validate(len)?;
                (meta, damaged.newest_left, damaged.is_known) = (newest, newest.txid, true);
            }
        }
        let is_in_doubt = damaged_meta.is_some_and(|damaged| !damaged.is_known);
        let found = recover::look(journals, &meta, path, is_in_doubt, options)?;
        let map_len = map_size(len.max(options.initial_map_size));
        let map = usize::try_from(map_len).map_err(io::Error::other).and_then(|len| disk.map(len));
        let map = Arc::new(map.map_err(Error::io("map", path))?);
        if options.mlock {
            let locked = usize::try_from(len).map_err(io::Error::other).and_then(|len| map.lock(len));
            locked.map_err(Error::io("lock in memory", path))?;
        }
        let snapshot = Snapshot::new(meta, map, Recents::default());
        let mut figures = Figures::default();
        let writer = if options.read_only {
            if options.pre_load_freelist {
                figures.free_pages = Some(load_freelist(&snapshot, options)?.0.free_pages());
            }
            None
        } else {
            let (freelist, stored) = load_freelist(&snapshot, options)?;
            figures.free_pages = Some(freelist.free_pages());
            figures.pending_pages = Some(0);
            let mut writer = Writer::new(freelist, stored, meta, len, map_len);
            writer.max_size = limit(options, &*disk);
            Some(writer)
        };
        if damaged_meta.is_some_and(|damaged| damaged.is_known) {
            // Its pages were found where it says.
            put_back(&*disk, &meta, path, options)?;
        }
        Ok((Self::new(disk, path, options, snapshot, writer, &figures, damaged_meta), found))
    }
}

/// Opens and locks the file; creates it where that is asked for.
pub(crate) fn open_locked<F: Folder>(folder: &F, path: &Path, options: &Options) -> Result<F::File> {
    for _ in 0..MOST_TRIES {
        let file = match folder.open(path, !options.read_only) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && options.create && !options.read_only => {
                match create(folder, path, options.mode, &new_database(options)?, Publish::New)? {
                    Some(file) => return Ok(file),
                    None => continue,
                }
            }
            Err(error) => return Err(Error::io("open", Some(path))(error)),
        };
        if !folder.lock(&file, path, options.read_only, options.timeout)? {
            continue;
        }
        let len = file.len().map_err(Error::io("look at", Some(path)))?;
        if len > 0 || options.read_only || !options.create {
            return Ok(file);
        }
        // An empty file is a new database (as in bbolt). It is filled by taking its place, so that
        // a crash cannot leave half of it; whoever waits for the old file's lock opens again. A link to it stays one.
        let mode = folder.mode(&file).map_err(Error::io("look at", Some(path)))?;
        let path = &folder.real(path).map_err(Error::io("look at", Some(path)))?;
        if let Some(file) = create(folder, path, mode, &new_database(options)?, Publish::OverEmpty)? {
            return Ok(file);
        }
    }
    let what = io::Error::other(format!("the path named another file after each of {MOST_TRIES} tries"));
    Err(Error::io("open", Some(path))(what))
}

/// The four pages of a new database.
pub(crate) fn new_database(options: &Options) -> Result<Vec<u8>> {
    let page_size = options.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
    if !is_page_size(page_size) {
        return Err(Error::InvalidPageSize { found: page_size.into() });
    }
    let meta = |txid: TxId| Meta { page_size, flags: 0, root: 3, sequence: 0, freelist: 2, mark: 4, txid };
    let size = page_size as usize;
    let mut file = meta(0).encode();
    file.extend(meta(NEWEST_OF_NEW).encode());
    file.resize(4 * size, 0);
    freelist_page(&mut file[2 * size..], 2, 0, &[]);
    PageWriter::leaf(&mut file[3 * size..], 3, 0, 0);
    Ok(file)
}

/// The valid meta with the highest transaction number, and what is wrong with the other one.
fn newest_meta(disk: &dyn Disk, len: u64, path: Option<&Path>) -> Result<(Meta, Option<DamagedMeta>)> {
    if len < META_BYTES as u64 {
        let mut start = [0; META_BYTES];
        let read = disk.read_at(&mut start, 0).map_err(Error::io("read", path))?;
        return Err(ends_in_first_meta(&start[..read]));
    }
    let read = |offset: u64| -> Result<_> {
        let mut page = [0; META_BYTES];
        let read = disk.read_at(&mut page, offset).map_err(Error::io("read", path))?;
        Ok(MetaFields::read(&page[..read]))
    };
    let Some((metas, newest)) = Metas::find(read)?.and_then(|metas| Some((metas, metas.newest()?))) else {
        return Err(Metas::of(DEFAULT_PAGE_SIZE, read)?.fault().into());
    };
    let needed = 2 * u64::from(metas.page_size());
    if len < needed {
        return Err(Error::FileTooShort { len, needed });
    }
    let damaged = metas.damaged().map(|page| DamagedMeta { page, newest_left: newest.txid, is_known: false });
    Ok((newest, damaged))
}

/// Whether this process may write wherever the file of `len` bytes has pages. Who may not would acknowledge what no checkpoint
/// can bring to the file.
fn may_write_all(disk: &dyn Disk, len: u64) -> io::Result<()> {
    let Some(max) = disk.max_len().filter(|&max| max < len) else { return Ok(()) };
    let what = format!(
        "it has {len} bytes already, and this process may write only the first {max} of a file: raise that limit \
         (ulimit -f, LimitFSIZE=), or open the file only for reading"
    );
    Err(io::Error::new(io::ErrorKind::FileTooLarge, what))
}

/// Writes a meta where a damaged one stands, if the file may be written.
fn put_back(disk: &dyn Disk, meta: &Meta, path: Option<&Path>, options: &Options) -> Result<()> {
    if options.read_only {
        return Ok(());
    }
    disk.write_at(&meta.encode(), meta.slot() * u64::from(meta.page_size)).map_err(Error::io("write", path))?;
    disk.sync().map_err(Error::io("sync", path))
}

/// Reads the stored freelist, and says where it is stored; or finds the free pages by walking all
/// others.
fn load_freelist(snapshot: &Snapshot, options: &Options) -> Result<(Freelist, Option<Run>)> {
    let meta = &snapshot.meta;
    if options.ignore_freelist && meta.freelist != NO_FREELIST {
        return find_free_pages(snapshot);
    }
    if meta.freelist == NO_FREELIST {
        let reachable = crate::check::reachable(snapshot)?;
        let free = (2..meta.mark).filter(|&id| !reachable.contains(id));
        return Ok((Freelist::load(meta.freelist, free, meta.mark)?, None));
    }
    let (run, bytes) = snapshot.pages().bytes(meta.freelist)?;
    Ok((Freelist::load(meta.freelist, freelist_ids(meta.freelist, bytes)?, meta.mark)?, Some(run)))
}

/// Finds the free pages beside a list that is not believed. Its own pages stay as they are until the next list has taken its
/// place: the file must open until then.
fn find_free_pages(snapshot: &Snapshot) -> Result<(Freelist, Option<Run>)> {
    let meta = &snapshot.meta;
    let reachable = crate::check::reachable(snapshot)?;
    let stored = snapshot.pages().run(meta.freelist).ok();
    let pages_of = |run: Run| run.start..run.start + run.len;
    // One that is damaged, too, may lie over pages that are in use.
    let stored = stored.filter(|&run| !pages_of(run).any(|id| reachable.contains(id)));
    let is_free = |id: &Pgid| !reachable.contains(*id) && !stored.is_some_and(|run| pages_of(run).contains(id));
    Ok((Freelist::load(meta.freelist, (2..meta.mark).filter(is_free), meta.mark)?, stored))
}
