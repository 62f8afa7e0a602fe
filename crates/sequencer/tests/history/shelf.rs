//! A disk that both hosts share. When a host crashes, its unsynced writes may be lost or torn;
//! before that, the other host may or may not see them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use dunlin_sequencer::Disk;
use dunlin_sim::Rng;

/// The unit in which a disk writes.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
    locked_by: Option<u32>,
}

/// The files.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    files: BTreeMap<u32, File>,
    /// The number of slots that crashes have torn.
    pub(crate) torn: u64,
}

pub(crate) type SharedShelf = Rc<RefCell<Shelf>>;

/// The disk as one process sees it.
#[derive(Debug)]
pub(crate) struct View {
    shelf: SharedShelf,
    process: u32,
    own: Option<u32>,
    rng: Rng,
    /// Whether the process has lost its connection to the disk.
    pub(crate) is_detached: bool,
}

impl Shelf {
    /// Handles the death of a process and its host.
    pub(crate) fn crash(&mut self, process: u32, rng: &mut Rng) {
        for file in self.files.values_mut() {
            if file.locked_by != Some(process) {
                continue;
            }
            file.locked_by = None;
            for (offset, bytes) in std::mem::take(&mut file.unsynced) {
                self.torn += 1;
                for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                    if rng.one_in(2) {
                        let at = offset + at * SECTOR;
                        file.synced[at..at + sector.len()].copy_from_slice(sector);
                    }
                }
            }
        }
    }

    /// The highest epoch that has a file.
    pub(crate) fn newest(&self) -> u32 {
        self.files.keys().next_back().copied().unwrap_or(0)
    }
}

impl File {
    fn flush(&mut self) {
        for (offset, bytes) in self.unsynced.drain(..) {
            self.synced[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

impl View {
    pub(crate) fn new(shelf: &SharedShelf, process: u32, rng: Rng) -> Self {
        Self {
            shelf: Rc::clone(shelf),
            process,
            own: None,
            rng,
            is_detached: false,
        }
    }

    fn with<R>(
        &mut self,
        work: impl FnOnce(&mut Shelf, &mut Rng) -> io::Result<R>,
    ) -> io::Result<R> {
        match self.is_detached {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => work(&mut self.shelf.borrow_mut(), &mut self.rng),
        }
    }

    fn with_own<R>(&mut self, work: impl FnOnce(&mut File) -> R) -> io::Result<R> {
        let own = self.own.unwrap();
        // A file without a name still exists for the process that has it open.
        self.with(|shelf, _| Ok(work(shelf.files.entry(own).or_default())))
    }
}

impl Disk for View {
    fn epochs(&mut self) -> io::Result<Vec<u32>> {
        self.with(|shelf, _| Ok(shelf.files.keys().copied().collect()))
    }

    fn read(&mut self, epoch: u32) -> io::Result<Vec<u8>> {
        self.with(|shelf, rng| {
            let file = shelf.files.get(&epoch).ok_or(io::ErrorKind::NotFound)?;
            let mut bytes = file.synced.clone();
            for (offset, part) in &file.unsynced {
                if rng.one_in(2) {
                    bytes[*offset..offset + part.len()].copy_from_slice(part);
                }
            }
            Ok(bytes)
        })
    }

    fn lock(&mut self, epoch: u32) -> io::Result<bool> {
        let process = self.process;
        self.with(|shelf, _| {
            let file = shelf.files.get_mut(&epoch).ok_or(io::ErrorKind::NotFound)?;
            let is_free = file.locked_by.is_none_or(|other| other == process);
            if is_free {
                file.locked_by = Some(process);
            }
            Ok(is_free)
        })
    }

    fn make(&mut self, epoch: u32, content: &[u8]) -> io::Result<bool> {
        let process = self.process;
        let made = self.with(|shelf, _| {
            if shelf.files.contains_key(&epoch) {
                return Ok(false);
            }
            for file in shelf.files.values_mut() {
                if file.locked_by == Some(process) {
                    file.locked_by = None;
                }
            }
            let file = File {
                synced: content.to_vec(),
                unsynced: Vec::new(),
                locked_by: Some(process),
            };
            shelf.files.insert(epoch, file);
            Ok(true)
        })?;
        if made {
            self.own = Some(epoch);
        }
        Ok(made)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.with_own(|file| {
            file.synced.resize(file.synced.len().max(64 << 10), 0);
            file.unsynced.push((offset, bytes.to_vec()));
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with_own(File::flush)
    }

    fn remove(&mut self, epoch: u32) -> io::Result<()> {
        self.with(|shelf, _| {
            shelf.files.remove(&epoch);
            Ok(())
        })
    }
}
