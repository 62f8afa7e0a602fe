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

use dunlin_core::{Cx, Refuse, Request, Ticket};
use dunlin_wire::{ErrorCode, ReqType};

use crate::request::Parts;
use crate::served::Served;
use crate::spawn::Handlers;
use crate::state::State;
use crate::task::{HandlerSlot, MAIN, Origin, Spawned, Task, TaskTable};

/// The futures of a `Local`, in their tasks.
#[derive(Default)]
pub(super) struct Executor {
    served: Vec<Served>,
    /// Indices into `served`, by request type.
    by_type: Vec<u32>,
    tasks: TaskTable,
    /// Tasks for spawned futures that are free now.
    vacant: Vec<u32>,
    /// Kept between rounds so that its memory is reused.
    queue: Vec<u32>,
}

/// A poll in progress. Dropping this drops the future, because it has panicked. It has few fields,
/// because all of them stay in registers while the future is polled; `State` knows the task.
struct Polling<'a, 'b> {
    executor: &'a mut Executor,
    state: &'a State,
    cx: &'a mut Cx<'b>,
}

/// The first poll of a request's future. Dropping this drops the future, because it has panicked.
struct FirstPoll<'a, 'b> {
    executor: &'a mut Executor,
    request: &'a Request<'a>,
    state: &'a Rc<State>,
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

    /// Registers the handlers of a type.
    pub(super) fn serve(
        &mut self,
        req_type: ReqType,
        handlers: impl Handlers + 'static,
        state: &State,
    ) {
        let index = self.served.len();
        let served = Served::new(handlers, index, &mut self.tasks, &state.remote);
        self.served.push(served);
        let at = usize::from(req_type.0);
        if self.by_type.len() <= at {
            self.by_type.resize(at + 1, u32::MAX);
        }
        self.by_type[at] = u32::try_from(index).expect("request types are 16 bits");
    }

    /// Makes the future of a request, and polls it. If it is not ready, its task polls it from then
    /// on. A panic propagates to the endpoint, after the future was dropped. While the `Local` is
    /// being dropped, it serves no requests: they end without an answer.
    #[inline]
    pub(super) fn begin(&mut self, request: Request<'_>, state: &Rc<State>, cx: &mut Cx<'_>) {
        // What is rare is another function, so that few registers have to be saved here.
        match Parts::again(state, &request, cx) {
            Some(parts) => self.begin_with(parts, &request, state, cx),
            None => self.begin_anew(request, state, cx),
        }
    }

