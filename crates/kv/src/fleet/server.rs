//! One server of a fleet: its client, and the link that the channel's machine wants.
//!
//! The first lane of the client is the link. The client wishes for its session, and the machine
//! decides when to try; a session needs both, so a server that is down is tried at the machine's
//! pace. The other lanes of the client follow the server's map. A server whose link is down counts
//! as down only if none of the other lanes is open.
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
    /// There has been no session yet, and no failure.
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
    /// The machine knows that the link is open.
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
    /// The client's wish for its first session, until the machine wants the link, too.
    wish: Option<u16>,
    /// The reason why the link has no session, unless the client has ended it.
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

    /// Whether the whole server is unusable: the session that is made first is lost, and no other
    /// is open. If others are open, only the partition of the first endpoint is down.
    pub(super) fn is_down(&self) -> bool {
        self.state == State::Down && !self.client.is_open()
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// The server's mode; `None` if it was never reached.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.client.map().map(Map::mode)
    }

    /// Whether the server has left the list and has no operations in progress.
    pub(super) fn may_go(&self) -> bool {
        !self.is_listed && self.client.under_way() == 0
    }

    /// Takes the server's address in a new list; `None` if it is not listed.
    pub(super) const fn on_list(&mut self, address: Option<AddressId>) {
        self.is_listed = address.is_some();
        if let Some(address) = address {
            self.address = address;
        }
    }

    /// Notes that the machine wants a link.
    pub(super) const fn on_connect(&mut self, id: LinkId) {
        self.link = Some(Link {
            id,
            is_asked: false,
            is_open: false,
        });
    }

    /// Notes that the machine has given the link up. The client keeps its sessions while it needs
    /// them.
    pub(super) const fn on_disconnect(&mut self) {
        self.link = None;
    }

    /// Notes the end of a session.
    pub(super) fn on_closed(&mut self, session: Session, reason: CloseReason) {
        if self.client.is_link(session) {
            self.reason = Some(reason);
        }
    }

    /// Notes that no session with this endpoint can be made.
    pub(super) fn on_refused(&mut self, endpoint: u16, now: Nanos) {
        if self.client.is_first(endpoint) {
            self.reason = Some(CloseReason::Refused);
        }
        self.client.on_refused(endpoint, now);
    }

    /// An endpoint with which a session should be made now.
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

    /// The time at which [`Self::wish`] or the client has work. Ends of a server's calls come from
    /// the endpoint, and a server that has left the list has no other work.
    pub(super) fn next_wakeup(&self) -> Nanos {
        match self.is_listed {
            true => self.client.next_wakeup(),
            false => Nanos::MAX,
        }
    }

    /// A change of the link that the machine does not know yet.
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
