//! The timing wheel in which paced packets wait (Carousel, SIGCOMM 2017, §4.1): a ring of slots,
//! each a list of the packets that leave within one width of time.
//!
//! The cost of inserting and removing does not depend on the number of entries. Two levels of bits
//! find the next slot with entries. So an empty wheel costs nothing, and a look after an hour does
//! not visit all slots of that hour. An entry beyond the horizon waits at the horizon, and is
//! inserted again there.
//!
//! An entry names a packet by session, request number (whose low bits are the slot, rule W9) and
//! packet number. The caller checks the packet when it is due (rule S8): no entry refers to a
//! msgbuf or keeps a call from ending.
//!
//! Invariants: no entry leaves before its time; a look finds every entry whose time was at least a
//! slot's width ago; all slots with entries are within the horizon after `cursor`; entries of a
//! slot leave in the order in which they were inserted. Called by `congestion/pacer/pacing.rs`.

use dunlin_wire::ReqNum;

use crate::config::MAX_WHEEL_SLOTS;
use crate::handle::{PacedIdx, Session};
use crate::slab::Slab;
use crate::time::Nanos;

/// Two levels of 64-bit words have a bit for each slot.
const _: () = assert!(MAX_WHEEL_SLOTS == 64 * 64);

/// A packet that waits for its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Paced {
    pub(crate) session: Session,
    pub(crate) req: ReqNum,
    pub(crate) packet: u32,
    /// The packet may not leave before this time.
    pub(crate) at: Nanos,
}

#[derive(Debug)]
struct Node {
    entry: Paced,
    /// The next entry of the slot.
    next: PacedIdx,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            entry: Paced {
                session: Session::NONE,
                req: ReqNum(0),
                packet: 0,
                at: Nanos::ZERO,
            },
            next: PacedIdx::NONE,
        }
    }
}

/// First and last entry of a slot.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: PacedIdx,
    tail: PacedIdx,
}

const EMPTY: Slot = Slot {
    head: PacedIdx::NONE,
    tail: PacedIdx::NONE,
};

/// The wheel of one endpoint.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Width of a slot, in nanoseconds.
    width: u64,
    /// Number of slots less one. The number is a power of two.
    mask: u64,
    slots: Vec<Slot>,
    /// Bit i of word w: slot 64 w + i holds entries.
    words: Vec<u64>,
    /// Bit w: word w is not zero.
    summary: u64,
    /// The first slot that may hold entries, counted from the origin of time.
    cursor: u64,
    len: usize,
    nodes: Slab<PacedIdx, Node>,
}

impl Wheel {
    /// A wheel of slots of `width` that reaches at least `horizon` ahead, if [`MAX_WHEEL_SLOTS`]
    /// suffice for that.
    pub(crate) fn new(width: Nanos, horizon: Nanos) -> Self {
        let width = width.0.max(1);
        let slots = horizon.0.div_ceil(width).clamp(2, MAX_WHEEL_SLOTS);
        Self {
            width,
            mask: slots.next_power_of_two() - 1,
            slots: Vec::new(),
            words: Vec::new(),
            summary: 0,
            cursor: 0,
            len: 0,
            nodes: Slab::default(),
        }
    }

    /// Puts an entry into the first slot that begins at its time or later.
    pub(crate) fn insert(&mut self, entry: Paced, now: Nanos) {
        if self.slots.is_empty() {
            self.build();
        }
        let present = now.0 / self.width;
        if self.len == 0 {
            self.cursor = present;
        }
        let wanted = match entry.at > now {
            true => entry.at.0.div_ceil(self.width),
            false => present,
        };
        let place = wanted.clamp(self.cursor, self.cursor + self.mask);
        let node = self.nodes.take();
        *self.nodes.at_mut(node) = Node {
            entry,
            next: PacedIdx::NONE,
        };
        let index = self.index_of(place);
        let slot = &mut self.slots[index];
        if slot.head == PacedIdx::NONE {
            slot.head = node;
            self.words[index / 64] |= 1 << (index % 64);
            self.summary |= 1 << (index / 64);
        } else {
            self.nodes.at_mut(slot.tail).next = node;
        }
        slot.tail = node;
        self.len += 1;
    }

    /// The next entry whose time has come.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<Paced> {
        let present = now.0 / self.width;
        loop {
            let place = self.next_place()?;
            if place > present {
                return None;
            }
            self.cursor = place;
            let entry = self.take_head(place);
            if entry.at <= now {
                return Some(entry);
            }
            // The entry was beyond the horizon when it was inserted, and its time has not yet come.
            self.cursor = self.next_place().map_or(present, |next| next.min(present));
            self.insert(entry, now);
        }
    }

    /// When the slot of the next entry begins; [`Nanos::MAX`] if there is no entry.
    #[inline]
    pub(crate) fn next_due(&self) -> Nanos {
        match self.next_place() {
            Some(place) => Nanos(place.saturating_mul(self.width)),
            None => Nanos::MAX,
        }
    }

    /// Allocates the slots when the first packet waits: most endpoints have no congestion.
    #[cold]
    fn build(&mut self) {
        let slots = usize::try_from(self.mask + 1).unwrap_or(usize::MAX);
        self.slots = vec![EMPTY; slots];
        self.words = vec![0; slots.div_ceil(64)];
    }

    /// The index of the slot that is `place` slots from the origin of time.
    #[inline]
    fn index_of(&self, place: u64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a wheel has at most 4096 slots"
        )]
        let index = (place & self.mask) as usize;
        index
    }

    /// The first slot that holds entries, counted from the origin of time.
    #[inline]
    fn next_place(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = self.cursor & self.mask;
        let index = self.next_index(start)?;
        Some(self.cursor + (index.wrapping_sub(start) & self.mask))
    }

    /// The first slot from `start` on, around the ring, that holds entries.
    fn next_index(&self, start: u64) -> Option<u64> {
        let (word, bit) = ((start / 64) as usize, start % 64);
        let here = self.words[word] >> bit;
        if here != 0 {
            return Some(start + u64::from(here.trailing_zeros()));
        }
        // The words after this one come first, then those before it, and last the lower bits of
        // this one.
        let behind = self.summary & !(u64::MAX >> (63 - word));
        let words = if behind != 0 { behind } else { self.summary };
        if words == 0 {
            return None;
        }
        let word = words.trailing_zeros();
        let bits = self.words[word as usize];
        Some(u64::from(word * 64 + bits.trailing_zeros()))
    }

    fn take_head(&mut self, place: u64) -> Paced {
        let index = self.index_of(place);
        let slot = &mut self.slots[index];
        let head = slot.head;
        let Node { entry, next } = *self.nodes.at(head);
        slot.head = next;
        self.nodes.release(head);
        self.len -= 1;
        if slot.head == PacedIdx::NONE {
            slot.tail = PacedIdx::NONE;
            self.words[index / 64] &= !(1 << (index % 64));
            if self.words[index / 64] == 0 {
                self.summary &= !(1 << (index / 64));
            }
        }
        entry
    }
}

#[cfg(test)]
mod tests;
