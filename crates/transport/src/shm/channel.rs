//! A channel: the memory that one pair of endpoints shares. It has two rings, one for each
//! direction; for each ring a cache line in which its consumer reports to its producer; a word that
//! shows which ends still use the channel; and a wake-up line.
//!
//! Invariants:
//! - The layout depends only on the number of cells; both sides check the length.
//! - Each side leaves the channel when its last session is gone, and may come back until the other
//!   side has left too. The side that leaves second frees its slot immediately; the other side
//!   notices later, and then frees its own. So if a side that has not left offers reuse, the other
//!   side still has the channel (`setup`).
//!
//! Called by `setup`; `rx` and `tx` keep it alive while they use its rings.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::cells::{CELL, Cell, Cells};
use super::doorbell::Doorbell;
use super::memory::SharedMemory;
use super::ring::{Consumer, ConsumerLine, Producer};
use crate::connect::{ConnectError, EndpointUid};

/// An endpoint's end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(super) enum Role {
    /// The endpoint made the channel.
    Creator = 0,
    /// The endpoint got the channel in an offer.
    Acceptor = 1,
}

/// Random name of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ChannelId(pub(super) [u8; 16]);

/// The index of a channel in the tables of an endpoint's halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChannelIdx(u32);

impl ChannelIdx {
    /// No channel.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("there are few peers"))
    }

    /// The place in a table.
    #[inline(always)]
    pub(super) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// One side's view of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: ChannelId,
    pub(super) role: Role,
    pub(super) peer: EndpointUid,
    pub(super) cells: u32,
    /// Whether packets may be read in place, because only trusted code writes to the memory.
    pub(super) trusted: bool,
    line: OwnedFd,
    memory: Arc<SharedMemory>,
    /// Whether both ends are in this process.
    within: bool,
}

/// A mapped doorbell: our own, or a peer's.
#[derive(Debug)]
pub(super) struct Bell {
    bell: NonNull<Doorbell>,
    _memory: SharedMemory,
}

// SAFETY: a doorbell consists of atomics, and its memory belongs to the process.
unsafe impl Send for Bell {}
// SAFETY: as above.
unsafe impl Sync for Bell {}

/// The state of a channel after this side has left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// The other side still uses it and may offer its reuse.
    First,
    /// Neither side uses it, so it can be freed.
    Last,
}

const PAGE: usize = 4096;
const NAME: &CStr = c"dunlin-channel";
const BELL_NAME: &CStr = c"dunlin-doorbell";

/// Lines of different writers are two cache lines apart, because processors fetch cache lines in
/// pairs.
const STATE: usize = 0;
const LINES: [usize; 2] = [128, 256];

/// The bit of the state for a side that has died or was given up; lower bits are sides that left.
const GONE: u32 = 4;

impl Role {
    /// The other end.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Creator => Self::Acceptor,
            Self::Acceptor => Self::Creator,
        }
    }

    const fn left(self) -> u32 {
        1 << self as u32
    }

    /// The ring that this end sends on.
    const fn ring(self) -> usize {
        self as usize
    }
}

impl Channel {
    /// Makes a channel of rings of `cells` cells, and the descriptor of its memory for the peer.
    pub(super) fn create(
        id: ChannelId,
        peer: EndpointUid,
        cells: u32,
        line: OwnedFd,
        trusted: bool,
    ) -> io::Result<(Self, OwnedFd)> {
        let (memory, fd) = SharedMemory::create(NAME, memory_len(cells))?;
        let channel = Self {
            id,
            role: Role::Creator,
            peer,
            cells,
            trusted,
            line,
            memory: Arc::new(memory),
            within: false,
        };
        Ok((channel, fd))
    }

    /// The end `role` of a channel within this process.
    pub(super) fn within(
        (id, role): (ChannelId, Role),
        peer: EndpointUid,
        cells: u32,
        (memory, line): (Arc<SharedMemory>, OwnedFd),
    ) -> Self {
        Self {
            id,
            role,
            peer,
            cells,
            trusted: true,
            line,
            memory,
            within: true,
        }
    }

    /// Memory for a channel within this process.
    pub(super) fn private_memory(cells: u32) -> io::Result<Arc<SharedMemory>> {
        SharedMemory::create_private(memory_len(cells)).map(Arc::new)
    }

