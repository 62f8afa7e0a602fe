//! The links of a channel: sessions, the attempts that wait for them, and the reasons for which
//! they ended.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use dunlin_channel::{AddressId, AddressView, AttemptId, LinkId, Opened, Reason};
use dunlin_core::{CloseReason, Nanos, RpcError, Session};
use dunlin_nexus::{ConnectError, ConnectOptions, PeerServing};
use dunlin_wire::Ran;
use dunlin_wire::control::Serving;

use super::{Around, Driver, put};
use crate::board::{AddressState, ChannelState};
use crate::error::AddressError;

/// The timeout of one attempt to connect, after which the reason for its failure is known. The
/// patience of calls does not shorten it: a distant server may need more time than a call has.
const ATTEMPT: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Link {
    id: LinkId,
    address: AddressId,
    endpoint: u32,
    session: Session,
    /// Number of calls that the session takes at the same time; zero until it is open.
    window: u32,
    issued: u32,
    waiting: VecDeque<AttemptId>,
    /// The services that the server has announced.
    serving: Option<PeerServing>,
}

#[derive(Debug)]
pub(super) struct Links {
    /// The links, by their index.
    all: Vec<Option<Link>>,
    /// The reason for which the last link to an address ended, by the index of the address.
    errors: Vec<Option<(AddressId, AddressError)>>,
    /// The number of attempts that wait for any link.
    waiting: usize,
}

impl Links {
    pub(super) const fn new() -> Self {
        Self {
            all: Vec::new(),
            errors: Vec::new(),
            waiting: 0,
        }
    }

    fn get(&self, id: LinkId) -> Option<&Link> {
        let link = self.all.get(id.index())?.as_ref();
        link.filter(|link| link.id == id)
    }

    fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        let link = self.all.get_mut(id.index())?.as_mut();
        link.filter(|link| link.id == id)
    }

    fn remove(&mut self, id: LinkId) -> Option<Link> {
        let link = self.all.get_mut(id.index())?;
        let link = link.take_if(|link| link.id == id)?;
        self.waiting -= link.waiting.len();
        Some(link)
    }

    pub(super) fn session(&self, id: LinkId) -> Option<Session> {
        self.get(id).map(|link| link.session)
    }

    /// True if the endpoint would transmit a call now. Also true if the link is gone: the call then
    /// fails and reports that.
    pub(super) fn takes(&self, id: LinkId) -> bool {
        self.get(id).is_none_or(|link| link.issued < link.window)
    }

    pub(super) fn on_issue(&mut self, id: LinkId) {
        if let Some(link) = self.get_mut(id) {
            link.issued += 1;
        }
    }

    /// A call of the session has ended.
    pub(super) fn on_done(&mut self, id: LinkId) {
        if let Some(link) = self.get_mut(id) {
            link.issued = link.issued.saturating_sub(1);
        }
    }

    pub(super) fn wait(&mut self, id: LinkId, attempt: AttemptId) {
        if let Some(link) = self.get_mut(id) {
            link.waiting.push_back(attempt);
            self.waiting += 1;
        }
    }

    pub(super) fn next_waiting(&mut self, id: LinkId) -> Option<AttemptId> {
        let next = self.get_mut(id)?.waiting.pop_front();
        self.waiting -= usize::from(next.is_some());
        next
    }

    pub(super) fn stop_waiting(&mut self, id: LinkId, attempt: AttemptId) {
        if let Some(link) = self.get_mut(id) {
            let before = link.waiting.len();
            link.waiting.retain(|waiting| *waiting != attempt);
            let gone = before - link.waiting.len();
            self.waiting -= gone;
        }
    }

    /// An attempt that waits for another link to the same server, if this link has room and no
    /// attempt waits for it.
    pub(super) fn waiting_beside(&self, id: LinkId) -> Option<AttemptId> {
        if self.waiting == 0 {
            return None;
        }
        let has_room = |link: &&Link| link.issued < link.window && link.waiting.is_empty();
        let own = self.get(id).filter(has_room)?;
        let mut others = self.all.iter().flatten();
        others
            .find(|it| it.address == own.address && !it.waiting.is_empty())
            .and_then(|it| it.waiting.front().copied())
    }

    fn on_error(&mut self, address: AddressId, error: AddressError) {
        put(&mut self.errors, address.index(), (address, error));
    }

    /// The last error of an address, in more detail than the machine has.
    fn error(&self, view: &AddressView<'_>) -> Option<AddressError> {
        let reason = match view.last_error? {
            Reason::Draining => return Some(AddressError::Draining),
            Reason::Closed(reason) => reason,
        };
        let error = self.errors.get(view.id.index()).copied().flatten();
        let error = error.filter(|(id, _)| *id == view.id);
        Some(error.map_or(AddressError::Session(reason), |(_, error)| error))
    }
}

