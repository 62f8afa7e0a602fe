//! The channels of an endpoint and the slots that hold them: the table that `setup` works on.
//!
//! The state of a slot:
//!
//! ```text
//! Free ──offer──▶ Offered ──complete──▶ Live{uses} ──last release──▶ Left ──peer left──▶ Free
//!  │                 └──abandon──▶ Free    ▲  │ ▲                       │
//!  └──────────────accept───────────────────┘  │ └───offer or accept─────┘
//!                                             └──remove──▶ Free
//! ```
//!
//! Invariants: a slot that is not `Free` has a channel; `Live` and `Left` slots have both rings in
//! the halves; `by_peer` contains only slots in those two states. The generation in a [`PeerId`]
//! changes when its slot becomes free, and free slots are reused oldest first.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use dunlin_core::transport::PeerId;

use super::channel::{Channel, ChannelId, Role};
use super::ffi;
use super::handing::Held;
use super::options::{INLINE, Options};
use crate::connect::{ConnectError, EndpointUid};

/// The state of the endpoint's channels, except their rings.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) options: Options,
    bell_fd: OwnedFd,
    /// Becomes readable when a peer wakes us.
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    by_peer: HashMap<EndpointUid, PeerId>,
    /// Whether `arm` was called, and `disarm` has not been called since.
    pub(super) armed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Slot {
    generation: u32,
    pub(super) state: State,
    pub(super) channel: Option<Arc<Channel>>,
    /// The entry of this end's terms in the process's table, until the other end, which is in the
    /// same process, takes them.
    pub(super) given: Option<Held>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    #[default]
    Free,
    Offered,
    Live {
        uses: u32,
    },
    Left,
}

/// Bits of a [`PeerId`] that are the index. The bits above are the generation, except for the
/// topmost bit, which stays 0 for `auto`.
const INDEX_BITS: u32 = 12;

const _: () = assert!(super::doorbell::MAX_BITS <= 1 << INDEX_BITS);

/// Number of generations of a slot, so that the topmost bit of a [`PeerId`] stays 0.
const GENERATIONS: u32 = 1 << (31 - INDEX_BITS);

impl Channels {
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
    pub(super) fn longest(&self, data_size: u32) -> u32 {
        self.options.data_size.min(data_size) + INLINE
    }

    pub(super) fn channel(&self, peer: PeerId) -> Option<&Arc<Channel>> {
        let slot = self.slots.get(index_of(peer))?;
        slot.channel
            .as_ref()
            .filter(|_| slot.generation == generation_of(peer))
    }

    pub(super) fn slot(&mut self, peer: PeerId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(index_of(peer))?;
        (slot.generation == generation_of(peer) && slot.channel.is_some()).then_some(slot)
    }

    /// The channel to offer for another session with this endpoint.
    pub(super) fn preferred(&self, endpoint: &EndpointUid) -> Option<PeerId> {
        self.by_peer.get(endpoint).copied()
    }

    /// Prefers this channel from now on, unless there is a preferred one.
    pub(super) fn prefer(&mut self, peer: PeerId, endpoint: EndpointUid) {
        self.by_peer.entry(endpoint).or_insert(peer);
    }

    /// Stops offering this channel for further sessions.
    pub(super) fn avoid(&mut self, peer: PeerId) {
        self.by_peer.retain(|_, known| *known != peer);
    }

    /// Finds a free slot.
    pub(super) fn reserve(&mut self) -> Result<PeerId, ConnectError> {
        let fresh = self.slots.len();
        // Freed slots are not reused while there are fresh ones.
        if fresh < self.options.max_peers as usize {
            self.slots.push(Slot {
                generation: 1,
                ..Slot::default()
            });
            return Ok(self.name(fresh));
        }
        let old = self.free.pop_front().ok_or(ConnectError::TooManyPeers)?;
        Ok(self.name(old))
    }

