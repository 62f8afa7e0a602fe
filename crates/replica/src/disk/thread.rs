//! The thread that writes. While it syncs, its replica goes on: it sends appends, answers reads and
//! heartbeats. All work that has come in during a sync is the next one's (group commit).
//!
//! A panic in this thread comes from a sync that has failed, or from the engine. It ends the
//! thread, and the next look of the replica at its disk panics in turn, in the thread that runs the
//! replica, with the text of the first. No acknowledgement can leave in between, because each waits
//! for a report of this thread.

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

/// Time between two tries of a write on a full disk.
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
    /// Reports so far.
    reports: AtomicU64,
    /// The replica has panicked: the engine is not closed, because that would sync once more.
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

/// The content, also if a thread has panicked with it: both contents are written as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the replica when the thread ends, however it ends.
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

    /// Ends the thread of the replica, because that of the disk has ended.
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
        // The replica's thread waits for this sync itself: it comes once for each seat, before the
        // seat has made a promise, so no election and no write of the seat is held up.
        self.folder.take_seat(roster)
    }

    fn submit(&mut self, work: Work, _now: Nanos) {
        let sender = self.work.as_ref().expect("work comes before the end");
        // If the thread has ended, the next look at the progress fails.
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
            // A panic of the thread has been printed by then.
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Writer<'a, F: FileSystem> {
    /// After a panic it is not dropped, because its engine would sync a file once more.
    store: ManuallyDrop<Store<F>>,
    work: Receiver<Work>,
    shared: &'a Shared,
    writes: Vec<LogWrite>,
    saved: Saved,
    /// The replica takes no reports any more.
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

    /// Works until there is no more work, and returns the store.
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

    /// Takes the work that waits, or waits for some. False: there is no more.
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
                    // Items let the log be shorter, and need not be saved.
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

    /// Waits before the next try. Files that nothing needs any more may make room.
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
