//! Channels come and go: the control plane's side of shared memory (design §9, §12).
//!
//! A channel serves one pair of endpoints and all sessions between them. The state of a slot:
//!
//! ```text
//! Free ──offer──▶ Offered ──complete──▶ Live{uses} ──last release──▶ Left ──other side left──▶ Free
//!  │                 └──abandon──▶ Free    ▲  │ ▲                       │
//!  └──────────────accept───────────────────┘  │ └───offer or accept─────┘
//!                                             └──remove──▶ Free
//! ```
//!
//! Invariants: a slot that is not `Free` has a channel; `Live` and `Left` slots have both rings in
//! the halves; `by_peer` names only slots in those two states. The generation in a [`PeerId`]
//! changes when its slot becomes free, and slots are used again in the order in which they became
//! free.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use dunlin_core::transport::PeerId;

use super::channel::{Bell, Channel, ChannelId, Left, Role};
use super::doorbell::MAX_BITS;
use super::endpoint::{CELLS, INLINE, Options};
use super::offer::{Kind, Message};
use super::ring::longest_packet;
use super::rx::ShmRx;
use super::tx::{INDEX_BITS, Outgoing, ShmTx, index_of};
use super::{ffi, tx};
use crate::connect::{ConnectError, EndpointUid, Offer, PeerInfo, Pending};

/// What an endpoint knows of its channels besides their rings.
#[derive(Debug)]
pub(super) struct Setup {
    options: Options,
    bell_fd: OwnedFd,
    /// Becomes readable when a peer wakes us.
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: VecDeque<u32>,
    by_peer: HashMap<EndpointUid, PeerId>,
    /// What `arm` has promised.
    pub(super) armed: bool,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    state: State,
    channel: Option<Arc<Channel>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Free,
    Offered,
    Live {
        uses: u32,
    },
    Left,
}

/// In a [`Pending`]: the offer was to use an old channel.
const REUSE: u64 = 1 << 32;

/// Generations of a slot, so that the topmost bit of a [`PeerId`] stays 0.
const GENERATIONS: u32 = 1 << (31 - INDEX_BITS);

impl Setup {
    pub(super) fn new(options: Options, bell_fd: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            options,
            bell_fd,
            epoll: ffi::create_epoll()?,
            slots: Vec::new(),
            free: VecDeque::new(),
            by_peer: HashMap::new(),
            armed: false,
        })
    }

    /// The descriptor that becomes readable when a peer wakes us.
    pub(super) fn wake_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Longest packet of a channel to a peer whose packets have up to `data_size` bytes.
    fn longest(&self, data_size: u32) -> u32 {
        self.options.data_size.min(data_size) + INLINE
    }

    fn channel(&self, peer: PeerId) -> Option<&Arc<Channel>> {
        let slot = self.slots.get(index_of(peer))?;
        slot.channel.as_ref().filter(|_| slot.generation == generation_of(peer))
    }

    fn slot(&mut self, peer: PeerId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(index_of(peer))?;
        (slot.generation == generation_of(peer) && slot.channel.is_some()).then_some(slot)
    }

    /// Finds a free slot.
    fn reserve(&mut self) -> Result<PeerId, ConnectError> {
        let fresh = u32::try_from(self.slots.len()).expect("there are few peers");
        // As long as there are fresh slots, an old one is left alone.
        let index = if fresh < self.options.max_peers {
            self.slots.push(Slot::default());
            self.slots[fresh as usize].generation = 1;
            fresh
        } else {
            self.free.pop_front().ok_or(ConnectError::TooManyPeers)?
        };
        Ok(PeerId(self.slots[index as usize].generation << INDEX_BITS | index))
    }

    /// Empties a slot, or gives a reserved one back.
    fn vacate(&mut self, peer: PeerId) {
        let index = index_of(peer);
        let slot = &mut self.slots[index];
        slot.state = State::Free;
        slot.generation = (slot.generation + 1) % GENERATIONS;
        if let Some(channel) = slot.channel.take() {
            ffi::unwatch(&self.epoll, channel.line());
            if self.by_peer.get(&channel.peer) == Some(&peer) {
                self.by_peer.remove(&channel.peer);
            }
        }
        self.free.push_back(u32::try_from(index).expect("there are few peers"));
    }

    fn fill(&mut self, peer: PeerId, channel: Arc<Channel>, state: State) {
        let slot = &mut self.slots[index_of(peer)];
        slot.channel = Some(channel);
        slot.state = state;
    }

    /// One use more of a slot that is live or was left. False if its channel is gone.
    fn take_up(&mut self, peer: PeerId) -> bool {
        let Some(slot) = self.slot(peer) else {
            return false;
        };
        let channel = slot.channel.as_ref().expect("the slot is not free");
        let uses = match slot.state {
            State::Live { uses } if !channel.is_given_up() => uses,
            State::Left if channel.come_back() => 0,
            _ => return false,
        };
        slot.state = State::Live { uses: uses + 1 };
        true
    }

    /// The slot of the channel with that name and peer, of which we are the end `role`.
    fn find(&self, peer: EndpointUid, id: ChannelId, role: Role) -> Option<PeerId> {
        let matches = |channel: &Channel| {
            channel.id == id && channel.peer == peer && channel.role == role
        };
        let index = self.slots.iter().position(|slot| {
            matches!(slot.state, State::Live { .. } | State::Left)
                && slot.channel.as_ref().is_some_and(|channel| matches(channel))
        })?;
        let generation = self.slots[index].generation;
        Some(PeerId(generation << INDEX_BITS | u32::try_from(index).ok()?))
    }

    fn bell_fd(&self) -> io::Result<OwnedFd> {
        self.bell_fd.try_clone()
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        for channel in self.slots.iter().filter_map(|slot| slot.channel.as_ref()) {
            channel.give_up();
        }
    }
}

