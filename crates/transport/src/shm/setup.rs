//! Setting up and freeing channels: the control plane's side of shared memory (design §9, §12). A
//! channel serves one pair of endpoints and all sessions between them.
//!
//! Invariant: whatever an offer or an answer holds, each function here either does all of its work
//! or leaves the endpoint as it was. Called by `endpoint`; the slots are in `channels`.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use dunlin_core::transport::PeerId;

use super::channel::{Bell, Channel, ChannelId, Left, Role};
use super::channels::{Channels, State, index_of};
use super::doorbell::MAX_BITS;
use super::ffi;
use super::handing::{self, Given};
use super::offer::{Kind, Message};
use super::options::{CELLS, INLINE, Options, in_ring};
use super::regions::Told;
use super::rx::ShmRx;
use super::tx::{Outgoing, ShmTx};
use crate::connect::{ConnectError, Offer, PeerInfo, Pending};

/// The bit of a [`Pending`] that is set if the offer was to reuse a channel.
const REUSE: u64 = 1 << 32;

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
    let channels = &mut tx.channels;
    if let Some(known) = channels.preferred(&peer.endpoint) {
        if channels.take_up(known) {
            return Ok(offer_reuse(channels, known));
        }
        channels.avoid(known);
    }
    if peer.same_process {
        offer_here(channels, peer)
    } else {
        offer_new(channels, peer)
    }
}

fn offer_reuse(channels: &Channels, known: PeerId) -> (Pending, Offer) {
    let channel = channels.channel(known).expect("it was taken up");
    let bytes = message(channels, Kind::reuse_by(channel.role), channel, known).encode();
    (
        Pending(REUSE | u64::from(known.0)),
        Offer {
            bytes,
            fds: Vec::new(),
        },
    )
}

fn offer_new(channels: &mut Channels, peer: &PeerInfo) -> Result<(Pending, Offer), ConnectError> {
    let bell = channels.bell_fd()?;
    let (ours, theirs) = ffi::socket_pair()?;
    let id = ChannelId(ffi::random()?);
    let Options {
        cells, trust_peer, ..
    } = channels.options;
    let (channel, memory) = Channel::create(id, peer.endpoint, cells, ours, trust_peer)?;
    let slot = channels.reserve()?;
    let bytes = message(channels, Kind::New, &channel, slot).encode();
    channels.fill(slot, Arc::new(channel), State::Offered);
    Ok((
        Pending(u64::from(slot.0)),
        Offer {
            bytes,
            fds: vec![memory, bell, theirs],
        },
    ))
}

/// Offers a channel to a peer that claims to be in this process. A peer in another process cannot
/// take the channel.
fn offer_here(channels: &mut Channels, peer: &PeerInfo) -> Result<(Pending, Offer), ConnectError> {
    let bell = channels.bell_fd()?;
    let (ours, theirs) = ffi::socket_pair()?;
    let id = ChannelId(ffi::random()?);
    let cells = channels.options.cells;
    let memory = Channel::private_memory(cells)?;
    let slot = channels.reserve()?;
    let end = (id, Role::Creator);
    let terms = terms(channels, Kind::Here, (id, cells), slot);
    let made = Some((Arc::clone(&memory), theirs));
    let bytes = terms.encode();
    let terms = bytes.clone();
    let given = handing::give(name(id, Role::Creator), Given { terms, bell, made });
    let channel = Channel::within(end, peer.endpoint, cells, (memory, ours));
    channels.fill(slot, Arc::new(channel), State::Offered);
    channels.keep(slot, given);
    let fds = Vec::new();
    Ok((Pending(u64::from(slot.0)), Offer { bytes, fds }))
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
        Kind::Here => accept_here(rx, tx, peer, proposal.id),
        Kind::ReuseByCreator => accept_reuse(tx, peer, &proposal, Role::Acceptor),
        Kind::ReuseByAcceptor => accept_reuse(tx, peer, &proposal, Role::Creator),
        Kind::Accepted | Kind::Reused | Kind::Taken => Err(ConnectError::Malformed),
    }
}

