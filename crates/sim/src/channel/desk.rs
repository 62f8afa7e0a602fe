//! Requests of the clients to the stage: to open a session, to end one, or to look up a name.
//!
//! Called by `client`, emptied by `stage`.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_channel::LinkId;
use dunlin_core::Session;

use crate::world::net::PortId;

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Open a session to a server, for this link.
    Connect(LinkId, usize),
    /// The client has ended its session.
    Disconnected(Session),
    LookUp,
}

pub(super) type Desk = Rc<RefCell<Vec<(PortId, Order)>>>;
