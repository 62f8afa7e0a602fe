//! The sessions of a thread, which `dunlin_channel` orders: its trunks decide when a session begins
//! and ends, and which channel's attempt comes next.

use std::time::Duration;

use dunlin_channel::{Destination, Member, Said, Sessions};
use dunlin_core::{CloseReason, Nanos, Session};
use dunlin_nexus::{ConnectError, ConnectOptions, PeerServing, Rpc};
use dunlin_transport::auto::Auto;

use crate::error::AddressError;
use crate::inbox::Inbox;

/// The timeout of one attempt to connect, after which the reason for its failure is known. The
/// patience of calls does not shorten it: a distant server may need more time than a call has.
const ATTEMPT: Duration = Duration::from_secs(1);

/// The longest time between two questions for a late answer while a server drains.
const HURRY: Nanos = Nanos::from_millis(20);

/// The trunks of a thread.
pub(crate) type Trunks = dunlin_channel::Trunks<Session>;

/// The endpoint of a thread, which has its sessions.
pub(crate) struct Ends<'a>(pub(crate) &'a mut Rpc<Auto, Inbox>);

/// The loss of a trunk, with its reason.
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) members: Vec<Member>,
    pub(crate) reason: CloseReason,
    pub(crate) error: AddressError,
    /// The number of endpoints that serve, if the server has announced it.
    pub(crate) endpoints: Option<u16>,
}

impl Sessions for Ends<'_> {
    type Session = Session;
    type Error = ConnectError;

    fn begin(&mut self, (server, index): &Destination) -> Result<Session, ConnectError> {
        let options = ConnectOptions {
            endpoint: Some(*index),
            patience: ATTEMPT,
            ..ConnectOptions::default()
        };
        self.0.connect_with(&**server, &options)
    }

    fn end(&mut self, session: Session) {
        // The session may have ended already, but this thread has not seen that event yet.
        let _ = self.0.disconnect(session);
    }

    fn hurry(&mut self, drains: bool) {
        let calm = self.0.app_mut().calm.take();
        let before = self.0.cx_again().ask_within(calm.unwrap_or(HURRY));
        if drains {
            self.0.cx_again().ask_within(before.min(HURRY));
            self.0.app_mut().calm = Some(before);
        }
    }
}

/// A server has announced its services.
pub(crate) fn on_serving(trunks: &mut Trunks, news: &PeerServing, endpoint: &mut Rpc<Auto, Inbox>) {
    let said = Said {
        process: news.process,
        serving: news.serving,
    };
    trunks.on_serving(news.session, said, &mut Ends(endpoint));
}

/// A session has ended, or was never made. Returns the loss if the members lose their trunk.
pub(crate) fn on_closed(
    trunks: &mut Trunks,
    (session, reason): (Session, CloseReason),
    endpoint: &mut Rpc<Auto, Inbox>,
    now: Nanos,
) -> Option<Loss> {
    let loss = trunks.on_closed(session, &mut Ends(endpoint), now)?;
    let failure = endpoint.failure(session).filter(|_| !loss.was_open);
    Some(Loss {
        members: loss.members,
        reason,
        error: failure.map_or(AddressError::Session(reason), AddressError::Connect),
        endpoints: loss.endpoints,
    })
}