    /// Maps the channel that a peer has made. `cells` must be a power of two.
    pub(super) fn open(
        id: ChannelId,
        peer: EndpointUid,
        cells: u32,
        [memory, line]: [OwnedFd; 2],
        trusted: bool,
    ) -> Result<Self, ConnectError> {
        let memory = SharedMemory::open(&memory, memory_len(cells))?;
        Ok(Self {
            id,
            role: Role::Acceptor,
            peer,
            cells,
            trusted,
            line,
            memory: Arc::new(memory),
            within: false,
        })
    }

    /// Whether both ends are in this process.
    pub(super) const fn is_within(&self) -> bool {
        self.within
    }

    /// Our end of the wake-up line.
    pub(super) fn line(&self) -> RawFd {
        self.line.as_raw_fd()
    }

    /// The end with which we send.
    ///
    /// # Safety
    /// Call this once in the life of the channel; the value must not outlive the channel.
    pub(super) unsafe fn producer(&self, longest: u32) -> Producer {
        let (cells, line) = self.ring(self.role);
        // SAFETY: the memory lives as long as the channel, and each side has one producer.
        unsafe { Producer::new(cells, line, longest) }
    }

    /// The end with which we receive.
    ///
    /// # Safety
    /// As for [`Self::producer`].
    pub(super) unsafe fn consumer(&self, longest: u32) -> Consumer {
        let (cells, line) = self.ring(self.role.other());
        // SAFETY: the memory lives as long as the channel, and each side has one consumer.
        unsafe { Consumer::new(cells, line, longest) }
    }

    /// Leaves the channel, because our last session is gone.
    pub(super) fn leave(&self) -> Left {
        let before = self.state().fetch_or(self.role.left(), Ordering::AcqRel);
        if before & (self.role.other().left() | GONE) == 0 {
            Left::First
        } else {
            Left::Last
        }
    }

    /// Uses the channel again after we have left it. Returns false if the channel is gone by now.
    pub(super) fn come_back(&self) -> bool {
        let still_there = |state| {
            let gone = state & (self.role.other().left() | GONE) != 0;
            (!gone).then_some(state & !self.role.left())
        };
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        self.state().fetch_update(set, fetch, still_there).is_ok()
    }

    /// Gives the channel up, because the other side is dead or unusable.
    pub(super) fn give_up(&self) {
        self.state().fetch_or(GONE, Ordering::AcqRel);
    }

    /// True if the other side gave the channel up.
    pub(super) fn is_given_up(&self) -> bool {
        self.state().load(Ordering::Acquire) & GONE != 0
    }

    /// True if the other side has left the channel or has given it up.
    pub(super) fn other_has_left(&self) -> bool {
        self.state().load(Ordering::Acquire) & (self.role.other().left() | GONE) != 0
    }

    fn ring(&self, sender: Role) -> (Cells, NonNull<ConsumerLine>) {
        let ring_len = self.cells as usize * CELL;
        let start = PAGE + sender.ring() * ring_len;
        let first: NonNull<Cell> = self.memory.at(start);
        // The last cell is inside as well.
        let _: NonNull<Cell> = self.memory.at(start + ring_len - CELL);
        // SAFETY: the cells are inside the memory, which lives as long as the channel.
        let cells = unsafe { Cells::new(first, self.cells) };
        (cells, self.memory.at(LINES[sender.ring()]))
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: it is inside the memory, which lives as long as we do, and is an atomic.
        unsafe { self.memory.at::<AtomicU32>(STATE).as_ref() }
    }
}

impl Bell {
    /// Makes a doorbell, and the descriptor to give to peers.
    pub(super) fn create() -> io::Result<(Self, OwnedFd)> {
        let (memory, fd) = SharedMemory::create(BELL_NAME, bell_len())?;
        Ok((Self::new(memory), fd))
    }

    /// Maps a peer's doorbell.
    pub(super) fn open(fd: &OwnedFd) -> Result<Self, ConnectError> {
        Ok(Self::new(SharedMemory::open(fd, bell_len())?))
    }

    fn new(memory: SharedMemory) -> Self {
        Self {
            bell: memory.at(0),
            _memory: memory,
        }
    }
}

impl std::ops::Deref for Bell {
    type Target = Doorbell;

    #[inline]
    fn deref(&self) -> &Doorbell {
        // SAFETY: it is inside the memory, which lives as long as we do, and consists of atomics.
        unsafe { self.bell.as_ref() }
    }
}

const fn memory_len(cells: u32) -> usize {
    PAGE + 2 * cells as usize * CELL
}

const fn bell_len() -> usize {
    size_of::<Doorbell>().next_multiple_of(PAGE)
}
