//! A client's share of the memory for long commands that are not complete: the bytes that it has
//! sent of one, and whether it may send more.
//!
//! ```text
//! Seated ──no room──▶ Waits ──its turn──▶ Speaks ──its command has arrived──▶ Ends
//!    ▲──────room────────┴───no bytes, or room──┴──others have run the command───┘
//! ```
//! While there is no room ([`Floor::has_room`]), a client has few free bytes, and the client that
//! has the floor may send the rest of its command. It leaves the floor once the command has run, so
//! the next command waits like those of other clients. A client in the middle of a command is late
//! if it has neither sent nor taken a byte for the floor's patience, or has the floor and has not
//! moved [`PROGRESS`] bytes in this time. Without the floor, the time in which its commands go on
//! without it does not count. The owner ends the connection of a late client.

use dunlin_store::Seconds;

use crate::floor::{Floor, FloorTicket, Seat};
use crate::hall::Hall;

/// Bytes of incomplete commands that each client may send at any time.
const FREE: usize = 4096;

/// Bytes that the client with the floor must send or take before its time begins again. A value of
/// 1 MiB has 16 times as many.
const PROGRESS: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Share {
    seat: Seat,
    /// Bytes that the floor has counted for this client.
    counted: usize,
    /// When it last sent or took bytes, was held back, or its commands went on without it.
    active: Seconds,
    /// Whether other threads run commands of it.
    has_errands: bool,
    stand: Stand,
}

/// The client's stand with the floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stand {
    /// It has not asked for the floor.
    Seated,
    /// It is in the line.
    Waits(FloorTicket),
    /// It has the floor until the connection has used more than these bytes.
    Speaks {
        ticket: FloorTicket,
        used: u64,
        time: Time,
    },
    /// It has the floor until other threads have run its command. It sends nothing meanwhile.
    Ends { ticket: FloorTicket, time: Time },
}

/// The time in which a client with the floor must make progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Time {
    begun: Seconds,
    /// Bytes that the client has sent and taken since then.
    moved: usize,
}

/// A connection's incomplete commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of all commands that have left the input.
    pub(crate) used: u64,
    /// Bytes of a long command in the input, and of commands that other threads run.
    pub(crate) pending: usize,
    /// Bytes of commands that other threads run.
    pub(crate) waiting: usize,
}

impl Share {
    pub(crate) fn new(seat: Seat, now: Seconds) -> Self {
        Self {
            seat,
            counted: 0,
            active: now,
            has_errands: false,
            stand: Stand::Seated,
        }
    }

    /// Begins a turn in which the client could send `wanted` bytes. Returns the number of bytes
    /// that it may send; `None`: it is held back.
    pub(crate) fn on_turn(
        &mut self,
        hall: &Hall,
        wanted: usize,
        load: Load,
        now: Seconds,
    ) -> Option<usize> {
        if self.has_errands {
            // The answers may have come just now, and the client could not go on before.
            self.active = now;
        }
        self.on_load(hall, load);
        if wanted == 0 {
            self.stop_waiting(hall);
            return Some(0);
        }
        if hall.floor().has_room() {
            self.leave(hall);
            return Some(wanted);
        }
        let free = FREE.saturating_sub(load.pending);
        if free > 0 {
            self.stop_waiting(hall);
            return Some(wanted.min(free));
        }
        if self.may_speak(hall.floor(), load, now) {
            return Some(wanted);
        }
        self.active = now;
        None
    }

    /// Notes that the client has sent or taken bytes.
    pub(crate) fn on_bytes(&mut self, bytes: usize, now: Seconds) {
        self.active = now;
        if let Stand::Speaks { time, .. } | Stand::Ends { time, .. } = &mut self.stand {
            time.moved += bytes;
            if time.moved >= PROGRESS {
                *time = Time::new(now);
            }
        }
    }

    /// Notes that the client's command goes on without the client.
    pub(crate) fn on_work(&mut self, now: Seconds) {
        self.active = now;
        if let Stand::Speaks { time, .. } | Stand::Ends { time, .. } = &mut self.stand {
            time.begun = now;
        }
    }

    /// Ends a turn. `is_held_back`: the next one comes when the client may send more.
    pub(crate) fn on_turn_end(&mut self, hall: &Hall, load: Load, is_held_back: bool) {
        self.on_load(hall, load);
        if !is_held_back {
            self.stop_waiting(hall);
        }
    }

    /// Notes that the client leaves.
    pub(crate) fn on_close(&mut self, hall: &Hall) {
        self.count(hall.floor(), 0);
        self.leave(hall);
    }

    /// Whether the client is late, and there is no room. `is_waiting`: it waits for its turn, or is
    /// held back.
    pub(crate) fn is_late(&self, floor: &Floor, is_waiting: bool, now: Seconds) -> bool {
        let has_passed = |since: Seconds| now.0.saturating_sub(since.0) >= floor.patience();
        let is_late = match self.stand {
            Stand::Speaks { time, .. } | Stand::Ends { time, .. } => has_passed(time.begun),
            Stand::Seated | Stand::Waits(_) => {
                !is_waiting && !self.has_errands && has_passed(self.active)
            }
        };
        is_late && self.counted > 0 && !floor.has_room()
    }

    /// Whether the client has the floor, for which it asks if it has not yet.
    fn may_speak(&mut self, floor: &Floor, load: Load, now: Seconds) -> bool {
        if self.stand == Stand::Seated {
            self.stand = Stand::Waits(floor.on_wish(self.seat));
        }
        if let Stand::Waits(ticket) = self.stand
            && floor.on_turn(ticket)
        {
            self.stand = Stand::Speaks {
                ticket,
                used: load.used,
                time: Time::new(now),
            };
        }
        matches!(self.stand, Stand::Speaks { .. })
    }

    /// Counts the bytes of incomplete commands, and leaves the floor if the client does not need it
    /// any longer.
    fn on_load(&mut self, hall: &Hall, load: Load) {
        self.count(hall.floor(), load.pending.saturating_sub(FREE));
        self.has_errands = load.waiting > 0;
        let (has_run, is_idle) = (load.waiting <= FREE, self.counted == 0);
        match self.stand {
            Stand::Speaks { ticket, used, time } if used != load.used && !has_run => {
                self.stand = Stand::Ends { ticket, time };
            }
            Stand::Speaks { used, .. } if used != load.used || is_idle => self.leave(hall),
            Stand::Ends { .. } if has_run => self.leave(hall),
            Stand::Seated | Stand::Waits(_) | Stand::Speaks { .. } | Stand::Ends { .. } => {}
        }
    }

    fn count(&mut self, floor: &Floor, bytes: usize) {
        if self.counted != bytes {
            floor.on_bytes(self.counted, bytes);
            self.counted = bytes;
        }
    }

    fn stop_waiting(&mut self, hall: &Hall) {
        if matches!(self.stand, Stand::Waits(_)) {
            self.leave(hall);
        }
    }

    /// Leaves the floor or the line.
    fn leave(&mut self, hall: &Hall) {
        match std::mem::replace(&mut self.stand, Stand::Seated) {
            Stand::Seated => {}
            Stand::Waits(ticket) | Stand::Speaks { ticket, .. } | Stand::Ends { ticket, .. } => {
                hall.on_floor_left(ticket);
            }
        }
    }
}

impl Time {
    const fn new(begun: Seconds) -> Self {
        Self { begun, moved: 0 }
    }
}

#[cfg(test)]
mod tests;