/// See [`crate::connect::Connect::offer`].
pub(super) fn offer(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: &PeerInfo,
) -> Result<(Pending, Offer), ConnectError> {
    if !peer.same_host {
        return Err(ConnectError::Unreachable);
    }
    free_left(rx, tx);
    let setup = &mut tx.setup;
    if let Some(&known) = setup.by_peer.get(&peer.endpoint) {
        if setup.take_up(known) {
            return Ok(offer_reuse(setup, known));
        }
        setup.by_peer.remove(&peer.endpoint);
    }
    offer_new(setup, peer)
}

fn offer_reuse(setup: &Setup, known: PeerId) -> (Pending, Offer) {
    let channel = setup.channel(known).expect("it was taken up");
    let bytes = message(setup, Kind::reuse_by(channel.role), channel, known).encode();
    (Pending(REUSE | u64::from(known.0)), Offer { bytes, fds: Vec::new() })
}

fn offer_new(setup: &mut Setup, peer: &PeerInfo) -> Result<(Pending, Offer), ConnectError> {
    let bell = setup.bell_fd()?;
    let (ours, theirs) = ffi::socket_pair()?;
    let id = ChannelId(ffi::random()?);
    let trusted = peer.same_process || setup.options.trust_peer;
    let (channel, memory) =
        Channel::create(id, peer.endpoint, setup.options.cells, ours, trusted)?;
    let slot = setup.reserve()?;
    let bytes = message(setup, Kind::New, &channel, slot).encode();
    setup.fill(slot, Arc::new(channel), State::Offered);
    Ok((Pending(u64::from(slot.0)), Offer { bytes, fds: vec![memory, bell, theirs] }))
}

/// See [`crate::connect::Connect::accept`].
pub(super) fn accept(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: &PeerInfo,
    offer: Offer,
) -> Result<(PeerId, Offer), ConnectError> {
    if !peer.same_host {
        return Err(ConnectError::Unreachable);
    }
    free_left(rx, tx);
    let proposal = Message::decode(&offer.bytes)?;
    match proposal.kind {
        Kind::New => accept_new(rx, tx, peer, &proposal, offer.fds),
        Kind::ReuseByCreator => accept_reuse(tx, peer, &proposal, Role::Acceptor),
        Kind::ReuseByAcceptor => accept_reuse(tx, peer, &proposal, Role::Creator),
        Kind::Accepted | Kind::Reused => Err(ConnectError::Malformed),
    }
}

