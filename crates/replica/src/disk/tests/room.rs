//! Disks with little room: a checkpoint that does not fit is abandoned, and writes go on.

use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raft_engine::env::{FileSystem, Permission, WriteExt};

use super::*;
use crate::disk::chores::Chore;

const LIMITS: Limits = Limits {
    file_bytes: 2048,
    purge_bytes: 1 << 20,
    part_bytes: 100,
};

/// The engine's files, on a disk with this number of bytes left.
struct Small {
    left: Arc<AtomicUsize>,
    /// Whether the disk refuses to reserve more bytes than it has.
    tells: bool,
}

struct SmallWriter {
    inner: <Files as FileSystem>::Writer,
    left: Arc<AtomicUsize>,
    tells: bool,
}

impl Small {
    fn with(bytes: usize, tells: bool) -> Arc<Self> {
        Arc::new(Self {
            left: Arc::new(AtomicUsize::new(bytes)),
            tells,
        })
    }
}

fn full() -> io::Error {
    io::Error::new(ErrorKind::StorageFull, "there is no room")
}

impl FileSystem for Small {
    type Handle = <Files as FileSystem>::Handle;
    type Reader = <Files as FileSystem>::Reader;
    type Writer = SmallWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<Self::Handle> {
        if self.tells && self.left.load(Ordering::Relaxed) == 0 {
            return Err(full());
        }
        Files.create(path)
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<Self::Handle> {
        Files.open(path, permission)
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        Files.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        Files.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<Self::Handle>) -> io::Result<Self::Reader> {
        Files.new_reader(handle)
    }

    fn new_writer(&self, handle: Arc<Self::Handle>) -> io::Result<SmallWriter> {
        Ok(SmallWriter {
            inner: Files.new_writer(handle)?,
            left: Arc::clone(&self.left),
            tells: self.tells,
        })
    }
}

impl Write for SmallWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        let rest = left.checked_sub(bytes.len()).ok_or_else(full)?;
        self.left.store(rest, Ordering::Relaxed);
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for SmallWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl WriteExt for SmallWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)
    }

    fn allocate(&mut self, _offset: usize, size: usize) -> io::Result<()> {
        match self.tells && size > self.left.load(Ordering::Relaxed) {
            true => Err(full()),
            false => Ok(()),
        }
    }
}

fn store_on(folder: &Scratch, files: &Arc<Small>) -> (Store<Small>, Option<Remains>) {
    let opened = Store::open(&folder.join("log"), Arc::clone(files), LIMITS, (1, 1));
    opened.unwrap()
}

fn items(applied: u64, byte: u8, len: usize) -> Items {
    Items {
        applied,
        base: (applied, 7),
        image: vec![byte; len],
    }
}

#[test]
fn a_checkpoint_that_does_not_fit_leaves_room_for_writes() {
    let folder = Scratch::new("store-room");
    let files = Small::with(20_000, true);
    let (mut log, _) = store_on(&folder, &files);
    let entries = (2..=20).map(|index| entry(index, 7)).collect();
    log.save(&[write(1, entries)]).unwrap();
    let left = files.left.load(Ordering::Relaxed);
    // These items would fit, but leave no room for a file of the log.
    log.begin(items(20, 1, left - 1000));
    log.do_chores();
    assert!(!log.has_part());
    assert_eq!(log.checkpoints(), 1, "the next one may begin");
    assert_eq!(files.left.load(Ordering::Relaxed), left);
    assert!(!folder.join("log.room").exists());
    log.save(&[write(2, vec![entry(21, 7)])]).unwrap();
    // Fewer items fit.
    log.begin(items(20, 2, 333));
    finish(&mut log);
    drop(log);
    let remains = store_on(&folder, &files).1.unwrap();
    assert_eq!((remains.base, indices(&remains)), ((20, 7), vec![21]));
    assert_eq!(remains.items, Some((20, vec![2; 333])));
}

