//! The queue of events: a timing wheel that grows coarser with distance.
//!
//! Level 0 has a slot for each of the next 64 nanoseconds, level 1 for each of the next 64
//! stretches of 64, and so on up to the end of time. An event goes to the highest level at which
//! the digits of its time and of the present time differ, and moves down when its slot begins. The
//! work for an event is therefore bounded, however many events wait and however far away they are.
//!
//! Invariants: every slot of a level that holds events comes after the slot of the present time, so
//! the first event is in the first slot of the lowest level that holds any. Events of the same time
//! are always in the same list, in the order of their insertion, so the order of simultaneous
//! events is fixed. Called by `net`.

use std::collections::VecDeque;

use dunlin_core::Nanos;

/// Bits of a time that one level distinguishes.
const DIGIT: u32 = 6;
const SLOTS: usize = 1 << DIGIT;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT) as usize;

/// Events in the order of their time.
#[derive(Debug)]
pub struct EventQueue<E> {
    now: u64,
    /// Events of the present time.
    ready: VecDeque<E>,
    levels: Vec<Level<E>>,
    /// Bit i: level i holds events.
    occupied: u32,
    len: usize,
}

#[derive(Debug)]
struct Level<E> {
    /// Bit i: slot i holds events.
    occupied: u64,
    slots: [Vec<(u64, E)>; SLOTS],
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        let level = || Level {
            occupied: 0,
            slots: [const { Vec::new() }; SLOTS],
        };
        Self {
            now: 0,
            ready: VecDeque::new(),
            levels: std::iter::repeat_with(level).take(LEVELS).collect(),
            occupied: 0,
            len: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Adds `event` at time `at`; an event of the past happens now.
    pub fn push(&mut self, at: Nanos, event: E) {
        self.len += 1;
        self.place(at.0.max(self.now), event);
    }

    /// Takes the earliest event out if its time is not later than `end`. The search may move the
    /// present as far as `end`, so an event that is added later with a time before `end` counts as
    /// past. `soon` is called with the events that follow next, several in a row, to prefetch their
    /// memory.
    pub fn pop_until(&mut self, end: Nanos, soon: impl Fn(&E)) -> Option<(Nanos, E)> {
        while self.ready.is_empty() {
            self.advance(end.0)?;
            self.ready.iter().for_each(&soon);
        }
        if self.now > end.0 {
            return None;
        }
        self.len -= 1;
        self.ready.pop_front().map(|event| (Nanos(self.now), event))
    }

    /// The number of waiting events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no event waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn place(&mut self, at: u64, event: E) {
        let differing = at ^ self.now;
        if differing == 0 {
            return self.ready.push_back(event);
        }
        let level = (differing.ilog2() / DIGIT) as usize;
        let slot = digit(at, level);
        self.levels[level].slots[slot].push((at, event));
        self.levels[level].occupied |= 1 << slot;
        self.occupied |= 1 << level;
    }

    /// Moves the present to the beginning of the first slot that holds events, and moves these
    /// events to their new slots. `None` if that slot begins after `end`, or there is none.
    fn advance(&mut self, end: u64) -> Option<()> {
        if self.occupied == 0 {
            return None;
        }
        let lowest = self.occupied.trailing_zeros() as usize;
        let level = &mut self.levels[lowest];
        let slot = level.occupied.trailing_zeros();
        let below = DIGIT * u32::try_from(lowest).expect("there are 11 levels");
        let coarser = self.now.checked_shr(below + DIGIT).unwrap_or(0);
        let start = (coarser << DIGIT | u64::from(slot)) << below;
        if start > end {
            return None;
        }
        self.now = start;
        level.occupied &= level.occupied - 1;
        if level.occupied == 0 {
            self.occupied &= !(1 << lowest);
        }
        let slot = slot as usize;
        let mut events = std::mem::take(&mut level.slots[slot]);
        for (at, event) in events.drain(..) {
            self.place(at, event);
        }
        // The slot keeps its memory for the next round of the wheel.
        self.levels[lowest].slots[slot] = events;
        Some(())
    }
}

/// The slot of time `at` at a level.
fn digit(at: u64, level: usize) -> usize {
    let shifted = at >> (level * DIGIT as usize);
    usize::try_from(shifted % SLOTS as u64).expect("it is below 64")
}

#[cfg(test)]
mod tests;
