//! The simulated transports between endpoints: memory shared by two processes of one host, like the
//! shared-memory transport, and datagrams, like UDP. An endpoint offers both if it can, and the
//! acceptor chooses, as with `auto`.
//!
//! The state of a channel of memory, at one of its two ends:
//!
//! ```text
//! (none) ──offer──▶ Offered ──complete──▶ Live{uses, promised} ──last release──▶ Left
//!    │                 └──abandon──▶ (none)    ▲  ▲                               │
//!    └─────────────accept──────────────────────┘  └────────offer or accept────────┘
//! ```
//! `remove` ends it in any of these states; in `Left`, so does the departure of the other end. This
//! file handles only offers and the ends of sessions. Packets take the path of all frames, but
//! those to a peer that is not `Live` are dropped.
//!
//! Called by the cluster's adapter of the handshake, and by `transport`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use dunlin_control::{PeerIdentity, TransportOffer, TransportOffers};
use dunlin_core::transport::PeerId;
use dunlin_wire::control::{EndpointUid, RefuseCode, TransportKind};

use crate::world::net::descriptors::{Fd, Memory};

/// An offer that waits for its answer.
#[derive(Debug)]
pub(crate) struct Pending {
    uid: EndpointUid,
    /// The channel that was offered, and whether it existed before.
    memory: Option<(PeerId, bool)>,
}

/// The peers of one endpoint.
#[derive(Debug)]
pub(crate) struct Channels {
    port: usize,
    ends: BTreeMap<PeerId, End>,
    preferred: BTreeMap<EndpointUid, PeerId>,
    last: u32,
    /// Descriptors that are open, over all processes.
    open: Rc<Cell<u64>>,
    violation: Option<String>,
}

/// This end of a channel, or of a peer that gets datagrams.
#[derive(Debug)]
struct End {
    uid: EndpointUid,
    state: State,
    /// The shared memory and the number of this end in it; `None` for datagrams.
    memory: Option<(Rc<Memory>, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Offered,
    Live { uses: u32, promised: u32 },
    Left,
}

/// The most ports: the low half of a [`PeerId`] is the port, the upper half makes it unique.
const PORTS: u32 = 1 << 16;
/// Frames to this port reach no process.
pub(super) const NOWHERE: PeerId = PeerId(PORTS - 1);

/// The first byte of an offer or answer of memory.
const NEW: u8 = 0;
const REUSE: u8 = 1;
const ANSWER: u8 = 2;

/// The port of a peer.
pub(crate) const fn port_of(peer: PeerId) -> usize {
    (peer.0 % PORTS) as usize
}

impl Channels {
    pub(super) fn new(port: usize, open: Rc<Cell<u64>>) -> Self {
        Self {
            port,
            ends: BTreeMap::new(),
            preferred: BTreeMap::new(),
            last: 0,
            open,
            violation: None,
        }
    }

    /// Whether packets to this peer reach it. This is always so if the peer's id is only its port,
    /// because this file does not manage such peers.
    pub(super) fn reaches(&self, peer: PeerId) -> bool {
        let live = |end: &End| matches!(end.state, State::Live { .. });
        peer.0 < PORTS || self.ends.get(&peer).is_some_and(live)
    }

    /// Whether packets to this peer cross the network.
    pub(crate) fn uses_datagrams(&self, peer: PeerId) -> bool {
        self.ends.get(&peer).is_some_and(|end| end.memory.is_none())
    }

    /// Sessions with this peer, as the handshake has counted them here.
    pub(crate) fn uses(&self, peer: PeerId) -> u32 {
        match self.ends.get(&peer).map(|end| end.state) {
            Some(State::Live { uses, .. }) => uses,
            _ => 0,
        }
    }

    /// Sessions with all peers, as the handshake has counted them here.
    pub(crate) fn all_uses(&self) -> u32 {
        self.ends.keys().map(|peer| self.uses(*peer)).sum()
    }

    /// Uses and offers of all peers.
    pub(crate) fn in_use(&self) -> u32 {
        let of = |end: &End| match end.state {
            State::Offered => 1,
            State::Live { uses, promised } => uses + promised,
            State::Left => 0,
        };
        self.ends.values().map(of).sum()
    }

