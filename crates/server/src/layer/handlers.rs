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
    going: Option<Going>,
}

/// A future that goes on, in its place.
type Going = Pin<Box<dyn Held>>;

/// Makes the futures of handlers.
trait Answers {
    /// Makes the future of a request, and polls it for the first time.
    fn begin(&self, request: ServiceRequest, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// The place of the future that [`Self::begin`] has just made, and that goes on.
    fn take_going(&self) -> Option<Going>;
}

/// A future that goes on after its first poll, in its place.
trait Held {
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// Drops the future, and gives the place back to its pool.
    fn leave(self: Pin<Box<Self>>);
}

struct AnswersOf<S, M, F> {
    service: Rc<S>,
    answer: M,
    places: Rc<FreePlaces<F>>,
}

/// The places without a future.
struct FreePlaces<F> {
    /// The place that became free last. Most requests are over before the next one comes, so they
    /// do without the list.
    last: Cell<Option<Pin<Box<PlaceOf<F>>>>>,
    others: RefCell<Vec<Pin<Box<PlaceOf<F>>>>>,
    /// The place of a future that goes on, until its [`Handling`] has it.
    going: Cell<Option<Pin<Box<PlaceOf<F>>>>>,
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
        Self::by(service, S::answer)
    }

    /// Handlers whose futures `answer` makes.
    fn by<S, M, F>(service: S, answer: M) -> Self
    where
        S: 'static,
        M: Fn(Rc<S>, ServiceRequest) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        Self(Rc::new(Pool(Box::new(AnswersOf {
            service: Rc::new(service),
            answer,
            places: Rc::default(),
        }))))
    }
}

impl<F> Default for FreePlaces<F> {
    fn default() -> Self {
        Self {
            last: Cell::default(),
            others: RefCell::default(),
            going: Cell::default(),
        }
    }
}

impl<F> FreePlaces<F> {
    /// Finds or makes a place, which becomes the last one.
    #[cold]
    #[inline(never)]
    fn add(self: &Rc<Self>) {
        let other = self.others.borrow_mut().pop();
        let place = other.unwrap_or_else(|| {
            Box::pin(PlaceOf {
                future: None,
                places: Rc::downgrade(self),
            })
        });
        self.keep(place);
    }

    #[inline]
    fn keep(&self, place: Pin<Box<PlaceOf<F>>>) {
        if let Some(before) = self.last.replace(Some(place)) {
            cold_path();
            self.others.borrow_mut().push(before);
        }
    }
}

impl<S, M, F> Answers for AnswersOf<S, M, F>
where
    M: Fn(Rc<S>, ServiceRequest) -> F,
    F: Future<Output = Result<(), Error>> + 'static,
{
    /// After a call of a rare function, no code here needs an earlier value, so that the compiler
    /// saves few registers.
    fn begin(&self, request: ServiceRequest, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(mut place) = self.places.last.take() else {
            return self.begin_in_another(request, context);
        };
        let service = Rc::clone(&self.service);
        let mut future = place.as_mut().project().future;
        // With this check, the compiler knows that there is no old future to drop.
        if future.is_some() {
            refuse_place((place, service, request));
        }
        future.set(Some((self.answer)(service, request)));
        // If this panics, the place is dropped with its future.
        let polled = match future.as_mut().as_pin_mut() {
            Some(future) => future.poll(context),
            None => Poll::Pending,
        };
        if polled.is_pending() {
            cold_path();
            self.places.going.set(Some(place));
            return Poll::Pending;
        }
        future.set(None);
        self.places.keep(place);
        polled
    }

    fn take_going(&self) -> Option<Going> {
        Some(self.places.going.take()?)
    }
}

impl<S, M, F> AnswersOf<S, M, F>
where
    M: Fn(Rc<S>, ServiceRequest) -> F,
    F: Future<Output = Result<(), Error>> + 'static,
{
    /// Like [`Answers::begin`], if the last place is not free.
    #[cold]
    #[inline(never)]
    fn begin_in_another(
        &self,
        request: ServiceRequest,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        self.places.add();
        self.begin(request, context)
    }
}

/// Panics, after it has dropped what its caller would otherwise have to keep.
#[cold]
#[inline(never)]
fn refuse_place<T>(parts: T) -> ! {
    drop(parts);
    panic!("a free place has a future");
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

impl Drop for Handling {
    #[inline]
    fn drop(&mut self) {
        if self.new.is_some() || self.going.is_some() {
            leave(self.new.take(), self.going.take());
        }
    }
}

/// Drops a future that is not over. A function of its own, because most are over.
#[cold]
#[inline(never)]
fn leave(new: Option<(Rc<Pool>, Unread)>, going: Option<Going>) {
    drop(new);
    if let Some(place) = going {
        place.leave();
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
            going: None,
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
            let polled = pool.0.begin(request, context);
            if polled.is_pending() {
                cold_path();
                *going = pool.0.take_going();
            }
            return polled;
        }
        match going {
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
