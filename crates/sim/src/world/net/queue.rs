//! A queue and the cable that it feeds, and the memory that several queues share.
//!
//! The queue computes a frame's departure when the frame arrives, and needs no event for it.
//! Invariants, which only the end of a stall breaks: frames leave in order of arrival, one at a
//! time, at the cable's rate; a frame occupies the queue and its memory until its last bit has
//! left. Departed frames are removed lazily, before the next query that depends on them. Called by
//! `fabric`.

use std::collections::VecDeque;

use dunlin_core::Nanos;

use crate::world::net::frames::End;
use crate::world::rng::{Ppm, Rng};

/// When frames are marked "congestion experienced", depending on the length of the queue that they
/// find: never up to `from`, always above `to`, and in between with a probability that rises to
/// `most` (RED as DCQCN uses it: Kmin, Kmax, Pmax). If `from == to`, it is a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marking {
    /// Bytes up to which no frame is marked.
    pub from: u64,
    /// Bytes above which every frame is marked.
    pub to: u64,
    /// The share of frames that are marked at a queue of `to` bytes.
    pub most: Ppm,
}

impl Marking {
    /// Marks no frame.
    pub const NEVER: Self = Self::step(u64::MAX);

    /// Marks every frame that finds a queue of more than `at` bytes.
    pub const fn step(at: u64) -> Self {
        Self {
            from: at,
            to: at,
            most: Ppm::ALWAYS,
        }
    }

    /// Whether to mark a frame that finds a queue of `bytes`.
    fn marks(&self, bytes: u64, rng: &mut Rng) -> bool {
        if bytes <= self.from || bytes > self.to {
            return bytes > self.to;
        }
        let share = u128::from(self.most.0) * u128::from(bytes - self.from);
        let ppm = share / u128::from(self.to - self.from);
        rng.chance(Ppm(u32::try_from(ppm).unwrap_or(Ppm::ALWAYS.0)))
    }
}

/// The packet memory of a switch or a NIC.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    capacity: u64,
    /// A queue may take up to this many times the free memory (Choudhury and Hahne, "Dynamic queue
    /// length thresholds for shared-memory packet switches").
    alpha: f64,
    /// Bytes in use, including those of frames that have left since the last [`Queue::settle`].
    used: u64,
}

impl Memory {
    pub(super) fn new(capacity: u64, alpha: f64) -> Self {
        Self {
            capacity,
            alpha,
            used: 0,
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Whether there is room for `more` bytes in a queue that has `queued`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the bytes of a switch are far below 2^53"
    )]
    fn admits(&self, queued: u64, more: u64) -> bool {
        let free = self.capacity - self.used;
        more <= free && (queued + more) as f64 <= self.alpha * free as f64
    }
}

/// The properties of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    /// Bytes per second.
    pub(super) rate: u64,
    /// Time from the last bit at this end until the other end takes the frame.
    pub(super) delay: Nanos,
    /// The other end.
    pub(super) end: End,
}

/// A queue and its cable.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Time to send a byte, in picoseconds, so that 100 Gb/s (80 ps) is exact.
    byte_ps: u64,
    delay: Nanos,
    pub(super) end: End,
    /// The number of the memory in which the frames lie.
    pub(super) memory: usize,
    /// When each frame will have left, and the bytes that it takes.
    frames: VecDeque<(Nanos, u64)>,
    /// Bytes of all these frames.
    bytes: u64,
    /// When the cable is free, in picoseconds.
    free_ps: u64,
}

/// The memory has no room for the frame, or the queue has used up its share of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;

impl Queue {
    pub(super) fn new(cable: Cable, memory: usize) -> Self {
        Self {
            byte_ps: 1_000_000_000_000 / cable.rate.max(1),
            delay: cable.delay,
            end: cable.end,
            memory,
            frames: VecDeque::new(),
            bytes: 0,
            free_ps: 0,
        }
    }

    /// Bytes of the frames that had not left at the last [`Self::settle`].
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes the frames that have left.
    pub(super) fn settle(&mut self, memory: &mut Memory, now: Nanos) {
        while let Some(&(gone, size)) = self.frames.front()
            && gone <= now
        {
            self.frames.pop_front();
            self.bytes -= size;
            memory.used -= size;
        }
    }

    /// Puts a frame at the end, if the memory has room for it. Frames that have left another queue
    /// occupy memory until that queue's next [`Self::settle`]. Returns the time at which the frame
    /// reaches the other end of the cable.
    pub(super) fn push(
        &mut self,
        size: u64,
        memory: &mut Memory,
        now: Nanos,
    ) -> Result<Nanos, Full> {
        self.settle(memory, now);
        if !memory.admits(self.bytes, size) {
            return Err(Full);
        }
        memory.used += size;
        self.bytes += size;
        // Frames follow each other without a gap, to the picosecond, although events happen at
        // whole nanoseconds.
        let start = match self.free_ps.div_ceil(1000) >= now.0 {
            true => self.free_ps,
            false => now.0.saturating_mul(1000),
        };
        self.free_ps = start.saturating_add(size * self.byte_ps);
        let gone = Nanos(self.free_ps.div_ceil(1000));
        self.frames.push_back((gone, size));
        Ok(gone + self.delay)
    }

    /// When the memory, which only this queue uses, will have room for `size` bytes.
    pub(super) fn room_at(&mut self, size: u64, memory: &mut Memory, now: Nanos) -> Nanos {
        self.settle(memory, now);
        let mut free = memory.capacity.saturating_sub(memory.used);
        let mut at = now;
        for &(gone, leaves) in &self.frames {
            if free >= size {
                break;
            }
            free += leaves;
            at = gone;
        }
        at
    }

    /// Stops sending for `span`, once the frames that are queued have left. This delays all later
    /// frames by `span`.
    pub(super) fn stall(&mut self, now: Nanos, span: Nanos) {
        let free = self.free_ps.max(now.0.saturating_mul(1000));
        self.free_ps = free.saturating_add(span.0.saturating_mul(1000));
    }

    /// Ends a stall, and forgets the queued frames, which leave as computed. Frames that arrive
    /// from now on may overtake them.
    pub(super) fn end_stall(&mut self, memory: &mut Memory, now: Nanos) {
        self.free_ps = self.free_ps.min(now.0.saturating_mul(1000));
        memory.used -= self.bytes;
        self.bytes = 0;
        self.frames.clear();
    }

    /// Whether to mark a frame that arrives now.
    pub(super) fn marks(&self, marking: &Marking, rng: &mut Rng) -> bool {
        marking.marks(self.bytes, rng)
    }
}

#[cfg(test)]
mod tests;