    /// The first invariant that was found broken.
    pub(crate) fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Makes the channel of an offer vanish before the offer is completed, as if the peer had died.
    /// Sessions that use the channel keep it.
    pub(crate) fn lose(&mut self, pending: &Pending) {
        if let Some((peer, _)) = pending.memory
            && self.uses(peer) == 0
        {
            self.remove(peer);
        }
    }

    pub(crate) fn offer(&mut self, peer: &PeerIdentity) -> (Pending, TransportOffers<Fd>) {
        let uid = peer.endpoint;
        let mut offers = Vec::new();
        let memory = peer.same_host.then(|| self.offer_memory(uid, &mut offers));
        offers.push(self.datagrams());
        (Pending { uid, memory }, offers)
    }

    pub(crate) fn accept(
        &mut self,
        peer: &PeerIdentity,
        offers: TransportOffers<Fd>,
    ) -> Result<(PeerId, TransportOffers<Fd>), RefuseCode> {
        let port = port_in(&offers).ok_or(RefuseCode::NoCommonTransport)?;
        let (memory, _) = apart(offers);
        let Some(mut memory) = memory.filter(|_| peer.same_host) else {
            let id = self.use_datagrams(peer.endpoint, port);
            return Ok((id, vec![self.datagrams()]));
        };
        let (what, channel) = read(&memory.bytes).ok_or(RefuseCode::BadParameters)?;
        let id = match (what, memory.fds.pop()) {
            (NEW, Some(fd)) => self.open_memory(peer.endpoint, port, &fd),
            (REUSE, None) => self.take_up_named(peer.endpoint, channel)?,
            _ => return Err(RefuseCode::BadParameters),
        };
        Ok((id, vec![self.memory(ANSWER, channel, Vec::new())]))
    }

    pub(crate) fn complete(
        &mut self,
        pending: Pending,
        answer: TransportOffers<Fd>,
    ) -> Result<PeerId, RefuseCode> {
        let port = port_in(&answer).ok_or(RefuseCode::BadParameters);
        let (memory, datagrams) = apart(answer);
        match (port, memory, datagrams, pending.memory) {
            (Ok(port), None, Some(_), _) => {
                let uid = pending.uid;
                self.abandon(pending);
                Ok(self.use_datagrams(uid, port))
            }
            (Ok(port), Some(answer), None, Some((peer, reuse))) => {
                let named = read(&answer.bytes).map(|(_, channel)| channel);
                self.complete_memory(pending, peer, reuse, port, named)
            }
            _ => {
                self.abandon(pending);
                Err(RefuseCode::BadParameters)
            }
        }
    }

    pub(crate) fn abandon(&mut self, pending: Pending) {
        let Some((peer, reuse)) = pending.memory else {
            return;
        };
        let Some(end) = self.ends.get_mut(&peer) else {
            return;
        };
        match &mut end.state {
            State::Offered if !reuse => self.forget(peer),
            State::Live { promised, .. } if reuse => {
                *promised -= 1;
                // The peer may have forgotten the channel, so the next offer makes another one.
                self.preferred.retain(|_, known| *known != peer);
                self.leave_if_unused(peer);
            }
            _ => self.violate(format!("an offer of {peer:?} is abandoned twice")),
        }
    }

    pub(crate) fn release(&mut self, peer: PeerId) {
        let Some(end) = self.ends.get_mut(&peer) else {
            return;
        };
        match &mut end.state {
            State::Live { uses, .. } if *uses > 0 => {
                *uses -= 1;
                self.leave_if_unused(peer);
            }
            _ => self.violate(format!("{peer:?} is released, but is not in use")),
        }
    }

    pub(crate) fn remove(&mut self, peer: PeerId) {
        if let Some((memory, _)) = self.ends.get(&peer).and_then(|end| end.memory.as_ref()) {
            memory.given_up.set(true);
        }
        self.forget(peer);
    }

