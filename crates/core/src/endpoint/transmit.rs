//! The end of an iteration: its packets go to the transport, and a dispatch handler that took long
//! is treated as slow. "CLOCK 2" marks the second reading of the clock in an iteration; the event
//! loop has the first. Called by the event loop, and before a slow handler runs.

use crate::client::calls::Calls;
use crate::context::Context;
use crate::endpoint::dispatch::{Dispatched, suspect_slow};
use crate::endpoint::rpc::Engine;
use crate::packet::outbox::Outbox;
use crate::protocol::Core;
use crate::server::requests::Requests;
use crate::time::{Clock, Nanos};
use crate::transport::{LanePacket, Messages, Owner, Source, Tx, TxSeq};

/// With at least this number of packets, a transport that makes system calls may take as long as a
/// handler that counts as slow.
const MANY: usize = 4;

/// The parts that own the messages of staged packets.
#[derive(Clone, Copy)]
struct Owners<'a> {
    calls: &'a Calls,
    requests: &'a Requests,
}

impl<'a> Messages<'a> for Owners<'a> {
    #[inline(always)]
    fn message(self, source: Source) -> &'a [u8] {
        match source.owner() {
            Owner::Call(index, generation) => self.calls.staged(index, generation),
            Owner::Request(index, req) => self.requests.staged(index, req),
        }
    }
}

impl<X: Tx, C: Clock, App> Engine<X, C, App> {
    /// Gives the iteration's packets to the transport.
    #[inline(always)]
    pub(super) fn transmit_short(&mut self) {
        let Some(lane) = self.core.context.outbox.plain_packets() else {
            return self.transmit();
        };
        let count = lane.len();
        if count >= MANY {
            return self.transmit_lane();
        }
        if count == 0 {
            return self.tx.settle();
        }
        self.send_lane_apart();
        if self.dispatched != Dispatched::NOTHING {
            // CLOCK 2, after a short burst, because its packets should not wait for the reading.
            let leaving = self.clock.now();
            self.find_slow(leaving);
        }
    }

    /// Gives the iteration's packets, which are many and all in the lane, to the transport.
    #[inline(never)]
    fn transmit_lane(&mut self) {
        if !self.core.context.config.bypasses.clock {
            return self.transmit();
        }
        // CLOCK 2, before the burst, because the transport's time must not count as the handlers'.
        let leaving = self.clock.now();
        self.send_lane();
        self.find_slow(leaving);
    }

    /// Gives the lane, which holds all packets, to the transport.
    #[inline(always)]
    fn send_lane(&mut self) {
        let Core {
            context,
            calls,
            requests,
            ..
        } = &mut self.core;
        let (Context { outbox, stats, .. }, owners) = (context, Owners { calls, requests });
        let lane = outbox.lane();
        stats.on_transmit(lane.len(), lane.len(), lane.requests());
        let end = match alike_packet(&self.tx, outbox) {
            Some(packet) => self.tx.send_alike(outbox.lane(), packet, owners),
            None => {
                outbox.complete_lane(owners);
                self.tx.send(outbox.lane(), &[])
            }
        };
        // No msgbuf waits for these packets, so it is enough that the next iteration asks for
        // `done`.
        outbox.clear_plain(end);
    }

    /// Gives the lane, whose only packet this is, to the transport.
    #[inline(always)]
    pub(super) fn send_lone(&mut self, packet: LanePacket) {
        let Core {
            context,
            calls,
            requests,
            ..
        } = &mut self.core;
        let (Context { outbox, stats, .. }, owners) = (context, Owners { calls, requests });
        if !self.tx.takes_alike(packet) {
            outbox.complete_lane(owners);
        }
        let lane = outbox.lane();
        let end = self.tx.send_lone(lane, packet, owners);
        // The peer waits for the packet, so it is counted after it left.
        stats.on_transmit(1, 1, lane.requests());
        outbox.clear_plain(end);
    }

    /// The same as [`Self::send_lane`], but not inlined, so that it takes no registers from the
    /// loop over frames.
    #[inline(never)]
    fn send_lane_apart(&mut self) {
        self.send_lane();
    }

    /// Treats a dispatch handler as slow if the packets leave late.
    #[inline(always)]
    pub(super) fn find_slow(&mut self, leaving: Nanos) {
        if self.is_late(leaving) {
            suspect_slow(&mut self.handlers, &mut self.dispatched);
        }
    }

    /// Whether so much time has passed in this iteration that a dispatch handler was slow.
    #[inline(always)]
    pub(super) fn is_late(&self, leaving: Nanos) -> bool {
        let Context { moment, config, .. } = &self.core.context;
        // The clock never goes backwards.
        Nanos(leaving.0.wrapping_sub(moment.now().0)) > config.ack_delay
    }

    /// Gives all packets, of any kind and number, to the transport.
    #[inline(never)]
    pub(crate) fn transmit(&mut self) {
        let Core {
            context,
            calls,
            requests,
            ..
        } = &mut self.core;
        let Context {
            config,
            moment,
            outbox,
            held,
            stats,
            ..
        } = context;
        let (count, staged) = (outbox.count(), outbox.lane().len());
        stats.on_transmit(count, staged, outbox.take_requests());
        if count == 0 {
            return self.tx.settle();
        }
        stats.on_unstaged(outbox.take_unstaged());
        // CLOCK 2: before the burst if answers must state how long their requests stayed, because
        // they leave at this time. Also before it if the burst is long, because the transport's
        // time must not count as the handlers'.
        let measures = outbox.measures();
        let early = measures || count >= MANY;
        let mut leaving = match early {
            true => self.clock.now(),
            false => moment.now(),
        };
        if !config.bypasses.clock {
            for _ in 1..count {
                leaving = self.clock.now();
            }
        }
        if measures {
            moment.look_for_backlog(stats.counters().rx_frames);
            let waited = |came| moment.has_waited(came);
            outbox.stamp_answers(leaving, moment.burst_time(), waited, stats);
        }
        if let Some(tap) = &mut self.tap {
            tap.on_burst(leaving, outbox.items());
        }
        let end = send_packets(&mut self.tx, outbox, Owners { calls, requests });
        if !early && (self.dispatched != Dispatched::NOTHING || outbox.tells_calls()) {
            // CLOCK 2, after a short burst, because its packets should not wait for the reading.
            leaving = self.clock.now();
        }
        for call in outbox.sent() {
            calls.on_left(call, leaving);
        }
        outbox.clear(end);
        held.on_done(self.tx.done());
        self.find_slow(leaving);
    }
}

/// Gives packets of any kind to the transport: the lane, and the queue, which may both be empty.
#[inline(always)]
fn send_packets<X: Tx>(tx: &mut X, outbox: &mut Outbox, owners: Owners<'_>) -> TxSeq {
    if outbox.items().is_empty()
        && let Some(packet) = alike_packet(tx, outbox)
    {
        return tx.send_alike(outbox.lane(), packet, owners);
    }
    outbox.complete_lane(owners);
    let (lane, items) = outbox.packets();
    match lane.is_empty() {
        true => tx.burst(items),
        false => tx.send(lane, items),
    }
}

/// The first packet of a lane whose packets are all alike, if the transport can send them as a row.
#[inline(always)]
fn alike_packet<X: Tx>(tx: &X, outbox: &Outbox) -> Option<LanePacket> {
    let (_, packet) = outbox.lane().alike()?;
    tx.takes_alike(packet).then_some(packet)
}
