//! The content of a simulated disk, on which `raft-engine` itself runs. A crash keeps any part of
//! the unsynced writes: each write whole, torn, or not at all, and later ones without earlier ones.
//! A sync takes time; a crash before its end is a crash before the sync. A sync that fails loses
//! unsynced writes in the same way, although they can still be read, and later syncs do not bring
//! them back. A full disk refuses writes.
//!
//! Half of the disks write zeros ahead of the end of a file, as real ones do, so a crash also keeps
//! any part of the zeros.
//!
//! The engine handles file names itself: it lists a real directory, which has an empty file for
//! each simulated one. A crash keeps names as they are.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use dunlin_replica::Ahead;
use dunlin_sim::Rng;
use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

/// The disk keeps or loses this number of bytes together.
const SECTOR: usize = 64;

/// Zeros that are written ahead: as long as a write, so that most writes have zeros after them.
const ZEROS: usize = 300;

/// A change of a file that is not synced yet.
#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

#[derive(Clone, Default)]
struct Content {
    /// The content that a reader sees.
    seen: Vec<u8>,
    /// The content that is on the disk.
    kept: Vec<u8>,
    changes: Vec<Change>,
    /// A sync of the changes has begun.
    is_syncing: bool,
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, written) => {
            let end = offset + written.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[*offset..end].copy_from_slice(written);
        }
        Change::Resize(len) => bytes.resize(*len, 0),
    }
}

impl Content {
    fn change(&mut self, change: Change) {
        apply(&mut self.seen, &change);
        self.changes.push(change);
    }

    /// Completes the sync.
    fn settle(&mut self) {
        if std::mem::take(&mut self.is_syncing) {
            for change in self.changes.drain(..) {
                apply(&mut self.kept, &change);
            }
        }
    }

    /// Keeps any part of the changes. Returns how many of them are zeros.
    fn lose(&mut self, rng: &mut Rng) -> u64 {
        self.is_syncing = false;
        let mut zeros = 0;
        for change in self.changes.drain(..) {
            match change {
                Change::Write(offset, bytes) => {
                    zeros += u64::from(bytes.iter().all(|byte| *byte == 0));
                    let (tears, keeps) = (rng.one_in(3), rng.one_in(2));
                    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                        if if tears { rng.one_in(2) } else { keeps } {
                            let place = offset + number * SECTOR;
                            apply(&mut self.kept, &Change::Write(place, sector.to_vec()));
                        }
                    }
                }
                Change::Resize(_) if rng.one_in(2) => apply(&mut self.kept, &change),
                Change::Resize(_) => {}
            }
        }
        zeros
    }
}

/// The state of a disk.
#[derive(Clone)]
struct Platter {
    names: BTreeMap<PathBuf, u64>,
    contents: BTreeMap<u64, Content>,
    next: u64,
    rng: Rng,
    is_full: bool,
    fails_next: bool,
    has_failed: bool,
    lost_zeros: u64,
    /// The process has ended: further calls of its engine have no effect.
    is_dead: bool,
}

impl Platter {
    /// Completes all syncs that have begun. The engine waits for each sync before it goes on.
    fn settle(&mut self) {
        if !self.is_dead {
            self.contents.values_mut().for_each(Content::settle);
        }
    }
}

/// A disk, which outlives crashes of its replica.
#[derive(Clone)]
pub(crate) struct SimFiles {
    platter: Arc<Mutex<Platter>>,
    folder: PathBuf,
    writes_zeros: bool,
}

impl SimFiles {
    pub(crate) fn new(folder: PathBuf, writes_zeros: bool, rng: Rng) -> Self {
        let platter = Platter {
            names: BTreeMap::new(),
            contents: BTreeMap::new(),
            next: 0,
            rng,
            is_full: false,
            fails_next: false,
            has_failed: false,
            lost_zeros: 0,
            is_dead: false,
        };
        Self {
            platter: Arc::new(Mutex::new(platter)),
            folder,
            writes_zeros,
        }
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.platter.lock().unwrap()
    }

    /// Crashes the replica. Its engine is left with a disk that no longer exists.
    pub(crate) fn crash(&mut self) {
        let mut next = self.platter().clone();
        self.platter().is_dead = true;
        for content in next.contents.values_mut() {
            next.lost_zeros += content.lose(&mut next.rng);
            content.seen.clone_from(&content.kept);
        }
        (next.fails_next, next.has_failed) = (false, false);
        self.platter = Arc::new(Mutex::new(next));
    }

    /// Writes of zeros that crashes and failures have found before they were synced.
    pub(crate) fn lost_zeros(&self) -> u64 {
        self.platter().lost_zeros
    }

    pub(crate) fn fill(&self, is_full: bool) {
        self.platter().is_full = is_full;
    }

    /// Makes the next sync fail.
    pub(crate) fn fail_next(&self) {
        self.platter().fails_next = true;
    }

    /// Whether a sync has failed since the replica's start.
    pub(crate) fn has_failed(&self) -> bool {
        self.platter().has_failed
    }

    /// The directory with the names of its files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Completes the sync that has begun.
    pub(crate) fn settle(&self) {
        self.platter().settle();
    }

    fn handle(&self, id: u64) -> SimHandle {
        SimHandle {
            files: self.clone(),
            id,
        }
    }
}

#[derive(Clone)]
pub(crate) struct SimHandle {
    files: SimFiles,
    id: u64,
}

impl SimHandle {
    /// Changes the file, unless its process has ended.
    fn change(&self, change: Change) {
        let mut platter = self.files.platter();
        if platter.is_dead {
            return;
        }
        platter.settle();
        if let Some(content) = platter.contents.get_mut(&self.id) {
            content.change(change);
        }
    }