fn accept_reuse(
    tx: &mut ShmTx,
    peer: &PeerInfo,
    proposal: &Message,
    role: Role,
) -> Result<(PeerId, Offer), ConnectError> {
    let channels = &mut tx.channels;
    let known = channels
        .find(peer.endpoint, proposal.id, role)
        .ok_or(ConnectError::Gone)?;
    if !channels.take_up(known) {
        return Err(ConnectError::Gone);
    }
    let channel = channels.channel(known).expect("it was taken up");
    let bytes = message(channels, Kind::Reused, channel, known).encode();
    Ok((
        known,
        Offer {
            bytes,
            fds: Vec::new(),
        },
    ))
}

fn accept_new(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: &PeerInfo,
    proposal: &Message,
    fds: Vec<OwnedFd>,
) -> Result<(PeerId, Offer), ConnectError> {
    let channels = &mut tx.channels;
    let longest = check_sizes(channels, proposal, proposal.cells)?;
    let [memory, bell, line] =
        <[OwnedFd; 3]>::try_from(fds).map_err(|_| ConnectError::Descriptor)?;
    let trusted = channels.options.trust_peer;
    let ends = [memory, line];
    let channel = Channel::open(proposal.id, peer.endpoint, proposal.cells, ends, trusted)?;
    let bell = Bell::open(&bell)?;
    let own_bell = channels.bell_fd()?;
    let slot = channels.reserve()?;
    let channel = Arc::new(channel);
    channels.fill(slot, channel.clone(), State::Live { uses: 1 });
    let bytes = message(channels, Kind::Accepted, &channel, slot).encode();
    start(rx, tx, slot, longest, u32::from(proposal.bit), bell)?;
    Ok((
        slot,
        Offer {
            bytes,
            fds: vec![own_bell],
        },
    ))
}

/// Takes a channel that an endpoint of this process has made. It does no harm if the offer that
/// names the channel came through another process.
fn accept_here(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: &PeerInfo,
    id: ChannelId,
) -> Result<(PeerId, Offer), ConnectError> {
    let channels = &mut tx.channels;
    let found = handing::take(name(id, Role::Creator)).ok_or(ConnectError::Gone)?;
    let proposal = Message::decode(&found.terms)?;
    let longest = check_sizes(channels, &proposal, proposal.cells)?;
    let ends = found.made.ok_or(ConnectError::Gone)?;
    let their_bell = Bell::open(&found.bell)?;
    let bell = channels.bell_fd()?;
    let slot = channels.reserve()?;
    let terms = terms(channels, Kind::Taken, (id, proposal.cells), slot);
    let made = None;
    let bytes = terms.encode();
    let terms = bytes.clone();
    let given = handing::give(name(id, Role::Acceptor), Given { terms, bell, made });
    let end = (id, Role::Acceptor);
    let channel = Channel::within(end, peer.endpoint, proposal.cells, ends);
    channels.fill(slot, Arc::new(channel), State::Live { uses: 1 });
    channels.keep(slot, given);
    start(rx, tx, slot, longest, u32::from(proposal.bit), their_bell)?;
    let fds = Vec::new();
    Ok((slot, Offer { bytes, fds }))
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
    let channel = tx.channels.channel(peer).ok_or(ConnectError::Gone)?;
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
    let channels = &mut tx.channels;
    let slot = channels
        .slot(peer)
        .filter(|slot| slot.state == State::Offered);
    let channel = slot
        .and_then(|slot| slot.channel.clone())
        .ok_or(ConnectError::Gone)?;
    let (terms, bell) = answered(&channel, answer)?;
    let longest = check_sizes(channels, &terms, channel.cells)?;
    let bell = Bell::open(&bell)?;
    channels.fill(peer, channel, State::Live { uses: 1 });
    start(rx, tx, peer, longest, u32::from(terms.bit), bell)
}

/// Returns the terms and the doorbell of the end that accepted a new channel. They are in its
/// answer or, if both ends are in this process, in the process's table.
fn answered(channel: &Channel, answer: Offer) -> Result<(Message, OwnedFd), ConnectError> {
    let said = Message::decode(&answer.bytes)?;
    let kind = if channel.is_within() {
        Kind::Taken
    } else {
        Kind::Accepted
    };
    if said.kind != kind || said.id != channel.id {
        return Err(ConnectError::Malformed);
    }
    if channel.is_within() {
        let found = handing::take(name(channel.id, Role::Acceptor)).ok_or(ConnectError::Gone)?;
        return Ok((Message::decode(&found.terms)?, found.bell));
    }
    let [bell] = <[OwnedFd; 1]>::try_from(answer.fds).map_err(|_| ConnectError::Descriptor)?;
    Ok((said, bell))
}

