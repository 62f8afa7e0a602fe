//! The handlers of a service, as the tower service below all layers. Their futures are kept in
//! places; the memory of a place serves one request after the other.
//!
//! The first poll of a [`Handling`] makes the handler's future in a place, polls it, and frees the
//! place if the future is over, as most are: one virtual call does all this. Only a future that
//! goes on keeps its place.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint::cold_path;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use dunlin_local::ServiceRequest;
use dunlin_service::{AsyncService, Error};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::inbound::{Inbound, Unread};

/// The handlers of one service on one thread. As a tower service, they are always ready; a clone is
/// a handle.
#[derive(Clone)]
pub struct Handlers(Rc<Pool>);

/// The handlers of a service, and places for their futures. Its handle is one word.
struct Pool(Box<dyn Answers>);

/// The future of one handler, which begins with the first poll. Dropping it drops the handler's
/// future, and with it the request; before the first poll, that refuses the request.
#[must_use = "a handler that is not awaited does not run"]
pub struct Handling {
    /// Present until the first poll.
    new: Option<(Rc<Pool>, Unread)>,
    /// Present after the first poll, if the future goes on.
    going: Going,
}

/// Makes the futures of handlers.
trait Answers {
    /// Makes the future of a request, and polls it for the first time. If it goes on, `going` gets
    /// its place.
    fn begin(
        &self,
        request: ServiceRequest,
        going: &mut Going,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>>;
}

/// A future that goes on after its first poll, in its place.
trait Held {
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// Drops the future, and gives the place back to its pool.
    fn leave(self: Pin<Box<Self>>);
}

/// The place of a future. Dropping this drops the future.
struct Going(Option<Pin<Box<dyn Held>>>);

struct AnswersOf<M, F> {
    answer: M,
    places: Rc<FreePlaces<F>>,
}

/// The places without a future.
struct FreePlaces<F> {
    /// The place that became free last. Most requests are over before the next one comes, so they
    /// do without the list.
    last: Cell<Option<Pin<Box<PlaceOf<F>>>>>,
    others: RefCell<Vec<Pin<Box<PlaceOf<F>>>>>,
}

pin_project! {
    struct PlaceOf<F> {
        #[pin]
        future: Option<F>,
        places: Weak<FreePlaces<F>>,
    }
}

impl Handlers {
    pub(crate) fn of<S: AsyncService<ServiceRequest>>(service: S) -> Self {
        let service = Rc::new(service);
        Self::by(move |request| Rc::clone(&service).answer(request))
    }

    /// Handlers whose futures `answer` makes.
    fn by<M, F>(answer: M) -> Self
    where
        M: Fn(ServiceRequest) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let places = Rc::default();
        Self(Rc::new(Pool(Box::new(AnswersOf { answer, places }))))
    }
}

impl<F> Default for FreePlaces<F> {
    fn default() -> Self {
        Self {
            last: Cell::default(),
            others: RefCell::default(),
        }
    }
}

impl<F> FreePlaces<F> {
    #[inline]
    fn take(self: &Rc<Self>) -> Pin<Box<PlaceOf<F>>> {
        match self.last.take() {
            Some(place) => place,
            None => self.take_other(),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_other(self: &Rc<Self>) -> Pin<Box<PlaceOf<F>>> {
        let other = self.others.borrow_mut().pop();
        other.unwrap_or_else(|| {
            Box::pin(PlaceOf {
                future: None,
                places: Rc::downgrade(self),
            })
        })
    }

    #[inline]
    fn keep(&self, place: Pin<Box<PlaceOf<F>>>) {
        if let Some(before) = self.last.replace(Some(place)) {
            cold_path();
            self.others.borrow_mut().push(before);
        }
    }
}

impl<M, F> Answers for AnswersOf<M, F>
where
    M: Fn(ServiceRequest) -> F,
    F: Future<Output = Result<(), Error>> + 'static,
{
    fn begin(
        &self,
        request: ServiceRequest,
        going: &mut Going,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let mut place = self.places.take();
        let mut future = place.as_mut().project().future;
        future.set(Some((self.answer)(request)));
        // If this panics, the place is dropped with its future.
        let polled = match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        };
        if polled.is_pending() {
            cold_path();
            going.0 = Some(place);
            return Poll::Pending;
        }
        future.set(None);
        self.places.keep(place);
        polled
    }
}

impl<F: Future<Output = Result<(), Error>>> Held for PlaceOf<F> {
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.project().future.as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        }
    }

    fn leave(mut self: Pin<Box<Self>>) {
        let mut place = self.as_mut().project();
        // If the future's drop panics, its place is dropped with it.
        place.future.set(None);
        if let Some(places) = place.places.upgrade() {
            places.keep(self);
        }
    }
}

impl Drop for Going {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            cold_path();
            place.leave();
        }
    }
}

impl Service<Inbound> for Handlers {
    type Response = ();
    type Error = Error;
    type Future = Handling;

    #[inline]
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Inbound) -> Handling {
        Handling {
            new: Some((Rc::clone(&self.0), request.into_unread())),
            going: Going(None),
        }
    }
}

impl Future for Handling {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Self { new, going } = self.get_mut();
        if let Some((pool, mut request)) = new.take()
            && let Some(request) = request.take()
        {
            return pool.0.begin(request, going, context);
        }
        match &mut going.0 {
            Some(place) => place.as_mut().poll(context),
            None => Poll::Pending,
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
