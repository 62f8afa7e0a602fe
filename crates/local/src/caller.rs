//! How a future reaches its endpoint: [`Caller`], a handle of a few bytes, which any code of this
//! thread may clone.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use dunlin_core::{CallOptions, Nanos, Peer, Session, SessionInfo};
use dunlin_msgbuf::MsgBuf;
use dunlin_nexus::ConnectOptions;
use dunlin_service::{Error, Link, Peers};
use dunlin_wire::{ErrorCode, ReqType};

use crate::call::{Call, Reply};
use crate::failed::Failed;
use crate::not_connected::NotConnected;
use crate::sleep::Sleep;
use crate::state::State;
use crate::wishes::Wish;

/// The endpoint of a [`Local`](crate::Local), for futures of its thread. Operations take effect
/// immediately; packets leave when the future has returned.
#[derive(Clone)]
pub struct Caller {
    state: Rc<State>,
}

impl Caller {
    pub(super) const fn new(state: Rc<State>) -> Self {
        Self { state }
    }

    /// Makes a call: awaiting it gives the response or an error, and the msgbufs. Dropping it
    /// cancels the call.
    #[inline]
    pub fn call(&self, session: Session, req_type: ReqType, request: MsgBuf) -> Call {
        Call::new(Rc::clone(&self.state), session, req_type, request)
    }

    /// Makes a call and drops its result.
    ///
    /// # Errors
    /// If the endpoint refuses the call; the error holds the request.
    pub fn notify(
        &self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
    ) -> Result<(), Failed> {
        self.call(session, req_type, request).room(0).notify()
    }

    /// A msgbuf of `len` bytes, whose content is arbitrary.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn buf(&self, len: usize) -> Result<MsgBuf, Error> {
        Ok(self
            .state
            .with(|cx| cx.buf(len))
            .ok_or(Error::Unavailable)??)
    }

    /// A msgbuf with a copy of `bytes`.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn copy(&self, bytes: &[u8]) -> Result<MsgBuf, Error> {
        Ok(self
            .state
            .with(|cx| cx.copy(bytes))
            .ok_or(Error::Unavailable)??)
    }

    /// Gives msgbufs back to the pool, faster than dropping them.
    pub fn recycle(&self, bufs: impl IntoIterator<Item = MsgBuf>) {
        // Without an endpoint, the msgbufs are dropped.
        let bufs = bufs.into_iter();
        self.state.with(|cx| cx.recycle(bufs));
    }

    /// The time now, on the endpoint's clock. Futures that are polled together read the same time.
    pub fn now(&self) -> Nanos {
        self.state.with(|cx| cx.now()).unwrap_or(Nanos::MAX)
    }

    /// Waits for this time.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span.into())
    }

    /// Waits until the clock that [`Self::now`] reads shows this time.
    pub fn sleep_until(&self, at: Nanos) -> Sleep {
        Sleep::new(Rc::clone(&self.state), at)
    }

    /// Runs a future for this time at most, and returns its output. After that time, drops the
    /// future where it waits, and returns `None`; a request that is dropped with it ends with
    /// [`ErrorCode::TIMED_OUT`].
    pub async fn within<F: Future>(&self, span: Duration, future: F) -> Option<F::Output> {
        let mut future = pin!(Some(future));
        let mut sleep = pin!(self.sleep(span));
        let output = std::future::poll_fn(|context| {
            if let Some(running) = future.as_mut().as_pin_mut()
                && let Poll::Ready(output) = running.poll(context)
            {
                return Poll::Ready(Some(output));
            }
            sleep.as_mut().poll(context).map(|()| None)
        });
        let output = output.await;
        if output.is_none() {
            let drop = || future.set(None);
            self.state.drop_with(ErrorCode::TIMED_OUT, drop);
        }
        output
    }

    /// Runs another future concurrently with this one. That takes an allocation; the end of the
    /// future is not reported.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let state = &self.state;
        state.spawn(Box::pin(future));
        if !state.lent.is_there() {
            state.disturb();
        }
    }

    /// The state of a session.
    ///
    /// # Errors
    /// If it has ended, or is another endpoint's; or if this endpoint is gone.
    pub fn session_info(&self, session: Session) -> Result<SessionInfo, Error> {
        let info = self.state.with(|cx| cx.session_info(session));
        Ok(info.ok_or(Error::Unavailable)??)
    }

    /// Waits until a session is connected. Calls need not wait for that: they queue.
    ///
    /// # Errors
    /// [`NotConnected::Failed`], with address and reason, if the session is one of the last 64 that
    /// could not be made. [`NotConnected::Gone`] if it has ended otherwise or is another
    /// endpoint's, or if this endpoint is gone.
    pub async fn connected(&self, session: Session) -> Result<(), NotConnected> {
        std::future::poll_fn(|context| match self.session_info(session) {
            Ok(info) if info.open => Poll::Ready(Ok(())),
            Ok(_) => {
                self.state.wait_for_sessions(context);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(self.not_connected(session, error))),
        })
        .await
    }

    /// Asks for a session, which the `Local` begins to open after the iteration.
    pub(super) fn wish(&self, to: Vec<SocketAddr>, options: ConnectOptions) -> Rc<Wish> {
        let wish = self.state.wish(to, options);
        // Outside of a poll, this also wakes the task that drives the endpoint.
        if self.state.with(|_| ()).is_none() {
            self.state.refuse_wishes();
        }
        wish
    }

    pub(super) const fn state(&self) -> &Rc<State> {
        &self.state
    }

    fn not_connected(&self, session: Session, error: Error) -> NotConnected {
        let failed = self.state.failed(session);
        failed.map_or(NotConnected::Gone(error), NotConnected::Failed)
    }

    /// Ends a session. Its calls end with an error; the other side gets an event.
    ///
    /// # Errors
    /// If the session had already ended, or is another endpoint's; or if this endpoint is gone.
    pub fn disconnect(&self, session: Session) -> Result<(), Error> {
        let ended = self.state.with(|cx| cx.disconnect(session));
        Ok(ended.ok_or(Error::Unavailable)??)
    }
}

impl Peers for Caller {
    fn peer(&self, session: Session) -> Option<Peer> {
        self.state.with(|cx| cx.peer(session)).flatten()
    }
}

impl Link for Caller {
    type Call = Call;
    type Reply = Reply;
    type Failed = Failed;

    fn buf(&self, len: usize) -> Result<MsgBuf, Error> {
        self.buf(len)
    }

    fn now(&self) -> Nanos {
        self.now()
    }

    fn begin(
        &self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        room: usize,
        options: CallOptions,
    ) -> Call {
        self.call(session, req_type, request)
            .room(room)
            .options(options)
    }

    fn notify(&self, session: Session, req_type: ReqType, request: MsgBuf) -> Result<(), Failed> {
        self.notify(session, req_type, request)
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}