/// Events of links.
impl Driver {
    /// The session of a link is ready.
    pub(crate) fn on_connected(&mut self, id: LinkId, around: &mut Around<'_>) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let Ok(info) = around.rpc.session_info(link.session) else {
            return;
        };
        link.window = info.window;
        let (address, endpoint, said) = (link.address, link.endpoint, link.serving);
        let view = self.machine.addresses().find(|view| view.id == address);
        let mut server = DefaultHasher::new();
        view.map(|view| view.name).hash(&mut server);
        let opened = Opened {
            // Two addresses of one process count as one server if the process announces its
            // services.
            server: said.map_or_else(|| server.finish(), |said| said.process),
            endpoint,
            endpoints: said.map_or(1, |said| said.serving.endpoints.into()),
            window: info.window,
            draining: said.is_some_and(|said| said.serving.draining),
        };
        self.machine.on_opened(id, &opened, around.now);
        self.spread(id, around);
    }

    /// The server of a link has announced its services, perhaps before the session is ready.
    pub(crate) fn on_serving(&mut self, id: LinkId, said: &PeerServing, now: Nanos) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.serving = Some(*said);
        if link.window > 0 {
            let Serving {
                draining,
                endpoints,
                ..
            } = said.serving;
            self.machine.on_serving(id, draining, endpoints.into(), now);
        }
    }

    /// The session of a link has ended, or was never made.
    pub(crate) fn on_closed(&mut self, id: LinkId, reason: CloseReason, around: &mut Around<'_>) {
        let Some(link) = self.links.remove(id) else {
            return;
        };
        around.sessions.remove(&link.session);
        let error = match around.rpc.failure(link.session) {
            Some(failure) if link.window == 0 => AddressError::Connect(failure),
            _ => AddressError::Session(reason),
        };
        self.links.on_error(link.address, error);
        self.machine.on_closed(id, reason, around.now);
        for attempt in link.waiting {
            let closed = RpcError::SessionClosed(reason, Ran::No);
            self.never_sent(attempt, closed, around.now);
        }
    }

    pub(super) fn connect(
        &mut self,
        id: LinkId,
        address: AddressId,
        endpoint: Option<u32>,
        around: &mut Around<'_>,
    ) {
        let view = self.machine.addresses().find(|view| view.id == address);
        let Some(name) = view.map(|view| view.name.to_owned()) else {
            return;
        };
        // The first endpoint serves, even at a server that does not announce which endpoints do.
        let endpoint = endpoint.unwrap_or(0);
        let options = ConnectOptions {
            endpoint: Some(u16::try_from(endpoint).unwrap_or(u16::MAX - 1)),
            patience: ATTEMPT,
            ..ConnectOptions::default()
        };
        match around.rpc.connect_with(name.as_str(), &options) {
            Ok(session) => {
                around.sessions.insert(session, (self.id, id));
                let link = Link {
                    id,
                    address,
                    endpoint,
                    session,
                    window: 0,
                    issued: 0,
                    waiting: VecDeque::new(),
                    serving: None,
                };
                put(&mut self.links.all, id.index(), link);
            }
            Err(error) => {
                let error = match error {
                    ConnectError::Failed(failure) => Some(AddressError::Connect(failure)),
                    ConnectError::Open(error) => Some(AddressError::Local(error)),
                    _ => None,
                };
                if let Some(error) = error {
                    self.links.on_error(address, error);
                }
                self.machine.on_closed(id, CloseReason::Refused, around.now);
            }
        }
    }

    pub(super) fn disconnect(&mut self, id: LinkId, around: &mut Around<'_>) {
        if let Some(link) = self.links.remove(id) {
            around.sessions.remove(&link.session);
            // The session may have ended already, before this thread has seen that event.
            let _ = around.rpc.disconnect(link.session);
            let closed = RpcError::SessionClosed(CloseReason::Disconnected, Ran::No);
            for attempt in link.waiting {
                self.never_sent(attempt, closed, around.now);
            }
        }
    }

    /// The state of the channel.
    pub(super) fn state(&self) -> ChannelState {
        let addresses = self.machine.addresses().map(|view| AddressState {
            address: view.name.to_owned(),
            state: view.state,
            last_error: self.links.error(&view),
        });
        ChannelState {
            state: self.machine.state(),
            addresses: addresses.collect(),
        }
    }

    pub(super) fn show(&mut self) {
        self.shown = Some(self.machine.version());
        self.board.show(self.state());
    }
}
