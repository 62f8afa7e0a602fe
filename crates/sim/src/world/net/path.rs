//! A frame's path from the sender's memory to the receiver's RX queue, and the places where it may
//! be dropped.
//!
//! Invariant: every frame is counted exactly once, in `delivered` or in one of the counters of
//! drops. Called by `Net::step`.

use dunlin_core::Nanos;
use dunlin_core::transport::MAX_INLINE;

use crate::world::net::channels::{NOWHERE, port_of};
use crate::world::net::fact::FrameFact;
use crate::world::net::faults::{self, Damage, Fate};
use crate::world::net::frames::{End, Frame, FrameId};
use crate::world::net::queue::Full;
use crate::world::net::{Event, Happening, HostId, Net, NetCounters, PortId};

impl Net {
    pub(super) fn on_dma(&mut self, port: PortId, life: u32) -> Option<Happening> {
        if self.ports[port.0].life != life {
            return None;
        }
        if self.config.nic_waits {
            return self.take_turn(port);
        }
        self.read_bursts(port, self.now());
        Some(Happening::Sent(port))
    }

    /// Reads the frames of `port` that are due by `until` from their msgbufs.
    pub(super) fn read_bursts(&mut self, port: PortId, until: Nanos) {
        while self.read_frame(port, until) {}
    }

    /// Reads one frame; false if none is due.
    fn read_frame(&mut self, port: PortId, until: Nanos) -> bool {
        let spare = self.spare.pop().unwrap_or_default();
        let Some(frame) = self.ports[port.0].next_frame(until, spare) else {
            return false;
        };
        for problem in frame.problems {
            self.violate(format!("port {}: {problem}", port.0));
        }
        if frame.to.0 == port_of(NOWHERE) {
            self.counters.no_process += 1;
            return true;
        }
        self.leave(port, frame.to, frame.bytes, frame.data);
        true
    }

    /// Reads the frames of `port` that are due and for which the NIC has room, if no other port of
    /// its host waits. The remaining frames wait for their turn.
    fn take_turn(&mut self, port: PortId) -> Option<Happening> {
        let (now, host) = (self.now(), self.host_of(port));
        let waiting = &mut self.hosts[host.0].waiting;
        if !waiting.is_empty() {
            if !waiting.contains(&port) {
                waiting.push_back(port);
            }
            return None;
        }
        loop {
            let room = self.nic_room_at(host);
            if room > now && self.ports[port.0].is_due(now) {
                self.hosts[host.0].waiting.push_back(port);
                self.events.push(room, Event::Room(host));
                break;
            }
            if !self.read_frame(port, now) {
                break;
            }
        }
        Some(Happening::Sent(port))
    }

    /// Lets the first waiting port send one frame, because the NIC has room again.
    pub(super) fn on_room(&mut self, host: HostId) -> Option<Happening> {
        let now = self.now();
        let port = self.hosts[host.0].waiting.pop_front()?;
        self.read_frame(port, now);
        if self.ports[port.0].is_due(now) {
            self.hosts[host.0].waiting.push_back(port);
        }
        if !self.hosts[host.0].waiting.is_empty() {
            let room = self.nic_room_at(host);
            self.events.push(room, Event::Room(host));
        }
        Some(Happening::Sent(port))
    }

    /// When the NIC has room for the largest frame.
    fn nic_room_at(&mut self, host: HostId) -> Nanos {
        let config = &self.config;
        let packet = config.data_size as usize + MAX_INLINE;
        let frame = packet.max(config.frame_bytes) as u64 + u64::from(config.frame_overhead);
        self.wiring.nic_room_at(host, frame, self.time.get())
    }

    /// Makes a frame.
    pub(super) fn frame(&mut self, from: PortId, to: PortId, bytes: Vec<u8>, data: u32) -> FrameId {
        let size = bytes.len() as u64 + u64::from(self.config.frame_overhead);
        self.frames.insert(Frame {
            from,
            to,
            bytes,
            size,
            data,
            congestion: false,
            end: End::Nic,
        })
    }

    fn leave(&mut self, from: PortId, to: PortId, bytes: Vec<u8>, data: u32) {
        let now = self.now();
        self.counters.sent += 1;
        let frame = &bytes;
        self.record.note(now, from, &FrameFact::Sends { to, frame });
        let id = self.frame(from, to, bytes, data);
        if to.0 >= self.ports.len() {
            self.counters.no_process += 1;
            return self.discard(id);
        }
        self.note_frame("tx", id);
        let port = &mut self.ports[from.0];
        port.traffic.sent += 1;
        port.traffic.sent_bytes += u64::from(data);
        let frame = self.frames.at_mut(id);
        match self.wiring.send(port.host, frame, now) {
            Ok(at) => self.events.push(at, Event::Arrive(id)),
            Err(Full) => self.drop_frame(id, "NIC full", |counters| &mut counters.nic_full),
        }
    }

    pub(super) fn on_arrival(&mut self, id: FrameId) -> Option<Happening> {
        match self.frames.at(id).end {
            End::Nic => return self.deliver(id),
            End::Ingress(_) => self.at_switch(id),
            End::Rack(_) | End::Spine(_) => self.forward(id),
        }
        None
    }

