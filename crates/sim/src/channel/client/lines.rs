//! The sessions of a client, which its trunks order. A session has a number from the order for it;
//! the stage opens it later.
//!
//! Called by the trunks of `dunlin_channel` and by the client.

use std::collections::{BTreeMap, BTreeSet};

use dunlin_channel::{Destination, Sessions};
use dunlin_core::{CloseReason, Done, Nanos, Session};

use super::super::desk::{Desk, Line, Order};
use crate::world::net::{PortId, SimEndpoint};

/// The longest time after which a client asks for late answers while a server drains.
const HURRY: Nanos = Nanos::from_millis(20);

/// Completions that the machines have not received yet.
#[derive(Default)]
pub(in crate::channel) struct Inbox {
    pub(super) done: Vec<Done>,
}

pub(super) struct Lines {
    rpc: SimEndpoint<Inbox>,
    desk: Desk,
    port: PortId,
    made: u64,
    /// `None`: it is not open yet.
    all: BTreeMap<Line, Option<Session>>,
    /// Sessions that the stage has ended.
    lost: BTreeSet<Line>,
    /// The endpoint's usual longest time before it asks for a late answer. Set while a server
    /// drains, because the endpoint then asks more often.
    calm: Option<Nanos>,
}

impl Lines {
    pub(super) fn new(rpc: SimEndpoint<Inbox>, (desk, port): (Desk, PortId)) -> Self {
        Self {
            rpc,
            desk,
            port,
            made: 0,
            all: BTreeMap::new(),
            lost: BTreeSet::new(),
            calm: None,
        }
    }

    pub(super) fn rpc(&mut self) -> &mut SimEndpoint<Inbox> {
        &mut self.rpc
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn session(&self, line: Line) -> Option<Session> {
        self.all.get(&line).copied().flatten()
    }

    /// Whether the stage has ended the session, because its server has failed or refuses it.
    pub(super) fn is_lost(&self, line: Line) -> bool {
        self.lost.contains(&line)
    }

    /// False if the client no longer wants the session, which then ends.
    pub(super) fn on_opened(&mut self, line: Line, session: Session) -> bool {
        match self.all.get_mut(&line) {
            Some(open) => {
                *open = Some(session);
                true
            }
            None => {
                self.end_session(session);
                false
            }
        }
    }

    /// The stage has ended a session, or has not opened it.
    pub(super) fn on_lost(&mut self, line: Line, reason: CloseReason) {
        self.lost.insert(line);
        if let Some(session) = self.all.remove(&line).flatten() {
            self.rpc.lifecycle().close(session, reason);
        }
    }

    /// Ends a session, unless it has already ended.
    fn end_session(&mut self, session: Session) {
        // An error means that it has ended; it is always one of this endpoint.
        let _ = self.rpc.disconnect(session);
        self.order(Order::Disconnected(session));
    }

    fn order(&self, order: Order) {
        self.desk.borrow_mut().push((self.port, order));
    }
}

impl Sessions for Lines {
    type Session = Line;
    type Error = std::convert::Infallible;

    fn begin(&mut self, (server, _): &Destination) -> Result<Line, Self::Error> {
        let line = Line(self.made);
        self.made += 1;
        self.all.insert(line, None);
        let server = server.parse().expect("names are numbers");
        self.order(Order::Connect(line, server));
        Ok(line)
    }

    fn end(&mut self, line: Line) {
        if let Some(session) = self.all.remove(&line).flatten() {
            self.end_session(session);
        }
    }

    /// Makes the endpoint ask for late answers more often while a server drains, as a hub does.
    fn hurry(&mut self, drains: bool) {
        match drains {
            true => self.calm = Some(self.rpc.cx().ask_within(HURRY)),
            false => {
                if let Some(calm) = self.calm.take() {
                    self.rpc.cx().ask_within(calm);
                }
            }
        }
    }
}