fn accept_reuse(
    tx: &mut ShmTx,
    peer: &PeerInfo,
    proposal: &Message,
    role: Role,
) -> Result<(PeerId, Offer), ConnectError> {
    let setup = &mut tx.setup;
    let known = setup.find(peer.endpoint, proposal.id, role).ok_or(ConnectError::Gone)?;
    if !setup.take_up(known) {
        return Err(ConnectError::Gone);
    }
    let channel = setup.channel(known).expect("it was taken up");
    let bytes = message(setup, Kind::Reused, channel, known).encode();
    Ok((known, Offer { bytes, fds: Vec::new() }))
}

fn accept_new(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: &PeerInfo,
    proposal: &Message,
    fds: Vec<OwnedFd>,
) -> Result<(PeerId, Offer), ConnectError> {
    let setup = &mut tx.setup;
    let longest = check_sizes(setup, proposal, proposal.cells)?;
    let [memory, bell, line] = <[OwnedFd; 3]>::try_from(fds)
        .map_err(|_| ConnectError::Descriptor)?;
    let trusted = peer.same_process || setup.options.trust_peer;
    let ends = [memory, line];
    let channel = Channel::open(proposal.id, peer.endpoint, proposal.cells, ends, trusted)?;
    let bell = Bell::open(&bell)?;
    let own_bell = setup.bell_fd()?;
    let slot = setup.reserve()?;
    let channel = Arc::new(channel);
    setup.fill(slot, channel.clone(), State::Live { uses: 1 });
    let bytes = message(setup, Kind::Accepted, &channel, slot).encode();
    start(rx, tx, slot, longest, u32::from(proposal.bit), bell)?;
    Ok((slot, Offer { bytes, fds: vec![own_bell] }))
}

/// See [`crate::connect::Connect::complete`].
pub(super) fn complete(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    pending: Pending,
    answer: Offer,
) -> Result<PeerId, ConnectError> {
    let peer = peer_of(&pending);
    let is_reuse = pending.0 & REUSE != 0;
    let result = if is_reuse {
        complete_reuse(tx, peer, &answer)
    } else {
        complete_new(rx, tx, peer, answer)
    };
    if result.is_err() {
        abandon(rx, tx, pending);
    }
    result.map(|()| peer)
}

fn complete_reuse(tx: &ShmTx, peer: PeerId, answer: &Offer) -> Result<(), ConnectError> {
    let channel = tx.setup.channel(peer).ok_or(ConnectError::Gone)?;
    let answer = Message::decode(&answer.bytes)?;
    if answer.kind == Kind::Reused && answer.id == channel.id {
        Ok(())
    } else {
        Err(ConnectError::Malformed)
    }
}

fn complete_new(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: PeerId,
    answer: Offer,
) -> Result<(), ConnectError> {
    let setup = &mut tx.setup;
    let slot = setup.slot(peer).filter(|slot| slot.state == State::Offered);
    let channel = slot.and_then(|slot| slot.channel.clone()).ok_or(ConnectError::Gone)?;
    let terms = Message::decode(&answer.bytes)?;
    if terms.kind != Kind::Accepted || terms.id != channel.id {
        return Err(ConnectError::Malformed);
    }
    let longest = check_sizes(setup, &terms, channel.cells)?;
    let [bell] = <[OwnedFd; 1]>::try_from(answer.fds).map_err(|_| ConnectError::Descriptor)?;
    let bell = Bell::open(&bell)?;
    setup.fill(peer, channel, State::Live { uses: 1 });
    start(rx, tx, peer, longest, u32::from(terms.bit), bell)
}

/// See [`crate::connect::Connect::abandon`].
pub(super) fn abandon(rx: &mut ShmRx, tx: &mut ShmTx, pending: Pending) {
    let peer = peer_of(&pending);
    if pending.0 & REUSE != 0 {
        // The peer may not know the channel any more: the next offer makes another.
        tx.setup.by_peer.retain(|_, known| *known != peer);
        release(rx, tx, peer);
    } else if tx.setup.slot(peer).is_some_and(|slot| slot.state == State::Offered) {
        tx.setup.vacate(peer);
    }
}