    /// Handles a frame that has reached the first switch.
    fn at_switch(&mut self, id: FrameId) {
        let frame = self.frames.at(id);
        self.tap.record(frame.to, &frame.bytes);
        let (from, to) = (self.ports[frame.from.0].host, self.ports[frame.to.0].host);
        let fate = Fate::draw(&self.rates, &mut self.rng);
        if !self.has_path(from, to) {
            return self.drop_frame(id, "cut", |counters| &mut counters.cut);
        }
        if fate.lost || self.is_in_burst(to, fate.burst) {
            return self.drop_frame(id, "lost", |counters| &mut counters.lost);
        }
        if fate.damage == Some(Damage::Noticed) {
            return self.drop_frame(id, "checksum", |counters| &mut counters.checksum);
        }
        if let Some(span) = fate.stall {
            self.wiring.stall(to, self.time.get(), span);
            self.note(|| format!("switch: port to host {} stops for {} ns", to.0, span.0));
        }
        if let Some(late) = fate.again {
            self.counters.duplicated += 1;
            let copy = self.frames.at(id).clone();
            let copy = self.frames.insert(copy);
            self.forward_late(copy, late);
        }
        if fate.damage == Some(Damage::Unnoticed) {
            self.counters.damaged += 1;
            let bytes = &mut self.frames.at_mut(id).bytes;
            faults::damage(bytes, &self.config.reach, &mut self.rng);
        }
        match fate.late {
            Some(late) => {
                self.counters.reordered += 1;
                self.forward_late(id, late);
            }
            None => self.forward(id),
        }
    }

    /// Whether this frame, which goes to `host`, is lost in a burst of losses. The burst begins
    /// with this frame (`begins`: its length), or began with an earlier frame.
    fn is_in_burst(&mut self, host: HostId, begins: Option<u32>) -> bool {
        let losing = &mut self.hosts[host.0].losing;
        *losing = (*losing).max(begins.unwrap_or(0));
        let lost = *losing != 0;
        *losing -= u32::from(lost);
        lost
    }

    fn drop_frame(
        &mut self,
        id: FrameId,
        why: &'static str,
        counter: impl FnOnce(&mut NetCounters) -> &mut u64,
    ) {
        *counter(&mut self.counters) += 1;
        self.note_frame(why, id);
        self.discard(id);
    }

    /// Puts a frame into the next queue on its path.
    fn forward(&mut self, id: FrameId) {
        let to = self.host_of(self.frames.at(id).to);
        let now = self.now();
        let frame = self.frames.at_mut(id);
        match self.wiring.forward(frame, to, &mut self.rng, now) {
            Ok(at) => self.events.push(at, Event::Arrive(id)),
            Err(Full) => self.drop_frame(id, "queue full", |counters| &mut counters.queue_full),
        }
    }

    /// Sends a frame past all queues with a delay, so that others overtake it.
    fn forward_late(&mut self, id: FrameId, late: Nanos) {
        let at = self.now() + self.config.cable + late;
        self.events.push(at, Event::Deliver(id));
    }

    pub(super) fn deliver(&mut self, id: FrameId) -> Option<Happening> {
        let limit = self.config.rx_queue as usize;
        let to = self.frames.at(id).to;
        let port = &self.ports[to.0];
        if !port.alive || !self.hosts[port.host.0].connected {
            self.drop_frame(id, "no process", |counters| &mut counters.no_process);
            return None;
        }
        if port.rx.len() >= limit {
            self.drop_frame(id, "rx full", |counters| &mut counters.rx_full);
            return None;
        }
        self.note_frame("rx", id);
        let frame = self.frames.remove(id);
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(frame.data);
        self.absorb(&frame);
        let now = self.now();
        if let Some(capture) = &mut self.capture {
            capture.show(&frame, now);
        }
        let fact = FrameFact::Receives {
            from: frame.from,
            frame: &frame.bytes,
            congestion: frame.congestion,
        };
        self.record.note(now, to, &fact);
        let port = &mut self.ports[to.0];
        port.traffic.received += 1;
        port.traffic.received_bytes += u64::from(frame.data);
        let from = frame.from;
        port.rx.push_back((frame.bytes, frame.congestion));
        self.ports[from.0].traffic.delivered_bytes += u64::from(frame.data);
        Some(Happening::Arrived(to))
    }

    fn note_frame(&mut self, what: &'static str, id: FrameId) {
        let describe = self.config.describe;
        let frame = self.frames.at(id);
        self.trace.note(self.time.get(), || {
            let (from, to) = (frame.from.0, frame.to.0);
            format!("{what:<10} {from}->{to} {}", describe(&frame.bytes))
        });
    }

    fn discard(&mut self, id: FrameId) {
        let frame = self.frames.remove(id);
        self.spare.push(frame.bytes);
    }

    /// Adds a delivered frame to the digest of the run.
    fn absorb(&mut self, frame: &Frame) {
        let mut words = [self.now().0, frame.to.0 as u64, 0, 0, 0];
        for (word, bytes) in words[2..].iter_mut().zip(frame.bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        for word in words {
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
        }
    }
}
