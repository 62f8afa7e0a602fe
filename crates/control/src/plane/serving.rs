//! The services that this process announces, and those that its peers announce (rules C14 and C15).
//! A process that has announced nothing accepts every session; one that drains accepts only
//! sessions with the endpoint that answers health.
//!
//! Called by `plane.rs`, and by `links.rs` and `connecting.rs` when a connection or a session is
//! made.

use dunlin_wire::control::{EndpointIndex, Features, GoodbyeReason, Message, RefuseCode, Serving};

use super::Plane;
use crate::attempt::Attempt;
use crate::types::{Event, LinkId, SessionKey};

impl<F> Plane<F> {
    /// Announces the services of this process to all peers, now and when they connect. While the
    /// process drains, it refuses new sessions, except those with the endpoint that answers health.
    /// Open sessions stay open.
    pub fn serve(&mut self, serving: Serving) {
        self.serving = Some(serving);
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.say_serving(link);
        }
    }

    /// Announces the services of this process to a peer, once both sides have sent Hello.
    pub(super) fn say_serving(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_up()) else {
            return;
        };
        let peer = link.peer.as_ref();
        let knows = |feature| peer.is_some_and(|peer| peer.features.has(feature));
        let serving = match self.serving.filter(|_| knows(Features::SERVING)) {
            Some(serving) if !knows(Features::HEALTH) => Some(serving.without_health()),
            serving => serving,
        };
        if let Some(serving) = serving
            && link.may_say_serving(serving)
        {
            self.send(id, &Message::Serving(serving), Vec::new());
        }
    }

    /// Takes the services that a peer has announced.
    pub(super) fn on_serving(&mut self, id: LinkId, serving: Serving) -> Result<(), GoodbyeReason> {
        let link = self.links.get_mut(&id).ok_or(GoodbyeReason::BadMessage)?;
        if link.on_serving(serving)?.is_some() {
            let open = self.sessions.over(id).map(|(key, _)| key);
            let has_found = |attempt: &&Attempt| attempt.link() == Some(id) && attempt.has_offer();
            let asked = self.attempts.values().filter(has_found);
            let keys: Vec<SessionKey> = open.chain(asked.map(|attempt| attempt.key)).collect();
            for key in keys {
                self.tell_serving(id, key);
            }
        }
        Ok(())
    }

    /// Gives an endpoint the services that the peer of one of its sessions has announced. The
    /// session need not be granted yet: a stuck endpoint of the peer never grants it, and then this
    /// side needs the endpoint that answers health.
    pub(super) fn tell_serving(&mut self, id: LinkId, key: SessionKey) {
        let link = self.links.get(&id);
        let said = link.and_then(|link| Some((link.peer.as_ref()?.incarnation, link.serving?)));
        if let Some((process, serving)) = said {
            let event = Event::Serving {
                key,
                process,
                serving,
            };
            self.tell(key.endpoint, event);
        }
    }

    /// Whether this process accepts a session with this endpoint, or with any endpoint if `target`
    /// is [`EndpointIndex::ANY`].
    pub(super) fn takes(&self, target: EndpointIndex) -> Result<(), RefuseCode> {
        match self.serving {
            Some(serving) if serving.draining && serving.health != Some(target) => {
                Err(RefuseCode::Closing)
            }
            Some(serving) if target == EndpointIndex::ANY && serving.endpoints == 0 => {
                Err(RefuseCode::NoSuchEndpoint)
            }
            _ => Ok(()),
        }
    }

    /// The index after the last endpoint that is found by a peer which asks for any endpoint.
    pub(super) fn end_of_any(&self) -> EndpointIndex {
        let all = EndpointIndex::ANY;
        let end = self.serving.map(|serving| EndpointIndex(serving.endpoints));
        end.unwrap_or(all)
    }
}
