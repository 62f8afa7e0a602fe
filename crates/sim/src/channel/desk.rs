//! Requests of the clients to the stage: to open a session, to end one, or to look up a name.
//!
//! Called by `client`, emptied by `stage`.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::Session;

use crate::world::net::PortId;

/// The number of a session, which its client gives it. The stage opens the session later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Line(pub(super) u64);

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Open a session to a server, with this number.
    Connect(Line, usize),
    /// The client has ended its session.
    Disconnected(Session),
    /// Look the servers up, for this channel of the client.
    LookUp(usize),
}

pub(super) type Desk = Rc<RefCell<Vec<(PortId, Order)>>>;
