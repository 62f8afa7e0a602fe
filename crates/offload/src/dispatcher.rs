//! The task that takes requests from the mailbox and spawns the futures of their handlers. It runs
//! on the executor and ends when the endpoint is gone.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use dunlin_mailbox::{Lease, News, Slot};
use dunlin_service::SendService;

use crate::desk::{Desk, Owner};
use crate::handler;
use crate::request::OffloadedRequest;
use crate::spawn::Spawn;

struct Dispatcher<S, E> {
    owner: Arc<Owner>,
    service: Arc<S>,
    spawn: Arc<E>,
    /// The lease of each slot's last call, by the slot's index.
    leases: Vec<Arc<Lease>>,
}

/// Dispatches the requests of a desk until its endpoint is gone.
pub(crate) fn dispatch<S, E>(
    desk: &Arc<Desk>,
    service: S,
    spawn: Arc<E>,
) -> impl Future<Output = ()> + Send + use<S, E>
where
    S: SendService<OffloadedRequest>,
    E: Spawn,
{
    let mut dispatcher = Dispatcher {
        owner: Owner::new(desk),
        service: Arc::new(service),
        spawn,
        leases: Vec::new(),
    };
    poll_fn(move |context| dispatcher.poll(context))
}

impl<S: SendService<OffloadedRequest>, E: Spawn> Dispatcher<S, E> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        // The waker is registered before the list is read, so a request that comes in between
        // wakes this task again.
        let is_over = self.owner.listen(context.waker());
        let owner = Arc::clone(&self.owner);
        owner.desk().mailbox().take(|news| match news {
            News::Posted(slot) => self.begin(slot),
            News::Dropped(slot) => self.give_up(slot),
        });
        match is_over {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Spawns the handler of a request.
    fn begin(&mut self, slot: Slot) {
        let lease = self.new_lease(slot);
        let owner = Arc::clone(&self.owner);
        let arrived = owner.desk().mailbox().with(slot, |it| it.take_request());
        let arrived = arrived.expect("a posted slot has a request");
        let span = arrived.span.clone();
        let request = OffloadedRequest::new(owner, slot, Arc::clone(&lease), arrived);
        let handler = handler::run(Arc::clone(&self.service), request, lease);
        // A panic of the executor must not unwind through `take`, which would free slots that
        // handlers still use. The panic drops the request, which is thereby refused.
        let _ = catch_unwind(AssertUnwindSafe(|| self.spawn.spawn(span.around(handler))));
    }

    /// A lease for a call, in the memory of the slot's last lease if no handler still uses that.
    fn new_lease(&mut self, slot: Slot) -> Arc<Lease> {
        let index = slot.index();
        if self.leases.len() <= index {
            self.leases.resize_with(index + 1, left);
        }
        let place = &mut self.leases[index];
        match Arc::get_mut(place) {
            Some(lease) => *lease = Lease::default(),
            None => *place = Arc::default(),
        }
        Arc::clone(place)
    }
}

impl<S, E> Dispatcher<S, E> {
    /// Handles a request whose client no longer waits. If the request was dropped before this task
    /// took it, the lease belongs to an earlier call, whose handler has left or is about to leave.
    /// In both cases, the slot is freed by the handler or by the dispatcher, whichever is done with
    /// it last.
    fn give_up(&self, slot: Slot) {
        let lease = self.leases.get(slot.index());
        if lease.is_none_or(|lease| lease.give_up()) {
            self.owner.desk().release(slot);
        }
    }
}

/// The lease of a slot that has had no call: it looks as if a handler had left.
fn left() -> Arc<Lease> {
    let lease = Lease::default();
    lease.leave();
    Arc::new(lease)
}

impl<S, E> Drop for Dispatcher<S, E> {
    /// Refuses requests from here on: the executor has dropped this task, or the endpoint is gone.
    fn drop(&mut self) {
        // The slots of these requests have no end, so the endpoint refuses them.
        self.owner.on_stopped();
        let owner = Arc::clone(&self.owner);
        let mailbox = owner.desk().mailbox();
        mailbox.take(|news| match news {
            News::Posted(slot) => drop(mailbox.end(slot)),
            News::Dropped(slot) => self.give_up(slot),
        });
    }
}
