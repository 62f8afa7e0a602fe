//! One server of a fleet: its client, and the link that the channel's machine wants.
//!
//! The first lane of the client is the link. The client wishes for its session, and the machine
//! says when; both must agree, so a server that is down is tried at the machine's pace. The other
//! lanes of the client follow the server's map. A server whose link is down is itself down only if
//! none of the other lanes is open.
//!
//! ```text
//! link:  Hoped ──map──▶ Up ──closed──▶ Down ──map──▶ Up
//!          └──────refused, closed───────▲
//! ```

use std::sync::Arc;

use dunlin_channel::{AddressId, LinkId};
use dunlin_core::{CloseReason, Nanos, Session};
use dunlin_store::Mode;

use super::types::ServerId;
use crate::client::{Client, LinkState, Options};
use crate::wire::Map;

/// The state of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No session yet, and none has failed.
    Hoped,
    Up,
    Down,
}

/// The session that the machine wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    id: LinkId,
    /// The owner of the endpoint knows the wish.
    is_asked: bool,
    /// The machine knows that it is open.
    is_open: bool,
}

/// A change of a link, for the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Opened(LinkId),
    Closed(LinkId, CloseReason),
}

#[derive(Debug)]
pub(super) struct Server {
    id: ServerId,
    name: Arc<str>,
    address: AddressId,
    client: Client,
    state: State,
    link: Option<Link>,
    /// The client's wish for its first session, until the machine wants the link too.
    wish: Option<u16>,
    /// Why the link has no session, unless the client has ended it.
    reason: Option<CloseReason>,
    is_listed: bool,
}

impl Server {
    pub(super) fn new(id: ServerId, name: &str, address: AddressId, options: Options) -> Self {
        Self {
            id,
            name: name.into(),
            address,
            client: Client::numbered(options, id.place),
            state: State::Hoped,
            link: None,
            wish: None,
            reason: None,
            is_listed: true,
        }
    }

    pub(super) const fn id(&self) -> ServerId {
        self.id
    }

    pub(super) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    pub(super) const fn drive(&mut self) -> &mut Client {
        &mut self.client
    }

    pub(super) fn is_at(&self, address: AddressId) -> bool {
        self.address == address
    }

    pub(super) fn has_link(&self, id: LinkId) -> bool {
        self.link.is_some_and(|link| link.id == id)
    }

    /// Whether nothing of it can be used: the session that is made first is lost, and no other is
    /// open. While others are, only the partition of the first endpoint is down.
    pub(super) fn is_down(&self) -> bool {
        self.state == State::Down && !self.client.is_open()
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether it may drop items; `None`: it was never reached.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.client.map().map(Map::mode)
    }

    /// It has left the list, and nothing of it is under way.
    pub(super) fn may_go(&self) -> bool {
        !self.is_listed && self.client.under_way() == 0
    }

    /// Takes its place in a new list. `None`: it has none.
    pub(super) const fn on_list(&mut self, address: Option<AddressId>) {
        self.is_listed = address.is_some();
        if let Some(address) = address {
            self.address = address;
        }
    }

    /// The machine wants a link.
    pub(super) const fn on_connect(&mut self, id: LinkId) {
        self.link = Some(Link {
            id,
            is_asked: false,
            is_open: false,
        });
    }

    /// The machine has given its link up. The client keeps its sessions while it needs them.
    pub(super) const fn on_disconnect(&mut self) {
        self.link = None;
    }

    /// The session ends.
    pub(super) fn on_closed(&mut self, session: Session, reason: CloseReason) {
        if self.client.is_link(session) {
            self.reason = Some(reason);
        }
    }

    /// There is no session with this endpoint.
    pub(super) fn on_refused(&mut self, endpoint: u16, now: Nanos) {
        if self.client.is_first(endpoint) {
            self.reason = Some(CloseReason::Refused);
        }
        self.client.on_refused(endpoint, now);
    }

    /// An endpoint with which there should be a session now.
    pub(super) fn wish(&mut self, now: Nanos) -> Option<u16> {
        while self.is_listed
            && let Some(endpoint) = self.client.wish(now)
        {
            match self.client.is_first(endpoint) {
                true => self.wish = Some(endpoint),
                false => return Some(endpoint),
            }
        }
        let link = self.link.as_mut().filter(|link| !link.is_asked)?;
        let endpoint = self.wish.take()?;
        link.is_asked = true;
        Some(endpoint)
    }

    /// When [`Self::wish`] or the client has work. The endpoint brings the ends of a server's
    /// calls, and a server that has left the list has no other work.
    pub(super) fn next_wakeup(&self) -> Nanos {
        match self.is_listed {
            true => self.client.next_wakeup(),
            false => Nanos::MAX,
        }
    }

    /// A change of the link that the machine does not know.
    pub(super) fn change(&mut self) -> Option<Change> {
        let state = self.client.link();
        let link = self.link.as_mut()?;
        match state {
            LinkState::Open if !link.is_open => {
                link.is_open = true;
                link.is_asked = true;
                self.state = State::Up;
                self.reason = None;
                Some(Change::Opened(link.id))
            }
            LinkState::Down if link.is_asked => {
                let id = link.id;
                self.link = None;
                self.state = State::Down;
                let reason = self.reason.take();
                Some(Change::Closed(
                    id,
                    reason.unwrap_or(CloseReason::Disconnected),
                ))
            }
            _ => None,
        }
    }
}
