//! The life of one thread of a server: it makes its endpoint and its services, serves, drains, and
//! ends. While it serves, a thread of the poll API reads one atomic number after each iteration; a
//! thread of futures reads none.

use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_local::{Caller, Local, Tasks};
use dunlin_nexus::{EndpointBuilder, EndpointError, Pulse, Rpc};
use dunlin_transport::auto::Auto;

use crate::error::ServeError;
use crate::phase::Phase;

/// The time between two checks whether a drain is over.
const LOOK: Duration = Duration::from_millis(1);

/// Identifies one thread of a server, for the services that the thread makes.
#[derive(Clone, Debug)]
pub struct ServerThread {
    index: usize,
    caller: Caller,
}

/// Requests of one thread since its drain began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Report {
    /// Requests that handlers had when the drain began.
    pub(crate) begun: u64,
    /// Requests that handlers had when the thread ended.
    pub(crate) left: u64,
    /// Requests that were refused.
    pub(crate) refused: u64,
}

/// A thread of either kind, before it serves. It is made on the thread itself.
pub(crate) trait Seat {
    fn run(&mut self, phase: &Phase) -> Report;

    /// A mistake in the services, for which the server does not start.
    fn mistake(&mut self) -> Option<ServeError>;

    /// The facts by which the thread's health is judged.
    fn vitals(&mut self) -> Vitals;
}

/// The time of a thread's last turn, the names of its services, and the facts about them.
#[derive(Debug)]
pub(crate) struct Vitals {
    pub(crate) pulse: Pulse,
    pub(crate) services: Vec<&'static str>,
    #[cfg(feature = "reflect")]
    pub(crate) facts: Vec<dunlin_core::Facts>,
}

/// Makes a thread's endpoint and services.
pub(crate) type Make =
    dyn Fn(usize, EndpointBuilder<Auto>) -> Result<Box<dyn Seat>, EndpointError> + Send + Sync;

impl ServerThread {
    /// The thread's number, from 0 on, which is the index of its endpoint.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The thread's endpoint, for handlers that call other servers or wait.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }
}

/// A thread with services of futures.
pub(crate) struct OfFutures(Local<Auto>);

impl OfFutures {
    pub(crate) fn new(
        index: usize,
        builder: EndpointBuilder<Auto>,
        serve: impl FnOnce(&mut Local<Auto>, &ServerThread),
    ) -> Result<Self, EndpointError> {
        let mut local = Local::new(builder.build(Tasks::default())?);
        let caller = local.caller();
        serve(&mut local, &ServerThread { index, caller });
        Ok(Self(local))
    }
}

impl Seat for OfFutures {
    fn run(&mut self, phase: &Phase) -> Report {
        let local = &mut self.0;
        local.block_on(|_| phase.served());
        let mut report = local.inspect(begin_drain);
        while !phase.is_over() && !local.inspect(|rpc| is_drained(rpc)) {
            local.block_on(|cx| cx.sleep(LOOK));
        }
        local.inspect(|rpc| end_drain(rpc, &mut report));
        report
    }

    fn mistake(&mut self) -> Option<ServeError> {
        self.0.inspect(|rpc| same_number(rpc))
    }

    fn vitals(&mut self) -> Vitals {
        self.0.inspect(|rpc| vitals(rpc))
    }
}

/// A thread of the poll API.
pub(crate) struct OfPolls<A>(pub(crate) Rpc<Auto, A>);

impl<A> Seat for OfPolls<A> {
    fn run(&mut self, phase: &Phase) -> Report {
        let rpc = &mut self.0;
        phase.wake_after(rpc.waker());
        rpc.run_until(|_| !phase.is_serving());
        let mut report = begin_drain(rpc);
        while !phase.is_over() && !is_drained(rpc) {
            let until = next_look(rpc);
            while rpc.now() < until {
                rpc.iterate(|_| until);
            }
        }
        end_drain(rpc, &mut report);
        report
    }

    fn mistake(&mut self) -> Option<ServeError> {
        same_number(&self.0)
    }

    fn vitals(&mut self) -> Vitals {
        vitals(&self.0)
    }
}

pub(crate) fn begin_drain<A>(rpc: &mut Rpc<Auto, A>) -> Report {
    rpc.drain();
    Report {
        begun: rpc.requests_under_way() as u64,
        ..Report::default()
    }
}

/// Whether no client is left that could wait for an answer, and handlers have no requests.
pub(crate) fn is_drained<A>(rpc: &Rpc<Auto, A>) -> bool {
    let is_accepted = |session| rpc.session_info(session).is_ok_and(|info| info.accepted);
    rpc.requests_under_way() == 0 && !rpc.sessions().any(is_accepted)
}

/// The time of the next check whether the drain is over.
pub(crate) fn next_look<A>(rpc: &mut Rpc<Auto, A>) -> Nanos {
    rpc.now() + Nanos::from(LOOK)
}

pub(crate) fn end_drain<A>(rpc: &Rpc<Auto, A>, report: &mut Report) {
    report.left = rpc.requests_under_way() as u64;
    report.refused = rpc.counters().turned_away;
}

pub(crate) fn vitals<A>(rpc: &Rpc<Auto, A>) -> Vitals {
    Vitals {
        pulse: rpc.pulse(),
        services: rpc.services().to_vec(),
        #[cfg(feature = "reflect")]
        facts: rpc.facts().to_vec(),
    }
}

/// The error if two of the thread's methods have one number.
pub(crate) fn same_number<A>(rpc: &Rpc<Auto, A>) -> Option<ServeError> {
    let req_type = rpc.registered_twice()?;
    Some(ServeError::SameNumber(req_type.0 & !dunlin_service::META))
}
