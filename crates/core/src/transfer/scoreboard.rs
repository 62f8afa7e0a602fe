//! The state of each packet of one message on its way: the scoreboard of selective repeat (design
//! §6). It serves both directions. The client sends the packets of a large request, and CRs
//! acknowledge them. The client asks for the packets of a large response, and each packet
//! acknowledges itself by arriving.
//!
//! Losses are found as in RACK (RFC 8985): a packet that left before an answered one should have
//! been answered too, within a window that allows for reordering. No later packet can reveal the
//! loss of the last ones, so a probe of the tail finds it.
//!
//! Invariants: `base ≤ next ≤ base + 512`; the bits of a packet are at its number modulo 512, and
//! bits outside `base..next` are clear; every packet from `base` to `next` is acknowledged or
//! outstanding, and lost packets are outstanding. This file does not depend on sessions, clocks or
//! packet formats.

mod runs;

use dunlin_wire::MAX_AHEAD;

use crate::handle::CallIdx;
use crate::time::Nanos;
use crate::transfer::packet_set::PacketSet;
use crate::transfer::probes::{Probe, Probes};
use crate::transfer::progress::Progress;

/// The most doublings of the reordering window.
const MAX_REORDER: u32 = 10;

/// After this many true losses in a row, the window is halved.
const REPAIRS_TO_NARROW: u32 = 16;

/// Packets of a turn: a message of 64 KB is sent without a break; a longer one lets other messages
/// send between its turns.
const QUANTUM: u32 = 64;

/// The acknowledgement of a packet that was not known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    /// When the packet last left.
    pub(crate) sent: Nanos,
    /// The packet left only once.
    pub(crate) once: bool,
    /// The packet counted as lost or had been sent again, but an earlier copy was only late.
    pub(crate) late: bool,
}

/// The number of packets of a message.
pub(crate) fn packets_of(size: u32, data_size: u32) -> u32 {
    size.div_ceil(data_size).max(1)
}

/// One message on its way.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The call of the message.
    call: CallIdx,
    /// When the client must act if no packet arrives.
    due: Nanos,
    /// The message is in the queue of messages that may send.
    queued: bool,
    /// Until when the message's next packet waits in the timing wheel.
    place: Option<Nanos>,
    /// The entry is in use. Free entries are reused.
    live: bool,
    /// The message's place in the order of its session's turns.
    turn: u64,
    turn_left: u32,
    /// When its turn began.
    turn_since: Nanos,
    packets: u32,
    base: u32,
    next: u32,
    outstanding: u32,
    lost_count: u32,
    acked: PacketSet,
    lost: PacketSet,
    resent: PacketSet,
    /// The acknowledged packet that left last: when it left, and its number. A last packet that may
    /// overtake others does not count.
    newest: (Nanos, u32),
    /// True if the answer to the last packet says nothing about the packets before it.
    tail_overtakes: bool,
    /// The round trip of the packet `newest`.
    newest_rtt: Nanos,
    probes: Probes,
    /// Doublings of the window, because packets that counted as lost were only late.
    reorder: u32,
    /// When the window was last doubled.
    widened: Nanos,
    /// True losses since the last late packet, or since the window was halved.
    repaired: u32,
    progress: Progress,
    /// When each packet last left, by its number modulo 512.
    sent: Vec<Nanos>,
}

impl Transfer {
    fn new() -> Self {
        Self {
            call: CallIdx(0),
            due: Nanos::MAX,
            queued: false,
            place: None,
            live: false,
            turn: 0,
            turn_left: 0,
            turn_since: Nanos::ZERO,
            packets: 0,
            base: 0,
            next: 0,
            outstanding: 0,
            lost_count: 0,
            acked: PacketSet::default(),
            lost: PacketSet::default(),
            resent: PacketSet::default(),
            newest: (Nanos::ZERO, 0),
            tail_overtakes: false,
            newest_rtt: Nanos::ZERO,
            probes: Probes::default(),
            reorder: 0,
            widened: Nanos::ZERO,
            repaired: 0,
            progress: Progress::default(),
            sent: Vec::new(),
        }
    }

    /// Begins a message of `packets` packets, of which none has left.
    pub(super) fn begin(&mut self, call: CallIdx, packets: u32, turn: u64) {
        let mut sent = std::mem::take(&mut self.sent);
        sent.resize(MAX_AHEAD as usize, Nanos::ZERO);
        *self = Self {
            call,
            packets,
            turn,
            turn_left: QUANTUM,
            live: true,
            sent,
            ..Self::new()
        };
    }

    /// Ends the message, because it has arrived or its call has ended, and frees the entry.
    pub(super) fn end(&mut self) {
        self.live = false;
    }

    /// Whether the entry is in use.
    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// The call of the message.
    #[inline]
    pub(super) fn call(&self) -> CallIdx {
        self.call
    }

