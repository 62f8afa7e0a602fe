//! Sessions that futures ask for. A future is polled in the middle of an iteration, when no session
//! can be made, so it leaves a wish, and the `Local` grants all wishes after the iteration.
//!
//! Invariant: a session that was made for a future that has been dropped is ended.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use dunlin_core::Session;
use dunlin_nexus::{ConnectError, ConnectOptions};

use crate::wake::{Current, WakeBy};

/// All wishes that are not granted yet.
#[derive(Default)]
pub(super) struct Wishes(RefCell<Vec<Rc<Wish>>>);

/// A session that a future waits for.
pub(super) struct Wish {
    to: Vec<SocketAddr>,
    options: ConnectOptions,
    stage: RefCell<Stage>,
}

enum Stage {
    Waiting(WakeBy),
    Granted(Result<Session, ConnectError>),
    /// The future has taken the result, or has been dropped.
    Over,
}

impl Wishes {
    /// Asks for a session with the server at one of these addresses.
    pub(super) fn add(&self, to: Vec<SocketAddr>, options: ConnectOptions) -> Rc<Wish> {
        let wish = Rc::new(Wish {
            to,
            options,
            stage: RefCell::new(Stage::Waiting(WakeBy::None)),
        });
        self.0.borrow_mut().push(Rc::clone(&wish));
        wish
    }

    pub(super) fn take(&self) -> Vec<Rc<Wish>> {
        self.0.take()
    }
}

impl Wish {
    /// Begins the session by `connect`, unless the future has been dropped. Returns the future to
    /// wake.
    pub(super) fn grant(
        &self,
        connect: impl FnOnce(&[SocketAddr], &ConnectOptions) -> Result<Session, ConnectError>,
    ) -> WakeBy {
        if matches!(*self.stage.borrow(), Stage::Over) {
            return WakeBy::None;
        }
        let granted = Stage::Granted(connect(&self.to, &self.options));
        match self.stage.replace(granted) {
            Stage::Waiting(future) => future,
            Stage::Granted(_) | Stage::Over => WakeBy::None,
        }
    }

    /// The session, once it has begun to open.
    pub(super) fn poll(
        &self,
        current: &Current,
        context: &Context<'_>,
    ) -> Poll<Result<Session, ConnectError>> {
        let mut stage = self.stage.borrow_mut();
        if let Stage::Waiting(future) = &mut *stage {
            future.note(current, context);
            return Poll::Pending;
        }
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Granted(result) => Poll::Ready(result),
            Stage::Waiting(_) | Stage::Over => Poll::Ready(Err(ConnectError::Closed)),
        }
    }

    /// Gives the wish up, because its future is dropped; returns the session to end, if it has
    /// begun.
    pub(super) fn give_up(&self) -> Option<Session> {
        match self.stage.replace(Stage::Over) {
            Stage::Granted(result) => result.ok(),
            Stage::Waiting(_) | Stage::Over => None,
        }
    }
}