/// See [`crate::connect::Connect::abandon`].
pub(super) fn abandon(rx: &mut ShmRx, tx: &mut ShmTx, pending: Pending) {
    let peer = peer_of(&pending);
    if pending.0 & REUSE != 0 {
        // The peer may no longer know this channel, so the next offer makes a new one.
        tx.channels.avoid(peer);
        release(rx, tx, peer);
    } else if tx
        .channels
        .slot(peer)
        .is_some_and(|slot| slot.state == State::Offered)
    {
        tx.channels.vacate(peer);
    }
}

/// See [`crate::connect::Connect::release`].
pub(super) fn release(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
    free_left(rx, tx);
    let Some(slot) = tx.channels.slot(peer) else {
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
    if let Some(channel) = tx.channels.channel(peer) {
        channel.give_up();
        free(rx, tx, peer);
    }
}

/// Empties the wake-up lines.
pub(super) fn drain_lines(rx: &mut ShmRx, tx: &ShmTx) {
    let woken = tx.channels.drain_lines(|index| rx.on_woken(index));
    rx.count_wakeups(woken);
}

/// Starts to use a channel, once this side has the terms of the other.
fn start(
    rx: &mut ShmRx,
    tx: &mut ShmTx,
    peer: PeerId,
    longest: u32,
    bit: u32,
    bell: Bell,
) -> Result<(), ConnectError> {
    let index = index_of(peer);
    let channel = tx
        .channels
        .channel(peer)
        .expect("the slot was filled")
        .clone();
    if let Err(error) = tx.channels.watch(peer) {
        tx.channels.vacate(peer);
        return Err(error.into());
    }
    tx.channels.prefer(peer, channel.peer);
    let in_ring = in_ring(longest, channel.cells);
    // SAFETY: a channel is started once, and the halves drop the rings before the channel.
    let (consumer, producer) = unsafe { (channel.consumer(in_ring), channel.producer(in_ring)) };
    rx.add(index, consumer, channel.clone());
    tx.add(
        index,
        Outgoing {
            peer,
            ring: producer,
            bit,
            bell,
            unsettled: false,
            by_reference: tx.channels.options.by_reference.max(1),
            longest,
            told: Told::default(),
            references: 0,
            channel,
        },
    );
    Ok(())
}

/// Frees the channels that both sides have left, and those that this side has left and whose other
/// side has died.
fn free_left(rx: &mut ShmRx, tx: &mut ShmTx) {
    drain_lines(rx, tx);
    while let Some(peer) = tx.channels.next_over() {
        free(rx, tx, peer);
    }
}

fn free(rx: &mut ShmRx, tx: &mut ShmTx, peer: PeerId) {
    rx.remove(index_of(peer));
    tx.remove(index_of(peer));
    tx.channels.vacate(peer);
}

/// Returns the longest packet of a channel, or an error if the peer states impossible sizes.
fn check_sizes(channels: &Channels, peer: &Message, cells: u32) -> Result<u32, ConnectError> {
    let longest = channels.longest(peer.data_size);
    let plausible = CELLS.contains(&cells) && u32::from(peer.bit) < MAX_BITS;
    if plausible && longest > INLINE {
        Ok(longest)
    } else {
        Err(ConnectError::Sizes)
    }
}

/// The name under which one end of a channel puts its terms into the table of the process.
const fn name(id: ChannelId, role: Role) -> handing::Name {
    (id.0, role as u8)
}

fn message(channels: &Channels, kind: Kind, channel: &Channel, peer: PeerId) -> Message {
    terms(channels, kind, (channel.id, channel.cells), peer)
}

fn terms(channels: &Channels, kind: Kind, (id, cells): (ChannelId, u32), peer: PeerId) -> Message {
    Message {
        kind,
        cells,
        bit: u16::try_from(index_of(peer)).expect("there are few peers"),
        data_size: channels.options.data_size,
        id,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is the peer")]
const fn peer_of(pending: &Pending) -> PeerId {
    PeerId(pending.0 as u32)
}