    /// Like [`Self::begin`], without the memory of another request.
    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self, request: Request<'_>, state: &Rc<State>, cx: &mut Cx<'_>) {
        match Parts::anew(state, &request, cx) {
            Ok(parts) => self.begin_with(parts, &request, state, cx),
            Err(_) => request.refuse(cx, ErrorCode::OVERLOADED),
        }
    }

    #[inline(always)]
    fn begin_with(
        &mut self,
        parts: Box<Parts>,
        request: &Request<'_>,
        state: &Rc<State>,
        cx: &mut Cx<'_>,
    ) {
        let mut first = FirstPoll {
            executor: self,
            request,
            state,
            cx,
        };
        let is_over = first.run(parts);
        // It has not panicked.
        std::mem::forget(first);
        if is_over {
            // Other code may have the request now.
            request.keep_unanswered(cx);
            return;
        }
        self.keep(request, state, cx);
    }

    /// Keeps a request's future, which waits, in its place.
    #[inline(never)]
    fn keep(&mut self, request: &Request<'_>, state: &State, cx: &mut Cx<'_>) {
        let kept = request.keep_unanswered(cx);
        let Some(served) = find(&mut self.served, &self.by_type, request.req_type()) else {
            return;
        };
        let task = served.next_task();
        served.occupy(&mut self.tasks, &state.remote);
        if let Some(ticket) = kept {
            self.tasks.assign(ticket, task);
        }
    }

    /// Drops the future whose first poll has panicked. If other code has the request now, that code
    /// may still answer it.
    #[cold]
    #[inline(never)]
    fn after_first(&mut self, request: &Request<'_>, state: &State, cx: &mut Cx<'_>) {
        state.on_panic();
        if let Some(served) = find(&mut self.served, &self.by_type, request.req_type()) {
            let task = served.next_task();
            let waker = &self.tasks.at(task).waker;
            state.contain(|| state.poll(task, waker, cx, |_| served.remove_next()));
        }
        request.keep_unanswered(cx);
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

    /// Polls a task. `WITHIN`, which is true within an iteration of the endpoint, changes no
    /// behaviour. It only makes two copies of this code, so that the compiler inlines both.
    #[inline(always)]
    fn poll_task<const WITHIN: bool>(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let mut polling = Polling {
            executor: self,
            state,
            cx,
        };
        polling.run::<WITHIN>(task);
        std::mem::forget(polling);
    }

    /// Drops the future of a handler whose client no longer waits, and with it the calls and
    /// requests that the future holds. If the task has a future for a newer request by now, that
    /// future stays.
    pub(super) fn give_up(&mut self, ticket: Ticket, state: &State, cx: &mut Cx<'_>) {
        if let Some(task) = self.tasks.of(ticket) {
            self.remove(task, false, state, cx);
        }
    }

    /// Drops a task's future, if it has one, and frees its place. A future that panics while it is
    /// dropped is gone as well. `has_panicked`: a poll of the future has panicked.
    #[cold]
    #[inline(never)]
    fn remove(&mut self, task: u32, has_panicked: bool, state: &State, cx: &mut Cx<'_>) {
        let Task { waker, place, .. } = self.tasks.at(task);
        let (served, vacant) = (&mut self.served, &mut self.vacant);
        let is_whole = state.contain(|| {
            state.poll(task, waker, cx, |_| match place {
                Origin::Spawned(future) => {
                    if let Some(future) = future.take() {
                        vacant.push(task);
                        drop(future);
                    }
                }
                Origin::Handler(HandlerSlot { served: at, slot }) => {
                    served[*at].remove(*slot, task, has_panicked);
                }
                Origin::Main => {}
            });
        });
        if !is_whole {
            state.on_panic();
        }
    }

    /// Drops the future of a task, which has panicked.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self, state: &State, cx: &mut Cx<'_>) {
        state.on_panic();
        self.remove(state.current.last(), true, state, cx);
        state.calls.end_offer();
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

/// The handlers of a type.
#[inline(always)]
fn find<'a>(
    served: &'a mut [Served],
    by_type: &[u32],
    req_type: ReqType,
) -> Option<&'a mut Served> {
    let index = by_type.get(usize::from(req_type.0))?;
    served.get_mut(*index as usize)
}

impl FirstPoll<'_, '_> {
    /// Makes the future and polls it. Returns whether it is over.
    #[inline(always)]
    fn run(&mut self, parts: Box<Parts>) -> bool {
        let Self {
            executor,
            request,
            state,
            cx,
        } = self;
        let Executor {
            served,
            by_type,
            tasks,
            ..
        } = &mut **executor;
        let Some(served) = find(served, by_type, request.req_type()) else {
            return true;
        };
        let task = served.next_task();
        let Some(Task { waker, .. }) = tasks.find(task) else {
            return true;
        };
        state.poll(task, waker, cx, |context| served.begin(parts, context))
    }
}

impl Drop for FirstPoll<'_, '_> {
    /// Inlined, so that the fields need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        self.executor.after_first(self.request, self.state, self.cx);
    }
}

impl Polling<'_, '_> {
    #[inline(always)]
    fn run<const WITHIN: bool>(&mut self, task: u32) {
        let Self {
            executor,
            state,
            cx,
        } = self;
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
            Origin::Handler(HandlerSlot { served: at, slot }) => {
                served[*at].poll(*slot, task, context);
            }
            Origin::Spawned(None) | Origin::Main => {}
        });
    }
}

impl Drop for Polling<'_, '_> {
    /// Inlined, so that the fields need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        self.executor.after_panic(self.state, self.cx);
    }
}