/// See [`crate::connect::Connect::release`].
pub(super) fn release(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
    free_left(rx, tx);
    let Some(slot) = tx.setup.slot(peer) else {
        return;
    };
    let State::Live { uses } = slot.state else {
        return;
    };
    if uses > 1 {
        slot.state = State::Live { uses: uses - 1 };
        return;
    }
    let channel = slot.channel.as_ref().expect("the slot is live");
    match channel.leave() {
        Left::First => slot.state = State::Left,
        Left::Last => free(rx, tx, peer),
    }
}

/// See [`crate::connect::Connect::remove`].
pub(super) fn remove(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
    if let Some(channel) = tx.setup.channel(peer) {
        channel.give_up();
        free(rx, tx, peer);
    }
}

/// Empties the wake-up lines after a sleep. A line whose other end is gone is not watched any
/// more: the control plane will say that the peer is dead.
pub(super) fn drain_lines(rx: &mut ShmRx, tx: &mut ShmTx) {
    let setup = &tx.setup;
    ffi::ready(&setup.epoll, |index| {
        let channel = setup.slots.get(index as usize).and_then(|slot| slot.channel.as_ref());
        let Some(channel) = channel else { return };
        if ffi::drain(channel.line()) {
            rx.count_wakeup();
        } else {
            ffi::unwatch(&setup.epoll, channel.line());
        }
    });
}

/// Takes a channel into service whose two sides know each other.
fn start(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: PeerId,
    longest: u32,
    bit: u32,
    bell: Bell,
) -> Result<(), ConnectError> {
    let index = index_of(peer);
    let channel = tx.setup.channel(peer).expect("the slot was filled").clone();
    let number = u32::try_from(index).expect("there are few peers");
    if let Err(error) = ffi::watch(&tx.setup.epoll, channel.line(), number) {
        tx.setup.vacate(peer);
        return Err(error.into());
    }
    tx.setup.by_peer.entry(channel.peer).or_insert(peer);
    // SAFETY: a channel is started once, and the halves drop the rings before the channel.
    let (consumer, producer) = unsafe { (channel.consumer(longest), channel.producer(longest)) };
    rx.add(index, consumer, channel.clone());
    tx.add(index, Outgoing { peer, ring: producer, bit, bell, channel });
    Ok(())
}

/// Frees the channels that we left and that the other side has left since.
fn free_left(rx: &mut ShmRx, tx: &mut ShmTx) {
    let is_over = |slot: &Slot| {
        let over = slot.channel.as_ref().is_some_and(|channel| channel.other_has_left());
        slot.state == State::Left && over
    };
    while let Some(index) = tx.setup.slots.iter().position(is_over) {
        let generation = tx.setup.slots[index].generation;
        let index = u32::try_from(index).expect("there are few peers");
        free(rx, tx, PeerId(generation << INDEX_BITS | index));
    }
}

fn free(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
    rx.remove(index_of(peer));
    tx.remove(index_of(peer));
    tx.setup.vacate(peer);
}

/// Finds the longest packet of a channel, or that the sizes do not fit together.
fn check_sizes(setup: &Setup, peer: &Message, cells: u32) -> Result<u32, ConnectError> {
    let longest = setup.longest(peer.data_size);
    let plausible = CELLS.contains(&cells) && u32::from(peer.bit) < MAX_BITS;
    if plausible && longest <= longest_packet(cells) {
        Ok(longest)
    } else {
        Err(ConnectError::Sizes)
    }
}

fn message(setup: &Setup, kind: Kind, channel: &Channel, peer: PeerId) -> Message {
    Message {
        kind,
        cells: channel.cells,
        bit: u16::try_from(tx::index_of(peer)).expect("there are few peers"),
        data_size: setup.options.data_size,
        id: channel.id,
    }
}

const fn generation_of(peer: PeerId) -> u32 {
    peer.0 >> INDEX_BITS
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is the peer")]
const fn peer_of(pending: &Pending) -> PeerId {
    PeerId(pending.0 as u32)
}
