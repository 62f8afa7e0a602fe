//! The thread that writes. While it syncs, its replica goes on: it sends appends, and answers reads
//! and heartbeats. The next sync covers all work that arrives during the current one (group
//! commit).
//!
//! A panic in this thread comes from a failed sync or from the engine. It ends this thread. When
//! the replica next polls its disk, it panics in its own thread, with the same text. No
//! acknowledgement can leave in between, because each waits for a report of this thread.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use dunlin_core::Nanos;
use raft_engine::env::FileSystem;

use super::folder::Folder;
use super::store::Store;
use crate::wire::Roster;
use crate::work::{Disk, DiskFigures, LogWrite, Saved, Work};

/// Time between two attempts to write on a full disk.
const PAUSE: Duration = Duration::from_millis(100);

/// A disk with a thread of its own.
#[derive(Debug)]
pub(super) struct Threaded {
    folder: Folder,
    /// `None` at its end.
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    seen: u64,
}

/// Reports of the thread.
#[derive(Debug, Default)]
struct Shared {
    saved: Mutex<Saved>,
    figures: Mutex<DiskFigures>,
    /// The number of reports so far.
    reports: AtomicU64,
    /// The replica has panicked: the engine must not be closed, because that would sync once more.
    has_failed: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Shared {
    fn report(&self, saved: Saved) {
        *lock(&self.saved) = saved;
        self.reports.fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn count(&self, time: Nanos) {
        let mut figures = lock(&self.figures);
        figures.syncs += 1;
        figures.time += time;
        figures.longest = figures.longest.max(time);
    }

    fn wake(&self) {
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake_by_ref();
        }
    }
}

/// Locks the content, even if a thread has panicked while it held the lock: both contents are
/// written as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the replica when the thread ends, for any reason.
struct Bell(Arc<Shared>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Threaded {
    /// Starts the thread.
    pub(super) fn start<F: FileSystem + 'static>(
        folder: Folder,
        store: Store<F>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (sender, receiver) = channel();
        let bell = Bell(Arc::clone(&shared));
        let thread = Builder::new()
            .name("replica-disk".to_owned())
            .spawn(move || {
                let store = Writer::new(store, receiver, &bell.0).run();
                if !bell.0.has_failed.load(Ordering::Acquire) {
                    drop(ManuallyDrop::into_inner(store));
                }
                drop(bell);
            })?;
        Ok(Self {
            folder,
            work: Some(sender),
            thread: Some(thread),
            shared,
            seen: 0,
        })
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Panics in the replica's thread, because the disk's thread has ended.
    fn fail(&mut self) -> ! {
        let payload = self.thread.take().and_then(|thread| thread.join().err());
        let payload = payload.unwrap_or_else(|| Box::new("it has panicked before"));
        let text = match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(other) => other.downcast::<&str>().map_or_else(
                |_| "an unknown reason".to_owned(),
                |text| (*text).to_owned(),
            ),
        };
        panic!(
            "the disk of this replica has failed, and what it has kept is not known, so the \
             process ends: {text}"
        )
    }
}

impl Disk for Threaded {
    fn take_seat(&mut self, roster: &Roster) -> io::Result<()> {
        // The replica's thread waits for this sync itself. It happens once for each seat, before
        // the seat has made a promise, so it delays no election and no write of the seat.
        self.folder.take_seat(roster)
    }

    fn submit(&mut self, work: Work, _now: Nanos) {
        let sender = self.work.as_ref().expect("work comes before the end");
        // If the thread has ended, the replica panics when it next polls the disk.
        let _ = sender.send(work);
    }

    fn saved(&mut self, _now: Nanos) -> Saved {
        if self.has_ended() {
            self.fail();
        }
        self.seen = self.shared.reports.load(Ordering::Acquire);
        *lock(&self.shared.saved)
    }

    fn has_news(&self, _now: Nanos) -> bool {
        self.shared.reports.load(Ordering::Acquire) != self.seen || self.has_ended()
    }

    fn figures(&self) -> DiskFigures {
        *lock(&self.shared.figures)
    }

    fn wake_with(&mut self, waker: Waker) {
        *lock(&self.shared.waker) = Some(waker);
    }
}

impl Drop for Threaded {
    /// Waits until the work so far is done, unless the disk is full.
    fn drop(&mut self) {
        let panics = std::thread::panicking();
        self.shared.has_failed.store(panics, Ordering::Release);
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its panic has been printed already.
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Writer<'a, F: FileSystem> {
    /// Not dropped after a panic, because its engine would sync a file once more.
    store: ManuallyDrop<Store<F>>,
    work: Receiver<Work>,
    shared: &'a Shared,
    writes: Vec<LogWrite>,
    saved: Saved,
    /// The replica no longer takes reports.
    is_last: bool,
}

impl<'a, F: FileSystem> Writer<'a, F> {
    const fn new(store: Store<F>, work: Receiver<Work>, shared: &'a Shared) -> Self {
        Self {
            store: ManuallyDrop::new(store),
            work,
            shared,
            writes: Vec::new(),
            saved: Saved {
                number: 0,
                checkpoints: 0,
                is_full: false,
            },
            is_last: false,
        }
    }

    /// Runs until there is no more work, and returns the store.
    fn run(mut self) -> ManuallyDrop<Store<F>> {
        while self.collect() {
            let Some(number) = self.writes.last().map(|write| write.number) else {
                self.store.save_part();
                self.on_saved(self.saved.number);
                continue;
            };
            let begin = Instant::now();
            match self.store.save(&self.writes) {
                Ok(()) => {
                    self.shared.count(begin.elapsed().into());
                    self.on_saved(number);
                }
                Err(_) if self.is_last => break,
                Err(_) => self.on_full(),
            }
        }
        self.store
    }

    /// Takes the work that is queued, or waits for some. False: no work is left, and none will
    /// come.
    fn collect(&mut self) -> bool {
        if self.writes.is_empty() && !self.store.is_saving() {
            match self.work.recv() {
                Ok(work) => self.take(work),
                Err(_) => return false,
            }
        }
        loop {
            match self.work.try_recv() {
                Ok(work) => self.take(work),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    // Items only let the log be shorter, so they need not be saved.
                    self.is_last = true;
                    return !self.writes.is_empty();
                }
            }
        }
    }

    fn take(&mut self, work: Work) {
        match work {
            Work::Write(write) => self.writes.push(write),
            Work::Checkpoint(items) => self.store.begin(items),
        }
    }

    fn on_saved(&mut self, number: u64) {
        self.writes.clear();
        self.store.acknowledge();
        self.report(Saved {
            number,
            checkpoints: self.store.checkpoints(),
            is_full: false,
        });
    }

    /// Waits before the next attempt. Deleting unneeded files may make room.
    fn on_full(&mut self) {
        self.store.purge();
        self.report(Saved {
            is_full: true,
            ..self.saved
        });
        std::thread::sleep(PAUSE);
    }

    fn report(&mut self, saved: Saved) {
        if self.saved != saved {
            self.saved = saved;
            self.shared.report(saved);
        }
    }
}
