//! The memory that long commands may take before they are complete, and the floor: the right of one
//! client at a time to send more of such a command although this memory is used up.
//!
//! Clients that want the floor stand in a line, which all threads share, and have it in that order.
//! So a client that sends one long command after another has it again after all clients that stood
//! in the line before. A client's [`Share`](crate::share::Share) asks for the floor and gives it
//! back.
//!
//! Invariants: at most one client has the floor; a ticket is in the line, has the floor or is given
//! back; no client passes another one in the line.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The memory for incomplete commands, and the line of the clients that wait for the floor.
#[derive(Debug)]
pub(crate) struct Floor {
    /// Bytes of incomplete commands, above which only the client with the floor may send more.
    limit: u64,
    /// Seconds that a client may stop for in the middle of a command while there is no room.
    patience: u32,
    /// Bytes of incomplete commands.
    bytes: AtomicU64,
    line: Mutex<Line>,
}

#[derive(Default, Debug)]
struct Line {
    newest: u64,
    speaker: Option<FloorTicket>,
    waiting: BTreeMap<FloorTicket, Seat>,
}

/// A client's place in the line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct FloorTicket(u64);

/// Where a client is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) thread: u16,
    /// The client's place in the list of its thread.
    pub(crate) place: usize,
}

impl Floor {
    pub(crate) fn new(limit: u64, patience: u32) -> Self {
        Self {
            limit,
            patience,
            bytes: AtomicU64::new(0),
            line: Mutex::default(),
        }
    }

    /// Whether each client may send more of its command.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.load(Relaxed) < self.limit
    }

    pub(crate) fn patience(&self) -> u32 {
        self.patience
    }

    /// Notes that a client has `now` bytes of incomplete commands, and not `before` any more.
    pub(crate) fn on_bytes(&self, before: usize, now: usize) {
        let more = (now as u64).wrapping_sub(before as u64);
        self.bytes.fetch_add(more, Relaxed);
    }

    /// Puts a client at the end of the line.
    pub(crate) fn on_wish(&self, seat: Seat) -> FloorTicket {
        let mut line = self.line();
        line.newest += 1;
        let ticket = FloorTicket(line.newest);
        line.waiting.insert(ticket, seat);
        ticket
    }

    /// Gives the floor to the client with this ticket, if it is free and the client's turn.
    pub(crate) fn on_turn(&self, ticket: FloorTicket) -> bool {
        let mut line = self.line();
        let is_next = line.speaker.is_none() && line.next().is_some_and(|(it, _)| it == ticket);
        if is_next {
            line.waiting.remove(&ticket);
            line.speaker = Some(ticket);
        }
        is_next
    }

    /// Takes a ticket back: the client leaves the floor, or the line. Returns the client that may
    /// have the floor now.
    pub(crate) fn on_leave(&self, ticket: FloorTicket) -> Option<Seat> {
        let mut line = self.line();
        line.waiting.remove(&ticket);
        line.speaker.take_if(|it| *it == ticket);
        line.next()
            .map(|(_, seat)| seat)
            .filter(|_| line.speaker.is_none())
    }

    /// The place of the client that may have the floor now, if it belongs to this thread.
    pub(crate) fn next_of(&self, thread: u16) -> Option<usize> {
        let line = self.line();
        let (_, seat) = line.next().filter(|_| line.speaker.is_none())?;
        (seat.thread == thread).then_some(seat.place)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // No change of the line panics halfway, so it is whole even after a panic.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn next(&self) -> Option<(FloorTicket, Seat)> {
        let first = self.waiting.first_key_value();
        first.map(|(ticket, seat)| (*ticket, *seat))
    }
}

#[cfg(test)]
mod tests;