    /// When the client must act if no packet arrives.
    #[inline]
    pub(super) fn due(&self) -> Nanos {
        self.due
    }

    /// Notes that the client must act at `due` if no packet arrives.
    #[inline]
    pub(super) fn expect(&mut self, due: Nanos) {
        self.due = due;
    }

    /// Notes that the next packet waits in the timing wheel until `at`.
    #[inline]
    pub(super) fn begin_place(&mut self, at: Nanos) {
        self.place = Some(at);
    }

    /// Whether the next packet waits in the timing wheel.
    #[inline]
    pub(super) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Notes that the time `at` of a packet in the wheel has come. False if the message no longer
    /// waits for that time.
    #[inline]
    pub(super) fn end_place(&mut self, at: Nanos) -> bool {
        let ends = self.place == Some(at);
        if ends {
            self.place = None;
        }
        ends
    }

    /// Notes that the message enters the queue for its turn. False if it is already there, or waits
    /// in the timing wheel, which will bring it back.
    pub(super) fn begin_wait(&mut self) -> bool {
        let begins = !self.queued && self.place.is_none();
        self.queued |= begins;
        begins
    }

    /// Notes that the message leaves the queue, because its turn has come.
    pub(super) fn end_wait(&mut self) {
        self.queued = false;
    }

    /// Packets that have left and are not known to have arrived, including lost packets.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Notes how many packets have arrived. A message with none in flight waits for this side.
    pub(super) fn look_at_progress(&mut self, present: Nanos) {
        let arrived = self.next - self.outstanding;
        self.progress.look(arrived, self.outstanding, present);
    }

    /// Whether packets are in flight, and none is known to have arrived for `span`.
    pub(super) fn is_stalled(&self, present: Nanos, span: Nanos) -> bool {
        let arrived = self.next - self.outstanding;
        self.outstanding != 0 && self.progress.stands(arrived, present, span)
    }

