//! Offers of `auto` endpoints: the offers of their transports, one after the other.
//!
//! A part is: its kind (rule C1), number of descriptors, number of bytes, bytes. An offer has one
//! part or two, an answer has one. The control plane carries each part separately, as an offer of
//! its kind. Every received byte is checked. This file also owns the table of offers that wait for
//! answers. Called by `connect`.

use std::collections::{HashMap, HashSet};

use dunlin_wire::control::TransportKind;

use crate::connect::{
    Connect, ConnectError, EndpointUid, MAX_OFFER_BYTES, MAX_OFFER_FDS, Offer, Pending,
};
use crate::shm::Shm;
use crate::udp::Udp;

/// Most offers that may wait for answers. The nexus gives up each one after a while.
const MAX_OFFERED: usize = 1 << 16;

const _: () = {
    assert!(Shm::KIND == TransportKind::SHM.0);
    assert!(Udp::KIND == TransportKind::UDP.0);
};

/// The parts of an offer or an answer.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The offer of shared memory.
    pub(super) shm: Option<Offer>,
    /// The offer of UDP.
    pub(super) udp: Option<Offer>,
}

/// An offer that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The endpoint to which the offer went.
    pub(super) endpoint: EndpointUid,
    /// The part of shared memory, if any.
    pub(super) shm: Option<Pending>,
    /// The part of UDP.
    pub(super) udp: Pending,
}

/// All offers that wait for answers, and the failures of earlier offers.
#[derive(Debug, Default)]
pub(super) struct Offered {
    waiting: HashMap<u64, Waiting>,
    next: u64,
    /// Endpoints with which shared memory could not be completed.
    without_shm: HashSet<EndpointUid>,
    fallback: Fallback,
    /// Why shared memory could not be opened; kept until a peer of this host comes.
    not_opened: Option<ConnectError>,
}

/// The first reason why shared memory with a peer of this host failed.
#[derive(Debug, Default)]
enum Fallback {
    #[default]
    None,
    Why(ConnectError),
    /// A caller has taken the reason.
    Told,
}

impl Offered {
    /// True if one more offer may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_OFFERED
    }

    /// True if no offer waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps a new offer.
    pub(super) fn insert(&mut self, waiting: Waiting) -> Pending {
        self.next += 1;
        self.waiting.insert(self.next, waiting);
        Pending(self.next)
    }

    /// Ends an offer. `None` if there was no such offer.
    pub(super) fn remove(&mut self, pending: &Pending) -> Option<Waiting> {
        self.waiting.remove(&pending.0)
    }

    /// Notes that shared memory with this endpoint failed on our side.
    pub(super) fn give_up_shm(&mut self, endpoint: EndpointUid) {
        // A process that meets this many endpoints forgets the earlier ones. With each of those,
        // shared memory then fails once more.
        if self.without_shm.len() >= MAX_OFFERED {
            self.without_shm.clear();
        }
        self.without_shm.insert(endpoint);
    }

    /// Notes that shared memory could not be opened, which matters only for peers of this host.
    pub(super) fn on_not_opened(&mut self, why: ConnectError) {
        self.not_opened = Some(why);
    }

    /// Notes that a peer of this host has come.
    pub(super) fn on_neighbour(&mut self) {
        if let Some(why) = self.not_opened.take() {
            self.on_fallback(why);
        }
    }

    /// Notes that packets to a peer of this host go over UDP, for this reason.
    pub(super) fn on_fallback(&mut self, why: ConnectError) {
        if matches!(self.fallback, Fallback::None) {
            self.fallback = Fallback::Why(why);
        }
    }

    /// Takes the first reason why packets to a peer of this host go over UDP. Later calls return
    /// `None`.
    pub(super) fn take_fallback(&mut self) -> Option<ConnectError> {
        if !matches!(self.fallback, Fallback::Why(_)) {
            return None;
        }
        match std::mem::replace(&mut self.fallback, Fallback::Told) {
            Fallback::Why(why) => Some(why),
            Fallback::None | Fallback::Told => None,
        }
    }

    /// True unless shared memory with this endpoint has failed before.
    pub(super) fn may_use_shm(&self, endpoint: EndpointUid) -> bool {
        !self.without_shm.contains(&endpoint)
    }
}

impl Parts {
    /// The parts by their kinds, best first.
    pub(super) fn into_kinds(self) -> Vec<(TransportKind, Offer)> {
        let shm = self.shm.map(|part| (TransportKind::SHM, part));
        let udp = self.udp.map(|part| (TransportKind::UDP, part));
        shm.into_iter().chain(udp).collect()
    }

    /// The first part of each kind that is known here; the others are ignored.
    ///
    /// # Errors
    /// `Unreachable` if there is none.
    pub(super) fn from_kinds(kinds: Vec<(TransportKind, Offer)>) -> Result<Self, ConnectError> {
        let mut parts = Self::default();
        for (kind, offer) in kinds {
            match kind {
                TransportKind::SHM => parts.shm.get_or_insert(offer),
                TransportKind::UDP => parts.udp.get_or_insert(offer),
                _ => continue,
            };
        }
        if parts.shm.is_none() && parts.udp.is_none() {
            return Err(ConnectError::Unreachable);
        }
        Ok(parts)
    }

    /// The parts as one offer.
    ///
    /// # Errors
    /// `Sizes` if they are longer than an offer may be: a bug of a transport.
    pub(super) fn encode(self) -> Result<Offer, ConnectError> {
        let mut whole = Offer::default();
        for (kind, part) in [(Shm::KIND, self.shm), (Udp::KIND, self.udp)] {
            let Some(part) = part else { continue };
            let len = u8::try_from(part.bytes.len()).map_err(|_| ConnectError::Sizes)?;
            let fds = u8::try_from(part.fds.len()).map_err(|_| ConnectError::Sizes)?;
            whole.bytes.extend([kind, fds, len]);
            whole.bytes.extend(part.bytes);
            whole.fds.extend(part.fds);
        }
        let fits = whole.bytes.len() <= MAX_OFFER_BYTES && whole.fds.len() <= MAX_OFFER_FDS;
        if fits {
            Ok(whole)
        } else {
            Err(ConnectError::Sizes)
        }
    }

    /// Splits an offer into its parts. Only the transport notices missing descriptors.
    ///
    /// # Errors
    /// `Malformed` if the bytes are not parts, or if a kind occurs twice.
    pub(super) fn decode(whole: Offer) -> Result<Self, ConnectError> {
        let mut parts = Self::default();
        let mut fds = whole.fds.into_iter();
        let mut rest = whole.bytes.as_slice();
        while !rest.is_empty() {
            let ([kind, count, len], behind) =
                rest.split_first_chunk().ok_or(ConnectError::Malformed)?;
            let (bytes, behind) = behind
                .split_at_checked((*len).into())
                .ok_or(ConnectError::Malformed)?;
            let part = match *kind {
                Shm::KIND => &mut parts.shm,
                Udp::KIND => &mut parts.udp,
                _ => return Err(ConnectError::Malformed),
            };
            let fds = fds.by_ref().take((*count).into()).collect();
            if part
                .replace(Offer {
                    bytes: bytes.to_vec(),
                    fds,
                })
                .is_some()
            {
                return Err(ConnectError::Malformed);
            }
            rest = behind;
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests;
