//! The handlers of a service, as the tower service below all layers. Their futures are kept in
//! places; the memory of a place serves one request after the other.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use dunlin_local::ServiceRequest;
use dunlin_service::{AsyncService, Error};
use tower_service::Service;

use super::inbound::Inbound;

/// The handlers of one service on one thread. As a tower service, they are always ready; a clone is
/// a handle.
#[derive(Clone)]
pub struct Handlers(Rc<Pool>);

/// The future of one handler. Dropping it drops the handler's future, and with it the request.
#[must_use = "a handler that is not awaited does not run"]
pub struct Handling {
    /// `None` only while this is dropped.
    place: Option<Box<dyn FutureSlot>>,
    pool: Rc<Pool>,
}

/// Places for futures.
struct Pool {
    free: RefCell<Vec<Box<dyn FutureSlot>>>,
    make: Box<dyn Fn() -> Box<dyn FutureSlot>>,
}

/// A place for the future of one handler.
trait FutureSlot {
    /// Makes the future of a request.
    fn begin(&mut self, request: ServiceRequest);

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// Drops the future.
    fn clear(&mut self);
}

struct FutureOf<M, F> {
    answer: M,
    future: Pin<Box<Option<F>>>,
}

impl Handlers {
    pub(crate) fn of<S: AsyncService<ServiceRequest>>(service: S) -> Self {
        let service = Rc::new(service);
        let make = move || {
            let service = Rc::clone(&service);
            place(move |request| Rc::clone(&service).answer(request))
        };
        Self(Rc::new(Pool {
            free: RefCell::default(),
            make: Box::new(make),
        }))
    }
}

/// A place for the futures that `answer` makes.
fn place<M, F>(answer: M) -> Box<dyn FutureSlot>
where
    M: Fn(ServiceRequest) -> F + 'static,
    F: Future<Output = Result<(), Error>> + 'static,
{
    Box::new(FutureOf {
        answer,
        future: Box::pin(None),
    })
}

impl<M, F> FutureSlot for FutureOf<M, F>
where
    M: Fn(ServiceRequest) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn begin(&mut self, request: ServiceRequest) {
        self.future.set(Some((self.answer)(request)));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        }
    }

    fn clear(&mut self) {
        self.future.set(None);
    }
}

impl Service<Inbound> for Handlers {
    type Response = ();
    type Error = Error;
    type Future = Handling;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Inbound) -> Handling {
        let pool = Rc::clone(&self.0);
        let free = pool.free.borrow_mut().pop();
        let mut place = free.unwrap_or_else(|| (pool.make)());
        place.begin(request.take());
        Handling {
            place: Some(place),
            pool,
        }
    }
}

impl Future for Handling {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match &mut self.place {
            Some(place) => place.poll(context),
            None => Poll::Pending,
        }
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        if let Some(mut place) = self.place.take() {
            // If the future's drop panics, its place is dropped with it.
            place.clear();
            self.pool.free.borrow_mut().push(place);
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").finish_non_exhaustive()
    }
}

impl fmt::Debug for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handling").finish_non_exhaustive()
    }
}
