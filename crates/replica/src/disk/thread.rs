//! The thread that writes. While it syncs, its replica goes on: it sends appends, and answers reads
//! and heartbeats. The next sync covers all work that arrives during the current one (group
//! commit). A second thread does the chores, for which no write waits.
//!
//! A panic in these threads comes from a failed sync or from the engine. It ends its thread. When
//! the replica next polls its disk, it panics in its own thread, with the same text. No
//! acknowledgement can leave in between, because each waits for a poll.

use std::any::Any;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use dunlin_core::Nanos;
use raft_engine::env::FileSystem;

use super::chores::{Answer, Chore, Helper};
use super::folder::Folder;
use super::store::{Full, Store};
use crate::wire::Roster;
use crate::work::{Disk, DiskFigures, LogWrite, Saved, Work};

/// Time between two attempts to write on a full disk.
const PAUSE: Duration = Duration::from_millis(100);

/// The most pauses that a write waits until the other thread has found out whether there is room.
const PAUSES: u32 = 10;

/// A message to the thread that writes.
enum Order {
    Work(Work),
    /// The other thread has found out whether there is room for items.
    Answer(Answer),
    /// No work will follow.
    End,
}

/// A disk with threads of its own.
#[derive(Debug)]
pub(super) struct Threaded {
    folder: Folder,
    orders: Sender<Order>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
    seen: u64,
    /// The reason why the disk has failed.
    failure: Option<String>,
}

/// Reports of the thread that writes.
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