    /// Frees a slot, whether it has a channel or is only reserved.
    pub(super) fn vacate(&mut self, peer: PeerId) {
        let index = index_of(peer);
        let slot = &mut self.slots[index];
        slot.state = State::Free;
        slot.given = None;
        slot.generation = (slot.generation + 1) % GENERATIONS;
        if let Some(channel) = slot.channel.take() {
            ffi::unwatch(&self.epoll, channel.line());
            if self.by_peer.get(&channel.peer) == Some(&peer) {
                self.by_peer.remove(&channel.peer);
            }
        }
        self.free.push_back(index);
    }

    pub(super) fn fill(&mut self, peer: PeerId, channel: Arc<Channel>, state: State) {
        let slot = &mut self.slots[index_of(peer)];
        slot.channel = Some(channel);
        slot.state = state;
    }

    /// Keeps this end's terms in the process's table until the slot is freed, or the other end,
    /// which is in the same process, has taken them.
    pub(super) fn keep(&mut self, peer: PeerId, given: Held) {
        self.slots[index_of(peer)].given = Some(given);
    }

    /// Adds a use to a slot that is live or was left. False if its channel is gone.
    pub(super) fn take_up(&mut self, peer: PeerId) -> bool {
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

    /// The slot of the channel with that name and peer, if our end has this role.
    pub(super) fn find(&self, peer: EndpointUid, id: ChannelId, role: Role) -> Option<PeerId> {
        let matches =
            |channel: &Channel| channel.id == id && channel.peer == peer && channel.role == role;
        let index = self.slots.iter().position(|slot| {
            matches!(slot.state, State::Live { .. } | State::Left)
                && slot
                    .channel
                    .as_ref()
                    .is_some_and(|channel| matches(channel))
        })?;
        Some(self.name(index))
    }

    /// A channel that both sides have left, the other side last.
    pub(super) fn next_over(&self) -> Option<PeerId> {
        let is_over = |channel: &Arc<Channel>| channel.other_has_left();
        let index = self.slots.iter().position(|slot| {
            slot.state == State::Left && slot.channel.as_ref().is_some_and(is_over)
        })?;
        Some(self.name(index))
    }

    /// Calls `drain` for each readable wake-up line. If `drain` returns false, the other end is
    /// gone. Then the line is no longer watched: if sessions use the channel, the control plane
    /// will notice that the peer is dead. Returns the number of peers that have woken us.
    pub(super) fn drain_lines(&self, mut drain: impl FnMut(usize) -> bool) -> u64 {
        let mut woken = 0;
        ffi::ready(&self.epoll, |index| {
            let index = index as usize;
            let Some(slot) = self.slots.get(index) else {
                return;
            };
            let Some(channel) = &slot.channel else { return };
            if drain(index) {
                woken += 1;
                return;
            }
            ffi::unwatch(&self.epoll, channel.line());
            if slot.state == State::Left {
                channel.give_up();
            }
        });
        woken
    }

    /// Watches the wake-up line of a channel.
    pub(super) fn watch(&self, peer: PeerId) -> io::Result<()> {
        let channel = self.channel(peer).ok_or(io::ErrorKind::NotFound)?;
        let number = u32::try_from(index_of(peer)).expect("there are few peers");
        ffi::watch(&self.epoll, channel.line(), number)
    }

    /// The [`PeerId`] of the slot at `index`, valid while its generation lasts.
    fn name(&self, index: usize) -> PeerId {
        let number = u32::try_from(index).expect("there are few peers");
        PeerId(self.slots[index].generation << INDEX_BITS | number)
    }

    pub(super) fn bell_fd(&self) -> io::Result<OwnedFd> {
        self.bell_fd.try_clone()
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        for channel in self.slots.iter().filter_map(|slot| slot.channel.as_ref()) {
            channel.give_up();
        }
    }
}

/// The place of a peer in the tables.
#[inline]
pub(super) const fn index_of(peer: PeerId) -> usize {
    (peer.0 & ((1 << INDEX_BITS) - 1)) as usize
}

const fn generation_of(peer: PeerId) -> u32 {
    peer.0 >> INDEX_BITS
}
