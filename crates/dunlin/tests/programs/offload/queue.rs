//! An executor that runs only when the test calls it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use dunlin::Spawn;

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Clone, Default)]
pub(crate) struct Queue(Arc<Inner>);

#[derive(Default)]
struct Inner {
    tasks: Mutex<Vec<Task>>,
    is_down: AtomicBool,
    panics: AtomicBool,
    wakes: Arc<AtomicUsize>,
}

struct Task {
    future: Boxed,
    woken: Arc<Woken>,
}

/// Whether a task was woken, and the number of wake-ups of all tasks.
struct Woken(AtomicBool, Arc<AtomicUsize>);

impl Queue {
    /// Polls tasks until none is woken.
    pub(crate) fn run(&self) {
        while self.turn() {}
    }

    /// Polls the tasks that are woken now, the oldest first, but not tasks that they spawn. Returns
    /// true if there were any.
    pub(crate) fn turn(&self) -> bool {
        let tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap());
        let (mut left, mut any) = (Vec::new(), false);
        for mut task in tasks {
            let is_woken = task.woken.0.swap(false, Ordering::SeqCst);
            any |= is_woken;
            let waker = Waker::from(Arc::clone(&task.woken));
            let context = &mut Context::from_waker(&waker);
            if !is_woken || task.future.as_mut().poll(context).is_pending() {
                left.push(task);
            }
        }
        let mut tasks = self.0.tasks.lock().unwrap();
        left.append(&mut tasks);
        *tasks = left;
        any
    }

    /// The number of tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        self.0.tasks.lock().unwrap().len()
    }

    /// The number of wake-ups of all tasks.
    pub(crate) fn wakes(&self) -> usize {
        self.0.wakes.load(Ordering::SeqCst)
    }

    /// Drops every new task from now on.
    pub(crate) fn refuse(&self) {
        self.0.is_down.store(true, Ordering::SeqCst);
    }

    /// Panics when the next task is spawned.
    pub(crate) fn panic_once(&self) {
        self.0.panics.store(true, Ordering::SeqCst);
    }

    /// Drops all tasks, and every new one from now on.
    pub(crate) fn shut_down(&self) {
        self.refuse();
        let tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap());
        drop(tasks);
    }
}

impl Spawn for Queue {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if self.0.is_down.load(Ordering::SeqCst) {
            return;
        }
        assert!(
            !self.0.panics.swap(false, Ordering::SeqCst),
            "as the test asks"
        );
        let wakes = Arc::clone(&self.0.wakes);
        self.0.tasks.lock().unwrap().push(Task {
            future: Box::pin(future),
            woken: Arc::new(Woken(AtomicBool::new(true), wakes)),
        });
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.store(true, Ordering::SeqCst);
    }
}
