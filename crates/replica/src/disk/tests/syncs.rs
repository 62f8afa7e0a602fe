//! A disk whose syncs take long or fail. Writes that come during a sync share the next one, and so
//! do parts of items; no write waits while files are deleted. After a failure, the writing thread
//! ends, and the replica panics when it next polls the disk.

use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_testkit::wait::until;
use raft_engine::env::{FileSystem, Handle, Permission, WriteExt};

use super::*;
use crate::disk::folder::Folder;
use crate::disk::thread::Threaded;
use crate::work::{Disk, Work};

/// Whether syncs fail, and how many have failed; whether they wait, and whether one does; whether
/// they take a millisecond; the number of files that may be deleted, whether a deletion waits, and
/// whether deletions fail; whether writes find no room, and how many have found none.
#[derive(Default)]
struct Syncs {
    wait: AtomicBool,
    waits: AtomicBool,
    fail: AtomicBool,
    failed: AtomicUsize,
    are_slow: AtomicBool,
    deletions: AtomicUsize,
    deletion_waits: AtomicBool,
    deletions_fail: AtomicBool,
    is_full: AtomicBool,
    refused: AtomicUsize,
}

/// More deletions than a test has.
const ANY: usize = usize::MAX / 2;

/// The engine's files, with these syncs.
#[derive(Default)]
struct Failing(Arc<Syncs>);

struct FailingHandle {
    inner: Arc<<Files as FileSystem>::Handle>,
    syncs: Arc<Syncs>,
}

impl Failing {
    fn handle(&self, inner: <Files as FileSystem>::Handle) -> FailingHandle {
        FailingHandle {
            inner: Arc::new(inner),
            syncs: Arc::clone(&self.0),
        }
    }
}

impl Handle for FailingHandle {
    fn truncate(&self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)
    }

    fn file_size(&self) -> io::Result<usize> {
        self.inner.file_size()
    }

    fn sync(&self) -> io::Result<()> {
        if self.syncs.wait.load(Ordering::Relaxed) {
            self.syncs.waits.store(true, Ordering::Relaxed);
            until(|| !self.syncs.wait.load(Ordering::Relaxed));
        }
        if self.syncs.are_slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.syncs.fail.load(Ordering::Relaxed) {
            self.syncs.failed.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::other("the disk fails"));
        }
        self.inner.sync()
    }
}

impl FileSystem for Failing {
    type Handle = FailingHandle;
    type Reader = <Files as FileSystem>::Reader;
    type Writer = FailingWriter;

    fn create<P: AsRef<Path>>(&self, path: P) -> io::Result<FailingHandle> {
        Files.create(path).map(|inner| self.handle(inner))
    }

    fn open<P: AsRef<Path>>(&self, path: P, permission: Permission) -> io::Result<FailingHandle> {
        let opened = Files.open(path, permission);
        opened.map(|inner| self.handle(inner))
    }

    fn delete<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        let syncs = &self.0;
        if syncs.deletions.load(Ordering::Relaxed) == 0 {
            syncs.deletion_waits.store(true, Ordering::Relaxed);
            until(|| syncs.deletions.load(Ordering::Relaxed) > 0);
        }
        syncs.deletions.fetch_sub(1, Ordering::Relaxed);
        if syncs.deletions_fail.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk deletes nothing"));
        }
        Files.delete(path)
    }

    fn rename<P: AsRef<Path>>(&self, from: P, to: P) -> io::Result<()> {
        Files.rename(from, to)
    }

    fn new_reader(&self, handle: Arc<FailingHandle>) -> io::Result<Self::Reader> {
        Files.new_reader(Arc::clone(&handle.inner))
    }

    fn new_writer(&self, handle: Arc<FailingHandle>) -> io::Result<FailingWriter> {
        Ok(FailingWriter {
            inner: Files.new_writer(Arc::clone(&handle.inner))?,
            syncs: Arc::clone(&self.0),
        })
    }
}

struct FailingWriter {
    inner: <Files as FileSystem>::Writer,
    syncs: Arc<Syncs>,
}