    /// Credits that the message holds: one for each packet in flight, and at least its call's.
    #[inline]
    pub(crate) fn held(&self) -> u32 {
        self.outstanding.max(1)
    }

    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.base == self.packets
    }

    /// All packets before this one have arrived.
    #[inline]
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// The first packet that has never left.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Notes that the last packet may overtake others, so that its answer does not show that they
    /// are lost.
    #[inline]
    pub(super) fn let_tail_overtake(&mut self) {
        self.tail_overtakes = true;
    }

    /// Whether the answer to this packet shows which packets before it are lost.
    #[inline]
    fn shows_losses(&self, packet: u32) -> bool {
        !self.tail_overtakes || packet + 1 != self.packets
    }

    /// Whether only one packet has never left.
    pub(super) fn has_one_left(&self) -> bool {
        self.packets - self.next == 1
    }

    /// Packets that count as lost and must leave again.
    pub(crate) fn lost(&self) -> u32 {
        self.lost_count
    }

    /// The message's place in the order of turns: the lowest place sends first.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// Counts `sent` packets of the message's turn, which lasts at most `longest`. True if the turn
    /// is over.
    pub(super) fn spend_turn(&mut self, sent: u32, now: Nanos, longest: Nanos) -> bool {
        if self.turn_left == QUANTUM {
            self.turn_since = now;
        }
        self.turn_left -= sent;
        self.turn_left == 0 || now.since(self.turn_since) >= longest
    }

    /// Begins a new turn, after all turns with lower numbers.
    pub(super) fn begin_turn(&mut self, turn: u64) {
        (self.turn, self.turn_left) = (turn, QUANTUM);
    }

    /// Packets that the message may still send in its turn.
    pub(crate) fn turn_left(&self) -> u32 {
        self.turn_left
    }

    /// Whether a lost packet must leave again. A lost packet needs no further credit.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost_count != 0
    }

    /// The last measured time from a packet to its answer, including the time in the server; `None`
    /// before the first answer.
    pub(crate) fn round_trip(&self) -> Option<Nanos> {
        (self.newest_rtt != Nanos::ZERO).then_some(self.newest_rtt)
    }

    /// Whether the packet, which has left, is not known to have arrived.
    #[inline]
    pub(crate) fn is_missing(&self, packet: u32) -> bool {
        packet >= self.base && !self.acked.has(packet)
    }

    /// The packet to send next, and whether it was sent before.
    pub(crate) fn next_to_send(&self) -> Option<(u32, bool)> {
        if self.lost_count != 0 {
            let lost = (self.base..self.next).find(|packet| self.lost.has(*packet));
            return lost.map(|packet| (packet, true));
        }
        let may = self.next < self.packets && self.next - self.base < MAX_AHEAD;
        may.then_some((self.next, false))
    }

    /// Notes a probe of the tail with this packet, which leaves again now. Returns the number of
    /// probes in a row.
    pub(super) fn on_probe(&mut self, packet: u32, now: Nanos) -> u8 {
        let probes = self.probes.on_probe(packet, self.sent_at(packet), now);
        self.on_sent(packet, now);
        probes
    }

    /// Whether the tail was probed, and no packet has arrived since.
    pub(crate) fn asks(&self) -> bool {
        self.probes.asks()
    }

    /// The probes that repeat this packet, which has arrived; `None` if there were none.
    pub(crate) fn take_probe(&mut self, packet: u32) -> Option<Probe> {
        self.probes.take_probe(packet)
    }

    /// Notes that the packet leaves now.
    pub(crate) fn on_sent(&mut self, packet: u32, now: Nanos) {
        if packet == self.next {
            self.next += 1;
            self.outstanding += 1;
        } else {
            self.resent.insert(packet);
            if self.lost.has(packet) {
                self.lost.remove(packet);
                self.lost_count -= 1;
            }
        }
        self.sent[(packet % MAX_AHEAD) as usize] = now;
    }

    /// Notes that the packet has arrived. `None` if that was already known, or the packet has not
    /// left. `least` is the shortest possible round trip.
    pub(crate) fn on_acked(&mut self, packet: u32, now: Nanos, least: Nanos) -> Option<Answered> {
        if packet < self.base || packet >= self.next || self.acked.has(packet) {
            return None;
        }
        let sent = self.sent[(packet % MAX_AHEAD) as usize];
        let once = !self.resent.has(packet) && !self.lost.has(packet);
        let took = now.since(sent);
        let late = self.lost.has(packet) || self.probes.is_early(packet, once, took, least);
        if late {
            // The answer came too early to belong to the second copy, so the first copy was late,
            // not lost.
            self.on_late(now);
        } else {
            if !once {
                self.on_repaired();
            }
            if (sent, packet) > self.newest && self.shows_losses(packet) {
                self.newest = (sent, packet);
                // The answer to a packet that was sent again may belong to the first copy. Then a
                // round trip counted from the second copy would be too short, and would make all
                // packets in a queue look late.
                let longest = took.max(self.newest_rtt);
                self.newest_rtt = if once { took } else { longest };
            }
        }
        if self.lost.has(packet) {
            self.lost.remove(packet);
            self.lost_count -= 1;
        }
        self.acked.insert(packet);
        self.outstanding -= 1;
        while self.acked.has(self.base) {
            self.acked.remove(self.base);
            self.resent.remove(self.base);
            self.base += 1;
        }
        self.probes.on_arrival();
        Some(Answered { sent, once, late })
    }

    /// Notes that a packet that was sent again had been late, not lost.
    pub(crate) fn on_late(&mut self, now: Nanos) {
        self.repaired = 0;
        // The window grows at most once per round trip: packets that are late together count as
        // one.
        if now.since(self.widened) >= self.newest_rtt {
            self.widened = now;
            self.reorder = (self.reorder + 1).min(MAX_REORDER);
        }
    }

    /// Notes that a packet was truly lost. After many such losses the window may be too wide, so it
    /// is halved.
    fn on_repaired(&mut self) {
        self.repaired += 1;
        if self.repaired == REPAIRS_TO_NARROW {
            self.repaired = 0;
            self.reorder = self.reorder.saturating_sub(1);
        }
    }

    /// Marks packets as lost that should have been answered by now, and returns when to look for
    /// more. `window` is the time by which a packet may be later than others, before any doubling.
    pub(crate) fn find_lost(&mut self, now: Nanos, window: Nanos) -> Nanos {
        let mut due = Nanos::MAX;
        if self.base == self.next || self.newest < (self.sent_at(self.base), self.base) {
            return due;
        }
        // If nothing else can be sent, a retransmission is cheaper than waiting for packets that
        // may only be late.
        let stuck = self.next == self.packets || self.next - self.base == MAX_AHEAD;
        let doublings = if stuck { 0 } else { self.reorder };
        let window = window.times(1 << doublings);
        for packet in self.base..self.next {
            if self.acked.has(packet) || self.lost.has(packet) {
                continue;
            }
            let sent = self.sent_at(packet);
            if (sent, packet) > self.newest {
                continue;
            }
            let late = sent + self.newest_rtt + window;
            if late <= now {
                self.lost.insert(packet);
                self.lost_count += 1;
            } else {
                due = due.min(late);
            }
        }
        due
    }

    /// When this outstanding packet last left.
    pub(crate) fn sent_at(&self, packet: u32) -> Nanos {
        self.sent[(packet % MAX_AHEAD) as usize]
    }

    /// The last outstanding packet, with which the client probes.
    pub(crate) fn tail(&self) -> Option<u32> {
        let mut packets = (self.base..self.next).rev();
        packets.find(|packet| !self.acked.has(*packet))
    }
}

impl Default for Transfer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