/// Wakes the replica when a thread ends, for any reason.
struct Bell(Arc<Shared>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Threaded {
    /// Starts the threads.
    pub(super) fn start<F: FileSystem + 'static>(
        folder: Folder,
        store: Store<F>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (orders, received) = channel();
        let (chores, asked) = channel();
        let mut disk = Self {
            folder,
            orders: orders.clone(),
            threads: Vec::new(),
            shared,
            seen: 0,
            failure: None,
        };
        // Not dropped after a panic: the helper may be the last owner of the engine, which would
        // sync once more.
        let helper = ManuallyDrop::new(store.helper());
        disk.spawn("replica-chores", move |_| {
            do_chores(&helper, &asked, &orders);
            drop(ManuallyDrop::into_inner(helper));
        })?;
        disk.spawn("replica-disk", move |shared| {
            let store = Writer::new(store, received, chores, shared).run();
            if !shared.has_failed.load(Ordering::Acquire) {
                drop(ManuallyDrop::into_inner(store));
            }
        })?;
        Ok(disk)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let bell = Bell(Arc::clone(&self.shared));
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            run(&bell.0);
            drop(bell);
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Whether a thread has ended; both end together unless one has panicked.
    fn has_ended(&self) -> bool {
        self.threads.len() < 2 || self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Panics in the replica's thread, because a thread of the disk has ended.
    fn fail(&mut self) -> ! {
        self.shared.has_failed.store(true, Ordering::Release);
        let (ended, rest): (Vec<_>, Vec<_>) =
            self.threads.drain(..).partition(JoinHandle::is_finished);
        self.threads = rest;
        self.join(ended);
        if self.failure.is_none() {
            // The thread that has ended did not panic: it ended because the other one is panicking.
            let rest = std::mem::take(&mut self.threads);
            self.join(rest);
        }
        self.report()
    }

    /// Waits for the end of threads, and keeps the text of the first panic.
    fn join(&mut self, threads: Vec<JoinHandle<()>>) {
        for thread in threads {
            if let Err(payload) = thread.join() {
                self.failure.get_or_insert_with(|| text_of(payload));
            }
        }
    }

    fn report(&self) -> ! {
        let text = self.failure.as_deref().unwrap_or("an unknown reason");
        panic!(
            "the disk of this replica has failed, and what it has kept is not known, so the \
             process ends: {text}"
        )
    }
}

/// The text of a panic.
fn text_of(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other.downcast::<&str>().map_or_else(
            |_| "an unknown reason".to_owned(),
            |text| (*text).to_owned(),
        ),
    }
}

/// Does chores until no more can come.
fn do_chores<F: FileSystem>(helper: &Helper<F>, asked: &Receiver<Chore>, orders: &Sender<Order>) {
    for chore in asked {
        if let Some(answer) = helper.run(chore) {
            // Without a receiver, no more chores come.
            let _ = orders.send(Order::Answer(answer));
        }
    }
}

impl Disk for Threaded {
    fn take_seat(&mut self, roster: &Roster) -> io::Result<()> {
        // The replica's thread waits for this sync itself. It happens once, when the replica joins
        // a cluster, before it has voted or acknowledged anything, so it delays no election and no
        // write.
        self.folder.take_seat(roster)
    }

    fn submit(&mut self, work: Work, _now: Nanos) {
        // If the thread has ended, the replica panics when it next polls the disk.
        let _ = self.orders.send(Order::Work(work));
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
    /// Waits until the work so far is done, unless the disk is full. Panics if a thread of the disk
    /// panics meanwhile, unless the thread that drops this is panicking already.
    fn drop(&mut self) {
        let has_failed = std::thread::panicking() || self.failure.is_some();
        self.shared.has_failed.store(has_failed, Ordering::Release);
        let _ = self.orders.send(Order::End);
        // The thread that writes ends first, and the other one then has no more chores.
        let threads = self.threads.drain(..).rev().collect();
        self.join(threads);
        if !has_failed && self.failure.is_some() {
            self.report();
        }
    }
}

/// The side of the thread that writes.
struct Writer<'a, F: FileSystem> {
    /// Not dropped after a panic, because its engine would sync a file once more.
    store: ManuallyDrop<Store<F>>,
    orders: Receiver<Order>,
    chores: Sender<Chore>,
    shared: &'a Shared,
    writes: Vec<LogWrite>,
    saved: Saved,
    /// The next attempt waits for an answer or for the end of a pause: the other thread finds out
    /// whether there is room for items, and while it does, it may itself take the room of a write.
    waits: bool,
    /// The number of such pauses that have passed without an answer.
    pauses: u32,
    /// The replica no longer takes reports.
    is_last: bool,
}

impl<'a, F: FileSystem> Writer<'a, F> {
    const fn new(
        store: Store<F>,
        orders: Receiver<Order>,
        chores: Sender<Chore>,
        shared: &'a Shared,
    ) -> Self {
        Self {
            store: ManuallyDrop::new(store),
            orders,
            chores,
            shared,
            writes: Vec::new(),
            saved: Saved {
                number: 0,
                checkpoints: 0,
                is_full: false,
            },
            waits: false,
            pauses: 0,
            is_last: false,
        }
    }

    /// Runs until there is no more work, and returns the store.
    fn run(mut self) -> ManuallyDrop<Store<F>> {
        while self.collect() {
            let begin = Instant::now();
            let mut is_full = false;
            match self.store.save(&self.writes) {
                Ok(()) => self.on_saved(begin.elapsed().into()),
                Err(Full) if self.may_wait() => self.waits = true,
                Err(Full) if self.is_last => break,
                Err(Full) => is_full = true,
            }
            if is_full {
                self.on_full();
            }
            for chore in self.store.take_chores() {
                // If the other thread has ended, the replica panics when it next polls the disk.
                let _ = self.chores.send(chore);
            }
            if is_full {
                std::thread::sleep(PAUSE);
            }
        }
        self.store
    }

    /// Takes the orders that are queued, or waits for some. False: nothing is left to save.
    fn collect(&mut self) -> bool {
        let is_idle = self.writes.is_empty() && !self.store.has_part();
        if std::mem::take(&mut self.waits) {
            match self.orders.recv_timeout(PAUSE) {
                Ok(order) => self.take(order),
                Err(RecvTimeoutError::Timeout) => self.pauses += 1,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        } else if is_idle && !self.is_last {
            match self.orders.recv() {
                Ok(order) => self.take(order),
                Err(_) => return false,
            }
        }
        while let Ok(order) = self.orders.try_recv() {
            self.take(order);
        }
        // At the end, items need not be saved, because they only let the log be shorter.
        !self.is_last || !self.writes.is_empty()
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Work(Work::Write(write)) => self.writes.push(write),
            Order::Work(Work::Checkpoint(items)) => self.store.begin(items),
            Order::Answer(answer) => {
                self.pauses = 0;
                self.store.on_answer(answer);
            }
            Order::End => self.is_last = true,
        }
    }

    /// Whether a write that found no room may wait until the other thread has found out whether
    /// there is room. It waits at most [`PAUSES`] pauses, because that thread may do a purge first,
    /// or may have ended.
    fn may_wait(&self) -> bool {
        self.store.asks() && self.pauses < PAUSES
    }

    fn on_saved(&mut self, time: Nanos) {
        self.pauses = 0;
        let mut number = self.saved.number;
        if let Some(last) = self.writes.last() {
            number = last.number;
            self.shared.count(time);
        }
        self.store.acknowledge();
        self.report(Saved {
            number,
            checkpoints: self.store.checkpoints(),
            is_full: false,
        });
        for items in self.writes.drain(..).filter_map(|write| write.items) {
            self.store.discard(items.image);
        }
    }

    /// Reports that the disk is full. Deleting unneeded files may make room.
    fn on_full(&mut self) {
        self.store.purge();
        self.report(Saved {
            is_full: true,
            ..self.saved
        });
    }

    fn report(&mut self, saved: Saved) {
        if self.saved != saved {
            self.saved = saved;
            self.shared.report(saved);
        }
    }
}