impl Write for FailingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.syncs.is_full.load(Ordering::Relaxed) {
            self.syncs.refused.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::new(ErrorKind::StorageFull, "there is no room"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FailingWriter {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl WriteExt for FailingWriter {
    fn truncate(&mut self, offset: usize) -> io::Result<()> {
        self.inner.truncate(offset)
    }

    fn allocate(&mut self, offset: usize, size: usize) -> io::Result<()> {
        self.inner.allocate(offset, size)
    }
}

/// A disk with such syncs, in this directory.
fn start(path: &Path, limits: Limits) -> (Threaded, Arc<Syncs>) {
    let (folder, _) = Folder::open(path, Some(2)).unwrap();
    let files = Failing::default();
    let syncs = Arc::clone(&files.0);
    syncs.deletions.store(ANY, Ordering::Relaxed);
    let opened = Store::open(&path.join("log"), Arc::new(files), limits, (1, 1));
    let disk = Threaded::start(folder, opened.unwrap().0);
    (disk.unwrap(), syncs)
}

#[test]
fn writes_that_come_during_a_sync_share_the_next_one() {
    let scratch = Scratch::new("syncs-shared");
    let (mut disk, syncs) = start(&scratch.join("replica"), Limits::DEFAULT);
    let mut submit = |number: u64| {
        let work = Work::Write(write(number, vec![entry(number + 1, 7)]));
        disk.submit(work, Nanos::ZERO);
    };
    syncs.wait.store(true, Ordering::Relaxed);
    submit(1);
    until(|| syncs.waits.load(Ordering::Relaxed));
    (2..=9).for_each(&mut submit);
    syncs.wait.store(false, Ordering::Relaxed);
    until(|| disk.saved(Nanos::ZERO).number == 9);
    assert_eq!(disk.figures().syncs, 2);
}

#[test]
fn a_sync_that_fails_is_not_repeated_and_ends_the_replica() {
    let scratch = Scratch::new("syncs-fail");
    let (mut disk, syncs) = start(&scratch.join("replica"), Limits::DEFAULT);
    disk.submit(Work::Write(write(1, vec![entry(2, 7)])), Nanos::ZERO);
    until(|| disk.saved(Nanos::ZERO).number == 1);
    let figures = disk.figures();
    assert_eq!(figures.syncs, 1);
    assert!(figures.longest > Nanos::ZERO && figures.time == figures.longest);
    syncs.fail.store(true, Ordering::Relaxed);
    disk.submit(Work::Write(write(2, vec![entry(3, 7)])), Nanos::ZERO);
    // Nothing is acknowledged after the failure.
    let looks = || while disk.saved(Nanos::ZERO).number == 1 {};
    let panic = catch_unwind(AssertUnwindSafe(looks)).unwrap_err();
    let text = panic.downcast_ref::<String>().map_or("?", String::as_str);
    assert!(
        text.contains("the disk of this replica has failed"),
        "{text}"
    );
    assert_eq!(syncs.failed.load(Ordering::Relaxed), 1);
}

fn submit(disk: &mut Threaded, number: u64) {
    let work = Work::Write(write(number, vec![entry(number + 1, 7)]));
    disk.submit(work, Nanos::ZERO);
}

fn checkpoint(disk: &mut Threaded, applied: u64, len: usize) {
    let items = Items {
        applied,
        base: (applied, 7),
        image: vec![9; len],
    };
    disk.submit(Work::Checkpoint(items), Nanos::ZERO);
}

/// Writes until a checkpoint is done, so that a write is queued whenever a sync ends.
#[test]
fn a_checkpoint_is_saved_with_the_writes_of_a_steady_load() {
    const PARTS: u64 = 20;
    let scratch = Scratch::new("syncs-steady");
    let path = scratch.join("replica");
    let (mut disk, syncs) = start(&path, Limits::DEFAULT);
    submit(&mut disk, 1);
    until(|| disk.saved(Nanos::ZERO).number == 1);
    syncs.are_slow.store(true, Ordering::Relaxed);
    let len = Limits::DEFAULT.part_bytes * usize::try_from(PARTS).unwrap();
    checkpoint(&mut disk, 2, len);
    let mut last = 1;
    while disk.saved(Nanos::ZERO).checkpoints == 0 {
        last += 1;
        submit(&mut disk, last);
        std::thread::sleep(Duration::from_micros(50));
        let syncs = disk.figures().syncs;
        assert!(syncs < 10 * PARTS, "{syncs} syncs, and no checkpoint");
    }
    until(|| disk.saved(Nanos::ZERO).number == last);
    drop(disk);
    let (_, remains) =
        Store::open(&path.join("log"), Arc::new(Files), Limits::DEFAULT, (1, 1)).unwrap();
    let remains = remains.unwrap();
    assert_eq!(
        (remains.base, remains.entries.len() as u64),
        ((2, 7), last - 1)
    );
    assert_eq!(remains.items, Some((2, vec![9; len])));
}

#[test]
fn no_write_waits_while_files_are_deleted() {
    let scratch = Scratch::new("syncs-deletions");
    let limits = Limits {
        file_bytes: 2048,
        purge_bytes: 8192,
        part_bytes: 100,
    };
    let (mut disk, syncs) = start(&scratch.join("replica"), limits);
    let mut last = 0;
    let mut write_some = |disk: &mut Threaded| {
        for _ in 0..100 {
            last += 1;
            submit(disk, last);
            until(|| disk.saved(Nanos::ZERO).number == last);
        }
        last
    };
    let waits = || {
        until(|| syncs.deletion_waits.load(Ordering::Relaxed));
        syncs.deletion_waits.store(false, Ordering::Relaxed);
    };
    let applied = write_some(&mut disk) + 1;
    // The question whether there is room ends with a deletion.
    syncs.deletions.store(0, Ordering::Relaxed);
    checkpoint(&mut disk, applied, 1000);
    waits();
    write_some(&mut disk);
    assert_eq!(disk.saved(Nanos::ZERO).checkpoints, 0);
    syncs.deletions.store(1, Ordering::Relaxed);
    // After the checkpoint, the log's first files are not needed.
    until(|| disk.saved(Nanos::ZERO).checkpoints == 1);
    waits();
    write_some(&mut disk);
    syncs.deletions.store(ANY, Ordering::Relaxed);
}

/// A disk whose helper waits in the deletion that ends its question for room.
fn start_asking(scratch: &Scratch) -> (Threaded, Arc<Syncs>) {
    let (mut disk, syncs) = start(&scratch.join("replica"), Limits::DEFAULT);
    submit(&mut disk, 1);
    until(|| disk.saved(Nanos::ZERO).number == 1);
    syncs.deletions.store(0, Ordering::Relaxed);
    checkpoint(&mut disk, 2, 1000);
    until(|| syncs.deletion_waits.load(Ordering::Relaxed));
    (disk, syncs)
}

#[test]
fn room_that_the_question_takes_does_not_count_as_a_full_disk() {
    let scratch = Scratch::new("syncs-asks");
    let (mut disk, syncs) = start_asking(&scratch);
    syncs.is_full.store(true, Ordering::Relaxed);
    for number in 2..=3 {
        let before = syncs.refused.load(Ordering::Relaxed);
        submit(&mut disk, number);
        until(|| syncs.refused.load(Ordering::Relaxed) > before);
    }
    std::thread::sleep(Duration::from_millis(10));
    assert!(!disk.saved(Nanos::ZERO).is_full);
    syncs.is_full.store(false, Ordering::Relaxed);
    syncs.deletions.store(ANY, Ordering::Relaxed);
    until(|| {
        let saved = disk.saved(Nanos::ZERO);
        assert!(!saved.is_full);
        (saved.number, saved.checkpoints) == (3, 1)
    });
}

#[test]
fn a_disk_that_stays_full_after_the_answer_is_reported() {
    let scratch = Scratch::new("syncs-full");
    let (mut disk, syncs) = start_asking(&scratch);
    syncs.is_full.store(true, Ordering::Relaxed);
    submit(&mut disk, 2);
    until(|| syncs.refused.load(Ordering::Relaxed) > 0);
    syncs.deletions.store(ANY, Ordering::Relaxed);
    until(|| disk.saved(Nanos::ZERO).is_full);
    syncs.is_full.store(false, Ordering::Relaxed);
    until(|| disk.saved(Nanos::ZERO).number == 2);
}

#[test]
fn a_chore_that_fails_at_the_end_is_reported_and_repeats_no_sync() {
    let scratch = Scratch::new("syncs-end");
    let (disk, syncs) = start_asking(&scratch);
    syncs.fail.store(true, Ordering::Relaxed);
    syncs.deletions_fail.store(true, Ordering::Relaxed);
    let end = std::thread::spawn(move || drop(disk));
    std::thread::sleep(Duration::from_millis(10));
    syncs.deletions.store(ANY, Ordering::Relaxed);
    let panic = end.join().unwrap_err();
    let text = panic.downcast_ref::<String>().map_or("?", String::as_str);
    assert!(text.contains("the disk deletes nothing"), "{text}");
    assert_eq!(syncs.failed.load(Ordering::Relaxed), 0);
}
