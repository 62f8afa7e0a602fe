//! The values that go in and out of the machine.

use dunlin_core::{CloseReason, Nanos};
use dunlin_wire::Ran;

use crate::fault::Fault;
use crate::handle::{AddressId, AttemptId, CallId, LinkId};

/// The terms of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// The call may run twice, and late.
    pub idempotent: bool,
    /// The call is a notification: once it has left this side, it is never sent again.
    pub once: bool,
    /// The time by which the call ends.
    pub deadline: Option<Nanos>,
    /// The hash of the call's key, for [`Pick::Hash`](crate::Pick::Hash).
    pub key: Option<u64>,
    /// The endpoint of the picked server that must get the call; `None`: the channel chooses one.
    pub endpoint: Option<u32>,
}

/// A link that has opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The process to which it leads: two addresses may lead to one.
    pub server: u64,
    /// The endpoint at its other end.
    pub endpoint: u32,
    /// Number of endpoints of the server that serve.
    pub endpoints: u32,
    /// Number of requests that the link has in flight at the same time; further ones wait in the
    /// driver.
    pub window: u32,
    /// The server drains already.
    pub draining: bool,
}

/// The reason why an address has no link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The last link could not be opened, or was lost.
    Closed(CloseReason),
    /// The server drains.
    Draining,
}

/// The state of an address, or of a whole channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum State {
    /// No link yet, and nothing has failed.
    Connecting,
    /// Calls are served, and everything works.
    Ready,
    /// Calls are served, but something has failed.
    Degraded,
    /// No calls are served: all servers have failed, or drain.
    Gone,
}

/// The public view of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressView<'a> {
    /// Its handle.
    pub id: AddressId,
    /// Its name in the list.
    pub name: &'a str,
    /// Its state.
    pub state: State,
    /// The last error, even if the address works again.
    pub last_error: Option<Reason>,
    /// Attempts whose end has not been reported.
    pub outstanding: u32,
    /// Open links.
    pub links: u32,
}

/// How an attempt ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With a response.
    Answered,
    /// Without a response.
    Failed(Fault),
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEnd {
    /// With the response of this attempt.
    Answered(AttemptId),
    /// Without a response.
    Failed(Failure),
}

/// The reason why a call has no answer, and whether it ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The reason.
    pub why: Why,
    /// Whether a handler ran, in any of the attempts.
    pub ran: Ran,
}

/// The reason of a [`Failure`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The last attempt ended with this fault, and was not repeated.
    Attempt(Fault),
    /// The deadline passed.
    DeadlinePassed,
    /// No server was ready in time. [`AddressView::last_error`] has the reasons.
    NoServer,
    /// The channel was closed.
    Closed,
}

/// The channel has reached its limit of calls: this one was refused, and has not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// An action for the driver, to be carried out in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Connect to an address; [`Machine::on_opened`](crate::Machine::on_opened) or
    /// [`Machine::on_closed`](crate::Machine::on_closed) reports the result.
    Connect {
        /// The new link.
        link: LinkId,
        /// The address.
        address: AddressId,
        /// The endpoint; `None`: any that serves.
        endpoint: Option<u32>,
    },
    /// End a link, or the attempt to make one. The machine has removed the link already.
    Disconnect {
        /// The link.
        link: LinkId,
    },
    /// Send the request of a call. The driver calls
    /// [`Machine::on_issued`](crate::Machine::on_issued) once the request may leave, and reports
    /// the attempt's end. While the request waits in the driver,
    /// [`Machine::move_waiting`](crate::Machine::move_waiting) may find a link with room.
    Send {
        /// The attempt, until its end is reported.
        attempt: AttemptId,
        /// The call.
        call: CallId,
        /// The link.
        link: LinkId,
        /// The time by which the call ends.
        deadline: Option<Nanos>,
    },
    /// Cancel an attempt. The driver still reports its end.
    Cancel {
        /// The attempt.
        attempt: AttemptId,
    },
    /// A call has ended; its handle is no longer valid.
    End {
        /// The call.
        call: CallId,
        /// How it ended.
        end: CallEnd,
    },
    /// Look the names up; [`Machine::on_addresses`](crate::Machine::on_addresses) or
    /// [`Machine::on_lookup_failed`](crate::Machine::on_lookup_failed) reports the result.
    LookUp,
}