#[test]
fn a_disk_without_room_for_a_file_has_none_for_items() {
    let folder = Scratch::new("store-no-file");
    let files = Small::with(20_000, true);
    let (mut log, _) = store_on(&folder, &files);
    log.save(&[write(1, vec![entry(2, 7)])]).unwrap();
    files.left.store(0, Ordering::Relaxed);
    log.begin(items(2, 1, 100));
    log.do_chores();
    assert!(!log.has_part() && !log.asks());
    assert_eq!(log.checkpoints(), 1);
}

#[test]
fn at_most_one_purge_is_queued() {
    let folder = Scratch::new("store-purges");
    let (mut log, _) = store_on(&folder, &Small::with(20_000, true));
    for _ in 0..2 {
        log.purge();
        log.purge();
        let chores = log.take_chores();
        assert!(matches!(chores[..], [Chore::Purge]), "{chores:?}");
        for chore in chores {
            log.helper().run(chore);
        }
    }
}

#[test]
fn parts_of_an_abandoned_checkpoint_are_overwritten() {
    for starts_again in [false, true] {
        let folder = Scratch::new("store-parts");
        let files = Small::with(20_000, false);
        let (mut log, _) = store_on(&folder, &files);
        let entries = (2..=20).map(|index| entry(index, 7)).collect();
        log.save(&[write(1, entries)]).unwrap();
        log.begin(items(10, 1, 333));
        finish(&mut log);
        let counted = log.parts();
        // Other programs take the room while the parts are written.
        log.begin(items(15, 2, 3000));
        log.do_chores();
        for _ in 0..5 {
            log.save(&[]).unwrap();
        }
        // There is no room, then room for the write alone, and then for all.
        let next = [write(2, vec![entry(21, 7)])];
        for room in (0..).step_by(10) {
            assert!(log.has_part(), "it goes on when there is room");
            files.left.store(room, Ordering::Relaxed);
            if log.save(&next) == Ok(()) {
                break;
            }
        }
        assert!(!log.has_part() && log.checkpoints() == 2);
        files.left.store(20_000, Ordering::Relaxed);
        if starts_again {
            // The earlier items count until the next ones are complete.
            drop(log);
            let (again, remains) = store_on(&folder, &files);
            assert_eq!(remains.unwrap().items, Some((10, vec![1; 333])));
            log = again;
        }
        log.begin(items(20, 3, 450));
        log.do_chores();
        log.save(&[]).unwrap();
        let left = if starts_again { 5 } else { 0 };
        assert_eq!(log.parts(), counted + left + 1);
        finish(&mut log);
        drop(log);
        let remains = store_on(&folder, &files).1.unwrap();
        assert_eq!((remains.base, indices(&remains)), ((20, 7), vec![21]));
        assert_eq!(remains.items, Some((20, vec![3; 450])));
    }
}

/// A leader's items that do not fit are tried again, and each attempt overwrites the previous one.
#[test]
fn items_of_a_leader_are_tried_again_in_the_same_place() {
    let folder = Scratch::new("store-restore");
    let files = Small::with(20_000, false);
    let (mut log, _) = store_on(&folder, &files);
    log.save(&[write(1, vec![entry(2, 6)])]).unwrap();
    let restore = LogWrite {
        items: Some(items(15, 9, 4000)),
        ..write(2, Vec::new())
    };
    for _ in 0..20 {
        files.left.store(3000, Ordering::Relaxed);
        assert_eq!(log.save(std::slice::from_ref(&restore)), Err(Full));
        assert!((2..5).contains(&log.parts()), "{} parts", log.parts());
    }
    files.left.store(20_000, Ordering::Relaxed);
    log.save(&[restore]).unwrap();
    drop(log);
    let remains = store_on(&folder, &files).1.unwrap();
    assert_eq!((remains.base, indices(&remains)), ((15, 7), Vec::new()));
    assert_eq!(remains.items, Some((15, vec![9; 4000])));
}
