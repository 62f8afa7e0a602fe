//! A service on the endpoint's side, whose handlers run on an executor.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use dunlin_core::{Facts, Nanos};
use dunlin_local::ServiceRequest;
use dunlin_service::spans::RequestSpan;
use dunlin_service::{AsyncService, Error, IncomingRequest, META, Refusal, SendService};

use crate::burst::Bursts;
use crate::call::Call;
use crate::desk::Desk;
use crate::dispatcher;
use crate::letter::{Arrived, End, Letter};
use crate::request::OffloadedRequest;
use crate::spawn::Spawn;

/// The default for the most requests that are at the executor at once.
const LIMIT: u32 = 4096;

/// A service whose handlers run on an executor, for `Local::serve_typed` and for servers. The
/// executor may move their futures between its threads.
///
/// If a client cancels its request, the request's deadline passes or its session closes, the
/// executor drops the handler's future.
#[derive(Debug)]
pub struct Offload<S> {
    desk: Arc<Desk>,
    bursts: Bursts,
    service: PhantomData<fn() -> S>,
}

impl<S: SendService<OffloadedRequest>> Offload<S> {
    /// Runs the handlers of `service` with `spawn`. At most 4096 requests are at the executor at
    /// once; further ones are refused with `OVERLOADED`.
    pub fn new(service: S, spawn: impl Spawn) -> Self {
        Self::with_limit(service, spawn, LIMIT)
    }

    /// Like [`Self::new`], with another limit for the requests that are at the executor at once.
    pub fn with_limit(service: S, spawn: impl Spawn, limit: u32) -> Self {
        let desk = Desk::new(limit);
        let spawn = Arc::new(spawn);
        let dispatcher = dispatcher::dispatch(&desk, service, Arc::clone(&spawn));
        spawn.spawn(dispatcher);
        Self {
            desk,
            bursts: Bursts::default(),
            service: PhantomData,
        }
    }
}

impl<S: SendService<OffloadedRequest>> AsyncService<ServiceRequest> for Offload<S> {
    const NAME: &'static str = S::NAME;
    const METHODS: &'static [u16] = S::METHODS;
    const NAMES: &'static [&'static str] = S::NAMES;
    const FACTS: Option<Facts> = S::FACTS;

    async fn answer(self: Rc<Self>, mut request: ServiceRequest) -> Result<(), Error> {
        if self.desk.is_stopped() {
            return request.refuse(Refusal::ShuttingDown);
        }
        let Some(call) = Call::hold(&self.desk) else {
            return request.refuse(Refusal::Overloaded);
        };
        let mut call = call.with_request(arrived(&mut request)?);
        poll_fn(|context| call.poll(&self.bursts, || request.now(), context)).await;
        match call.with(Letter::take_end) {
            End::Reply(body) => request.reply_from(body),
            End::LongReply => call.with(|letter| {
                request.reply(letter.long().len(), |out| {
                    out.copy_from_slice(letter.long())
                })
            }),
            End::Reject(code) => request.reject(code),
            End::Refuse(why) => request.refuse(why),
        }
    }
}

impl<S> Drop for Offload<S> {
    fn drop(&mut self) {
        self.desk.on_over();
    }
}

/// The request to pass on. `request` keeps nothing but the right to answer.
fn arrived(request: &mut ServiceRequest) -> Result<Arrived, Error> {
    let req_type = request.req_type();
    // Only a request with a front may have a deadline, and only a deadline needs the time.
    let at = match req_type.0 & META {
        0 => Nanos::ZERO,
        _ => request.now(),
    };
    Ok(Arrived {
        session: request.session(),
        req_type,
        at,
        body: request.take_buf()?,
        // The endpoint polls this within the span of the request.
        span: RequestSpan::current(),
    })
}
