//! A queue with the cable behind it, and the memory that several queues share.
//!
//! Invariants: frames leave in the order in which they came, one at a time, at the cable's rate. A
//! frame belongs to the queue and to its memory until its last bit has left. Called by `fabric`.

use dunlin_core::Nanos;

use crate::net::frames::{End, FrameId, Frames};
use crate::rng::{Ppm, Rng};

/// When frames are marked "congestion experienced", by the length of the queue that they meet: never
/// below `from`, always above `to`, and between them more and more often, up to `most` (RED as DCQCN
/// uses it: Kmin, Kmax, Pmax). With `from == to` it is a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marking {
    /// Bytes up to which no frame is marked.
    pub from: u64,
    /// Bytes above which every frame is marked.
    pub to: u64,
    /// How often a frame is marked just below that.
    pub most: Ppm,
}

impl Marking {
    /// No frame is ever marked.
    pub const NEVER: Self = Self::step(u64::MAX);

    /// Every frame that meets a queue of more than `at` bytes is marked.
    pub const fn step(at: u64) -> Self {
        Self {
            from: at,
            to: at,
            most: Ppm::ALWAYS,
        }
    }

    /// Whether a frame that meets a queue of `bytes` is marked.
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
    /// A queue may take so many times what is free (Choudhury and Hahne, "Dynamic queue length
    /// thresholds for shared-memory packet switches").
    alpha: f64,
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

    /// Bytes in use.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Room for `more` bytes in a queue that has `queued`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the bytes of a switch are far below 2^53"
    )]
    fn admits(&self, queued: u64, more: u64) -> bool {
        let free = self.capacity - self.used;
        more <= free && (queued + more) as f64 <= self.alpha * free as f64
    }
}

/// A queue and its cable.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Time to send a byte, in picoseconds, so that 100 Gb/s (80 ps) is exact.
    byte_ps: u64,
    /// From the last bit at this end to the frame's being dealt with at the other.
    delay: Nanos,
    /// Where the cable goes.
    end: End,
    /// Which memory the frames lie in.
    pub(super) memory: usize,
    first: Option<FrameId>,
    last: Option<FrameId>,
    bytes: u64,
    /// When the cable is free, in picoseconds.
    free_ps: u64,
    /// A fault: nothing begins to leave before.
    stalled_until: Nanos,
    /// Tells the departure that is planned from those that have become void.
    ticket: u32,
}

/// What a queue is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) delay: Nanos,
    pub(super) end: End,
}

/// The first frame of a queue will have left at `at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    pub(super) at: Nanos,
    pub(super) ticket: u32,
}

/// The memory has no room for the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Full;

impl Queue {
    pub(super) fn new(cable: Cable, memory: usize) -> Self {
        Self {
            byte_ps: 1_000_000_000_000 / cable.rate.max(1),
            delay: cable.delay,
            end: cable.end,
            memory,
            first: None,
            last: None,
            bytes: 0,
            free_ps: 0,
            stalled_until: Nanos::ZERO,
            ticket: 0,
        }
    }

    /// Bytes that have not left.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a frame at the end. Returns when it will have left, if it is the first.
    pub(super) fn push(
        &mut self,
        id: FrameId,
        frames: &mut Frames,
        memory: &mut Memory,
        now: Nanos,
    ) -> Result<Option<Departure>, Full> {
        let size = frames.at(id).size;
        if !memory.admits(self.bytes, size) {
            return Err(Full);
        }
        memory.used += size;
        self.bytes += size;
        frames.at_mut(id).next = None;
        match self.last.replace(id) {
            Some(last) => {
                frames.at_mut(last).next = Some(id);
                Ok(None)
            }
            None => {
                self.first = Some(id);
                Ok(Some(self.depart(size, now)))
            }
        }
    }

    /// The first frame has left. Returns it, when it arrives at the other end, and when the next one
    /// will have left; `None` if this departure has become void.
    pub(super) fn pop(
        &mut self,
        ticket: u32,
        frames: &mut Frames,
        memory: &mut Memory,
        now: Nanos,
    ) -> Option<(FrameId, Nanos, Option<Departure>)> {
        if ticket != self.ticket {
            return None;
        }
        let id = self.take_first(frames, memory)?;
        let next = self.first.map(|next| {
            let size = frames.at(next).size;
            self.depart(size, now)
        });
        Some((id, now + self.delay, next))
    }

    fn take_first(&mut self, frames: &mut Frames, memory: &mut Memory) -> Option<FrameId> {
        let id = self.first?;
        let frame = frames.at_mut(id);
        frame.end = self.end;
        self.first = frame.next.take();
        if self.first.is_none() {
            self.last = None;
        }
        self.bytes -= frame.size;
        memory.used -= frame.size;
        Some(id)
    }

    /// Plans the departure of the first frame.
    fn depart(&mut self, size: u64, now: Nanos) -> Departure {
        let earliest = now.max(self.stalled_until).0.saturating_mul(1000);
        // One frame follows the other to the picosecond, though events happen at whole nanoseconds.
        let follows = self.free_ps.div_ceil(1000) == now.0 && self.stalled_until <= now;
        let start = if follows {
            self.free_ps
        } else {
            earliest.max(self.free_ps)
        };
        self.free_ps = start.saturating_add(size * self.byte_ps);
        self.ticket = self.ticket.wrapping_add(1);
        Departure {
            at: Nanos(self.free_ps.div_ceil(1000)),
            ticket: self.ticket,
        }
    }

    /// Sends nothing for `span`, once the frame that is leaving has left.
    pub(super) fn stall(&mut self, now: Nanos, span: Nanos) {
        self.stalled_until = self.stalled_until.max(now) + span;
    }

    /// Frames from now on do not wait for those before; what has been queued comes when it would
    /// have come, and is handed to `late` with that time.
    pub(super) fn end_stall(
        &mut self,
        now: Nanos,
        frames: &mut Frames,
        memory: &mut Memory,
        mut late: impl FnMut(Nanos, FrameId),
    ) {
        if self.stalled_until <= now {
            return;
        }
        self.stalled_until = now;
        self.ticket = self.ticket.wrapping_add(1);
        let mut gone_ps = self.free_ps;
        while let Some(id) = self.take_first(frames, memory) {
            late(Nanos(gone_ps.div_ceil(1000)) + self.delay, id);
            if let Some(next) = self.first {
                gone_ps = gone_ps.saturating_add(frames.at(next).size * self.byte_ps);
            }
        }
        self.free_ps = now.0.saturating_mul(1000);
    }

    /// Whether a frame that comes now is marked.
    pub(super) fn marks(&self, marking: &Marking, rng: &mut Rng) -> bool {
        marking.marks(self.bytes, rng)
    }
}

#[cfg(test)]
mod tests;