    fn seen<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        let platter = self.files.platter();
        let content = platter.contents.get(&self.id);
        look(content.map_or(&[], |content| &content.seen))
    }
}

impl Handle for SimHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.change(Change::Resize(offset));
        Ok(())
    }

    fn file_size(&self) -> io::Result<usize> {
        Ok(self.seen(<[u8]>::len))
    }

    fn sync(&self) -> io::Result<()> {
        let mut platter = self.files.platter();
        let platter = &mut *platter;
        let fails = std::mem::take(&mut platter.fails_next) && !platter.is_dead;
        let Some(content) = platter.contents.get_mut(&self.id) else {
            return Ok(());
        };
        if fails {
            platter.has_failed = true;
            platter.lost_zeros += content.lose(&mut platter.rng);
            return Err(io::Error::other("the simulated disk fails"));
        }
        content.is_syncing = true;
        Ok(())
    }
}

pub(crate) struct SimCursor {
    handle: Arc<SimHandle>,
    offset: usize,
}

impl Seek for SimCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(offset) => (offset, 0),
            SeekFrom::Current(by) => (self.offset as u64, by),
            SeekFrom::End(by) => (self.handle.file_size()? as u64, by),
        };
        let offset = from.checked_add_signed(by).ok_or(ErrorKind::InvalidInput)?;
        self.offset = usize::try_from(offset).unwrap();
        Ok(offset)
    }
}

impl Read for SimCursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let offset = self.offset;
        let count = self.handle.seen(|bytes| {
            let rest = bytes.get(offset..).unwrap_or(&[]);
            let count = rest.len().min(out.len());
            out[..count].copy_from_slice(&rest[..count]);
            count
        });
        self.offset += count;
        Ok(count)
    }
}

impl io::Write for SimCursor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.handle.files.platter().is_full {
            let error = io::Error::new(ErrorKind::StorageFull, "the simulated disk has no room");
            return Err(error);
        }
        self.handle
            .change(Change::Write(self.offset, bytes.to_vec()));
        self.offset += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteExt for SimCursor {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.offset = offset;
        self.handle.truncate(offset)
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        if self.handle.files.platter().is_full {
            return Err(ErrorKind::StorageFull.into());
        }
        let len = self.handle.file_size()?.max(offset + size);
        self.handle.truncate(len)
    }
}

/// A writer of a file.
pub(crate) enum SimWriter {
    Plain(SimCursor),
    Ahead(Ahead<SimCursor>),
}

impl Seek for SimWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Plain(cursor) => cursor.seek(to),
            Self::Ahead(ahead) => ahead.seek(to),
        }
    }
}

impl io::Write for SimWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(cursor) => cursor.write(bytes),
            Self::Ahead(ahead) => ahead.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteExt for SimWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        match self {
            Self::Plain(cursor) => cursor.truncate(offset),
            Self::Ahead(ahead) => ahead.truncate(offset),
        }
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        match self {
            Self::Plain(cursor) => cursor.allocate(offset, size),
            Self::Ahead(ahead) => ahead.allocate(offset, size),
        }
    }
}

impl FileSystem for SimFiles {
    type Handle = SimHandle;
    type Reader = SimCursor;
    type Writer = SimWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<SimHandle> {
        let mut platter = self.platter();
        platter.settle();
        platter.next += 1;
        let id = platter.next;
        if !platter.is_dead && !platter.names.contains_key(path.as_ref()) {
            std::fs::write(&path, b"")?;
            platter.names.insert(path.as_ref().to_owned(), id);
            platter.contents.insert(id, Content::default());
        }
        let id = platter.names.get(path.as_ref()).copied().unwrap_or(id);
        drop(platter);
        Ok(self.handle(id))
    }

    fn open<P: AsRef<Path>>(&self, path: P, _: Permission) -> io::Result<SimHandle> {
        let id = self.platter().names.get(path.as_ref()).copied();
        Ok(self.handle(id.ok_or(ErrorKind::NotFound)?))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let mut platter = self.platter();
        platter.settle();
        if platter.is_dead {
            return Ok(());
        }
        let id = platter.names.remove(path.as_ref());
        platter.contents.remove(&id.ok_or(ErrorKind::NotFound)?);
        std::fs::remove_file(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        let mut platter = self.platter();
        platter.settle();
        if platter.is_dead {
            return Ok(());
        }
        let id = platter.names.remove(from.as_ref());
        let id = id.ok_or(ErrorKind::NotFound)?;
        platter.names.insert(to.as_ref().to_owned(), id);
        std::fs::rename(from, to)
    }

    fn new_reader(&self, handle: Arc<SimHandle>) -> io::Result<SimCursor> {
        Ok(SimCursor { handle, offset: 0 })
    }

    fn new_writer(&self, handle: Arc<SimHandle>) -> io::Result<SimWriter> {
        let cursor = SimCursor { handle, offset: 0 };
        Ok(match self.writes_zeros {
            true => SimWriter::Ahead(Ahead::with_zeros(cursor, ZEROS)),
            false => SimWriter::Plain(cursor),
        })
    }
}

/// The directory of a run's disks, which is removed when the run ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        // Tests run concurrently in one process, perhaps with the same seed.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new("/dev/shm");
        let parent = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let name = format!("dunlin-replica-{}-{count}", std::process::id());
        let folder = Self(parent.join(name));
        std::fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    pub(crate) fn disk(&self, number: usize, rng: Rng) -> SimFiles {
        let writes_zeros = number.is_multiple_of(2);
        SimFiles::new(self.0.join(number.to_string()), writes_zeros, rng)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
