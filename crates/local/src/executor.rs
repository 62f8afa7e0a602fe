//! All futures of a `Local`, and how the executor polls one: it lends the endpoint to the future,
//! and notes the number of its task, by which events wake it.
//!
//! A future that panics is dropped at once. Within an iteration, the panic then propagates to the
//! endpoint, which catches it like a panic of a dispatch handler or a continuation. With a second
//! guard here, the compiler would inline no poll.
//!
//! `budget.toml` has the instructions of a call and of a request, in its section `faces`.

use std::rc::Rc;
use std::task::Context;

use dunlin_core::{Cx, Request, Ticket};
use dunlin_wire::ReqType;

use crate::spawn::Handlers;
use crate::state::State;
use crate::task::{MAIN, Origin, Spawned, Task, TaskTable};

/// The futures of a `Local`, in their tasks.
#[derive(Default)]
pub(super) struct Executor {
    served: Vec<Box<dyn Handlers>>,
    /// Indices into `served`, by request type.
    by_type: Vec<u32>,
    tasks: TaskTable,
    /// Tasks for spawned futures that are free now.
    vacant: Vec<u32>,
    /// Kept between rounds so that its memory is reused.
    queue: Vec<u32>,
}

/// A poll in progress. Dropping this drops the future, because it has panicked.
struct Polling<'a, 'b> {
    executor: &'a mut Executor,
    task: u32,
    state: &'a State,
    cx: &'a mut Cx<'b>,
}

impl Executor {
    /// Makes the first task, which is for `block_on`.
    pub(super) fn set_up(&mut self, state: &State) {
        let main = self.tasks.add(Origin::Main, &state.remote);
        debug_assert_eq!(main, MAIN);
    }

    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Registers the handlers of a type, which `make` makes for their index.
    pub(super) fn serve<H: Handlers + 'static>(
        &mut self,
        req_type: ReqType,
        make: impl FnOnce(usize) -> H,
    ) {
        let place = self.served.len();
        self.served.push(Box::new(make(place)));
        let index = usize::from(req_type.0);
        if self.by_type.len() <= index {
            self.by_type.resize(index + 1, u32::MAX);
        }
        self.by_type[index] = u32::try_from(place).expect("request types are 16 bits");
    }

    /// Makes the future of a request, and polls it. While the `Local` is being dropped, it serves
    /// no requests: they end without an answer.
    #[inline]
    pub(super) fn begin(&mut self, request: Request<'_>, state: &Rc<State>, cx: &mut Cx<'_>) {
        let index = self.by_type.get(usize::from(request.req_type().0));
        let served = index.and_then(|index| self.served.get_mut(*index as usize));
        if let Some(handlers) = served {
            handlers.begin(request, &mut self.tasks, state, cx);
        }
    }

    /// Takes a spawned future over, and polls it for the first time.
    pub(super) fn adopt(&mut self, future: Spawned, state: &State, cx: &mut Cx<'_>) {
        let task = match self.vacant.pop() {
            Some(task) => task,
            None => {
                self.vacant.reserve(self.tasks.len() + 1);
                self.tasks.add(Origin::Spawned(None), &state.remote)
            }
        };
        self.tasks.at(task).place = Origin::Spawned(Some(future));
        self.poll_contained(task, state, cx);
    }

    /// Like [`Self::poll`], outside of the endpoint's functions: the panic ends here.
    #[inline(never)]
    fn poll_contained(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        state.contain(|| self.poll_task::<false>(task, state, cx));
    }

    /// Polls the future of a task that is not `MAIN`, if there is one. If the future panics, it is
    /// dropped, with all that it holds, such as a request without an answer; and the panic
    /// propagates.
    #[inline(always)]
    pub(super) fn poll(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        self.poll_task::<true>(task, state, cx);
    }

    /// Polls a task. `WITHIN` (an iteration) changes no behaviour: it makes two copies of this
    /// code, so that the compiler inlines both.
    #[inline(always)]
    fn poll_task<const WITHIN: bool>(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let mut polling = Polling {
            executor: self,
            task,
            state,
            cx,
        };
        polling.run::<WITHIN>();
        std::mem::forget(polling);
    }

    /// Drops the future of a handler whose client no longer waits, and with it the calls and
    /// requests that the future holds. If the task has a future for a newer request by now, that
    /// future stays.
    pub(super) fn give_up(&mut self, ticket: Ticket, state: &State, cx: &mut Cx<'_>) {
        if let Some(task) = self.tasks.of(ticket) {
            self.remove(task, state, cx);
        }
    }

    /// Drops a task's future, if it has one. A future that panics while it is dropped is gone as
    /// well.
    #[cold]
    #[inline(never)]
    fn remove(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let Task { waker, place, .. } = self.tasks.at(task);
        let (served, vacant) = (&mut self.served, &mut self.vacant);
        let mut remove = || match place {
            Origin::Spawned(future) => {
                if let Some(future) = future.take() {
                    vacant.push(task);
                    drop(future);
                }
            }
            Origin::Handler {
                served: index,
                slot,
            } => served[*index].remove(*slot),
            Origin::Main => {}
        };
        if !state.contain(|| state.poll(task, waker, cx, |_| remove())) {
            state.on_panic();
        }
    }

    /// Drops the future of a task, which has panicked.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        state.on_panic();
        self.remove(task, state, cx);
        state.calls.end_offer(cx, |future| state.wake(future));
    }

    /// Polls the tasks that were woken. Returns true if the task of `block_on` is one of them.
    pub(super) fn poll_ready(&mut self, state: &State, cx: &mut Cx<'_>) -> bool {
        let mut queue = std::mem::take(&mut self.queue);
        {
            let mut ready = state.ready.borrow_mut();
            if state.remote.any() {
                state.remote.drain(self.tasks.wakers(), &mut ready);
            }
            ready.take(&mut queue);
        }
        let mut is_main_ready = false;
        for &task in &queue {
            state.ready.borrow_mut().forget(task);
            match task {
                MAIN => is_main_ready = true,
                _ => self.poll_contained(task, state, cx),
            }
        }
        queue.clear();
        self.queue = queue;
        is_main_ready
    }

    /// Polls the future of `block_on`. Its panics go to the caller of `block_on`.
    pub(super) fn poll_main(
        &mut self,
        state: &State,
        cx: &mut Cx<'_>,
        main: impl FnOnce(&mut Context<'_>),
    ) {
        let waker = &self.tasks.at(MAIN).waker;
        state.poll(MAIN, waker, cx, main);
    }
}

impl Polling<'_, '_> {
    #[inline(always)]
    fn run<const WITHIN: bool>(&mut self) {
        let Self {
            executor,
            task,
            state,
            cx,
        } = self;
        let task = *task;
        let Some(Task { waker, place, .. }) = executor.tasks.find(task) else {
            return;
        };
        let (served, vacant) = (&mut executor.served, &mut executor.vacant);
        state.poll(task, waker, cx, |context| match place {
            Origin::Spawned(Some(future)) => {
                if future.as_mut().poll(context).is_ready() {
                    // This comes first, because dropping the future may panic.
                    vacant.push(task);
                    *place = Origin::Spawned(None);
                }
            }
            Origin::Handler {
                served: index,
                slot,
            } => served[*index].poll(*slot, context),
            Origin::Spawned(None) | Origin::Main => {}
        });
    }
}

impl Drop for Polling<'_, '_> {
    /// Inlined, so that the fields need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        self.executor.after_panic(self.task, self.state, self.cx);
    }
}