    fn offer_memory(
        &mut self,
        uid: EndpointUid,
        offers: &mut TransportOffers<Fd>,
    ) -> (PeerId, bool) {
        self.forget_left();
        if let Some(known) = self.preferred.get(&uid).copied() {
            if let Some(channel) = self.take_up(known, (0, 1)) {
                offers.push(self.memory(REUSE, channel, Vec::new()));
                return (known, true);
            }
            self.preferred.remove(&uid);
        }
        // There may be several channels to the peer: existing sessions may use one that new
        // sessions must avoid.
        let of_peer = || self.ends.values().filter(|end| end.uid == uid);
        let is_used = |end: &End| matches!(end.state, State::Live { uses: 1.., .. });
        if of_peer().any(|end| end.state == State::Offered) && !of_peer().any(is_used) {
            self.violate("two channels are offered to one endpoint".to_owned());
        }
        // The port is known only when the answer arrives; until then, packets to the peer are
        // dropped.
        let peer = self.fresh(NOWHERE);
        let id = u64::from(peer.0) << 16 | self.port as u64;
        let memory = Rc::new(Memory::new(id));
        let fd = Fd::new(&memory, &self.open);
        offers.push(self.memory(NEW, id, vec![fd]));
        let end = End {
            uid,
            state: State::Offered,
            memory: Some((memory, 0)),
        };
        self.ends.insert(peer, end);
        (peer, false)
    }

    fn open_memory(&mut self, uid: EndpointUid, port: usize, fd: &Fd) -> PeerId {
        self.forget_left();
        let memory = fd.memory();
        memory.here[1].set(true);
        let memory = Some((memory, 1));
        self.insert_live(uid, port, memory)
    }

    fn complete_memory(
        &mut self,
        pending: Pending,
        peer: PeerId,
        reuse: bool,
        port: usize,
        named: Option<u64>,
    ) -> Result<PeerId, RefuseCode> {
        let memory = self.ends.get(&peer).and_then(|end| end.memory.clone());
        let Some((memory, role)) = memory.filter(|(memory, _)| !memory.given_up.get()) else {
            self.abandon(pending);
            return Err(RefuseCode::Busy);
        };
        if named != Some(memory.id) {
            self.abandon(pending);
            return Err(RefuseCode::BadParameters);
        }
        if reuse {
            if let Some(State::Live { uses, promised }) = self.state(peer) {
                (*uses, *promised) = (*uses + 1, *promised - 1);
            }
            return Ok(peer);
        }
        self.ends.remove(&peer);
        Ok(self.insert_live(pending.uid, port, Some((memory, role))))
    }

    fn use_datagrams(&mut self, uid: EndpointUid, port: usize) -> PeerId {
        let known = |(_, end): &(&PeerId, &mut End)| end.uid == uid && end.memory.is_none();
        if let Some((peer, end)) = self.ends.iter_mut().find(known) {
            if let State::Live { uses, .. } = &mut end.state {
                *uses += 1;
            }
            return *peer;
        }
        self.insert_live(uid, port, None)
    }

    fn insert_live(
        &mut self,
        uid: EndpointUid,
        port: usize,
        memory: Option<(Rc<Memory>, usize)>,
    ) -> PeerId {
        let peer = self.fresh(PeerId(u32::try_from(port).unwrap_or(NOWHERE.0)));
        if memory.is_some() {
            self.preferred.entry(uid).or_insert(peer);
        }
        let state = State::Live {
            uses: 1,
            promised: 0,
        };
        self.ends.insert(peer, End { uid, state, memory });
        peer
    }

    /// Adds a use to an existing channel that the other side has named.
    fn take_up_named(&mut self, uid: EndpointUid, channel: u64) -> Result<PeerId, RefuseCode> {
        let named = |(_, end): &(&PeerId, &End)| {
            let memory = end.memory.as_ref();
            end.uid == uid && memory.is_some_and(|(memory, _)| memory.id == channel)
        };
        let known = self.ends.iter().find(named).map(|(peer, _)| *peer);
        let taken = known.filter(|peer| self.take_up(*peer, (1, 0)).is_some());
        taken.ok_or(RefuseCode::Busy)
    }

    /// Adds uses and promises to a channel; returns its name, if it still exists.
    fn take_up(&mut self, peer: PeerId, more: (u32, u32)) -> Option<u64> {
        let end = self.ends.get_mut(&peer)?;
        let (memory, role) = end.memory.as_ref()?;
        let (uses, promised) = match end.state {
            State::Live { uses, promised } if !memory.given_up.get() => (uses, promised),
            State::Left if !memory.given_up.get() && memory.here[1 - role].get() => (0, 0),
            _ => return None,
        };
        memory.here[*role].set(true);
        end.state = State::Live {
            uses: uses + more.0,
            promised: promised + more.1,
        };
        Some(memory.id)
    }

    fn leave_if_unused(&mut self, peer: PeerId) {
        let unused = State::Live {
            uses: 0,
            promised: 0,
        };
        let Some(end) = self.ends.get_mut(&peer).filter(|end| end.state == unused) else {
            return;
        };
        match &end.memory {
            Some((memory, role)) if memory.here[1 - role].get() && !memory.given_up.get() => {
                memory.here[*role].set(false);
                end.state = State::Left;
            }
            _ => self.forget(peer),
        }
    }

    /// Forgets the channels that both sides have left.
    fn forget_left(&mut self) {
        let over = |(_, end): &(&PeerId, &End)| {
            let memory = end.memory.as_ref();
            let alone = memory.is_some_and(|(memory, role)| !memory.here[1 - role].get());
            let given_up = memory.is_some_and(|(memory, _)| memory.given_up.get());
            end.state == State::Left && (alone || given_up)
        };
        while let Some(peer) = self.ends.iter().find(over).map(|(peer, _)| *peer) {
            self.forget(peer);
        }
    }

    fn forget(&mut self, peer: PeerId) {
        if let Some((memory, role)) = self.ends.remove(&peer).and_then(|end| end.memory) {
            memory.here[role].set(false);
        }
        self.preferred.retain(|_, known| *known != peer);
    }

    fn state(&mut self, peer: PeerId) -> Option<&mut State> {
        self.ends.get_mut(&peer).map(|end| &mut end.state)
    }

    /// The next id. Ids repeat after 2^15 peers.
    const fn fresh(&mut self, port: PeerId) -> PeerId {
        self.last = (self.last + 1) % (PORTS / 2);
        PeerId(((self.last + 1) * PORTS) | (port.0 % PORTS))
    }

    fn violate(&mut self, what: String) {
        let port = self.port;
        self.violation.get_or_insert(format!("port {port}: {what}"));
    }

    fn datagrams(&self) -> TransportOffer<Fd> {
        TransportOffer {
            kind: TransportKind::SIM,
            bytes: (self.port as u64).to_le_bytes().to_vec(),
            fds: Vec::new(),
        }
    }

    fn memory(&self, what: u8, channel: u64, fds: Vec<Fd>) -> TransportOffer<Fd> {
        let mut bytes = (self.port as u64).to_le_bytes().to_vec();
        bytes.push(what);
        bytes.extend(channel.to_le_bytes());
        let kind = TransportKind::SHM;
        TransportOffer { kind, bytes, fds }
    }
}

impl Drop for Channels {
    /// The process is gone. The kernel would inform the processes that share memory with it.
    fn drop(&mut self) {
        for (memory, _) in self.ends.values().filter_map(|end| end.memory.as_ref()) {
            memory.given_up.set(true);
        }
    }
}

type Part = Option<TransportOffer<Fd>>;

/// Splits an offer into the parts for memory and for datagrams.
fn apart(offers: TransportOffers<Fd>) -> (Part, Part) {
    let (memory, datagrams): (Vec<_>, Vec<_>) = offers
        .into_iter()
        .partition(|offer| offer.kind == TransportKind::SHM);
    (memory.into_iter().next(), datagrams.into_iter().next())
}

/// The port of the side that made an offer or answer.
fn port_in(offers: &TransportOffers<Fd>) -> Option<usize> {
    let bytes = offers.first()?.bytes.first_chunk()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

/// The first byte of an offer of memory, and the channel's name.
fn read(bytes: &[u8]) -> Option<(u8, u64)> {
    let (what, channel) = bytes.get(8..)?.split_first()?;
    let channel = u64::from_le_bytes(channel.try_into().ok()?);
    Some((*what, channel))
}
