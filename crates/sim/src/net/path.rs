//! A frame's way from the sender's memory to the receiver's RX queue, and where it may end.
//!
//! Invariant: every frame ends in exactly one of `delivered` and the counters of drops. Called by
//! `Net::step`.

use dunlin_core::Nanos;

use crate::net::faults::{self, Damage, Fate};
use crate::net::link::QueueFull;
use crate::net::{Event, Flight, Happening, HostId, Net, NetCounters, PortId};

impl Net {
    pub(super) fn on_dma(&mut self, port: PortId, life: u32) -> Happening {
        if self.ports[port.0].life != life {
            return Happening::Inside;
        }
        self.read_bursts(port, self.now());
        Happening::Sent(port)
    }

    /// Reads what `port` sends out of its msgbufs, as far as it is due by `until`.
    pub(super) fn read_bursts(&mut self, port: PortId, until: Nanos) {
        while let Some(frame) = {
            let spare = self.spare.pop().unwrap_or_default();
            self.ports[port.0].next_frame(until, spare)
        } {
            for problem in frame.problems {
                self.violate(format!("port {}: {problem}", port.0));
            }
            let flight = Flight {
                from: port,
                to: frame.to,
                bytes: frame.bytes,
                congestion: false,
            };
            self.leave(flight);
        }
    }

    fn leave(&mut self, flight: Flight) {
        let now = self.now();
        self.counters.sent += 1;
        if flight.to.0 >= self.ports.len() {
            self.counters.nobody += 1;
            return self.discard(flight);
        }
        self.note_frame("tx", &flight);
        let host = self.ports[flight.from.0].host;
        match self.hosts[host.0].up.send(now, flight.bytes.len() as u64) {
            Ok(gone) => self
                .events
                .push(gone + self.config.cable, Event::AtSwitch(flight)),
            Err(QueueFull) => {
                self.counters.queue_full += 1;
                self.discard(flight);
            }
        }
    }

    pub(super) fn at_switch(&mut self, mut flight: Flight) {
        self.tap.record(flight.to, &flight.bytes);
        let (from, to) = (self.ports[flight.from.0].host, self.ports[flight.to.0].host);
        let fate = Fate::draw(&self.rates, &mut self.rng);
        if !self.has_path(from, to) {
            return self.drop_at_switch(flight, "cut", |counters| &mut counters.cut);
        }
        if fate.lost {
            return self.drop_at_switch(flight, "lost", |counters| &mut counters.lost);
        }
        if fate.damage == Some(Damage::Noticed) {
            return self.drop_at_switch(flight, "checksum", |counters| &mut counters.checksum);
        }
        if let Some(span) = fate.stall {
            let now = self.now();
            self.hosts[to.0].down.stall(now, span);
            self.note(|| format!("switch: port to host {} stops for {} ns", to.0, span.0));
        }
        if let Some(late) = fate.again {
            self.counters.duplicated += 1;
            let copy = flight.clone();
            self.forward_late(copy, late);
        }
        if fate.damage == Some(Damage::Unnoticed) {
            self.counters.damaged += 1;
            faults::damage(&mut flight.bytes, &self.config.reach, &mut self.rng);
        }
        match fate.late {
            Some(late) => {
                self.counters.reordered += 1;
                self.forward_late(flight, late);
            }
            None => self.forward(flight, to),
        }
    }

    fn drop_at_switch(
        &mut self,
        flight: Flight,
        why: &'static str,
        counter: impl FnOnce(&mut NetCounters) -> &mut u64,
    ) {
        *counter(&mut self.counters) += 1;
        self.note_frame(why, &flight);
        self.discard(flight);
    }

    /// Sends a frame down the receiver's cable, in order.
    fn forward(&mut self, mut flight: Flight, to: HostId) {
        let now = self.now();
        let link = &mut self.hosts[to.0].down;
        flight.congestion |= link.queued(now) > self.config.mark_bytes;
        match link.send(now, flight.bytes.len() as u64) {
            Ok(gone) => self
                .events
                .push(gone + self.config.cable, Event::Deliver(flight)),
            Err(QueueFull) => {
                self.drop_at_switch(flight, "queue full", |counters| &mut counters.queue_full);
            }
        }
    }

    /// Sends a frame around the queue, so that others overtake it.
    fn forward_late(&mut self, flight: Flight, late: Nanos) {
        let at = self.now() + self.config.cable + late;
        self.events.push(at, Event::Deliver(flight));
    }

    pub(super) fn deliver(&mut self, flight: Flight) -> Happening {
        let (to, limit) = (flight.to, self.config.rx_queue as usize);
        let port = &mut self.ports[to.0];
        if !port.alive || !self.hosts[port.host.0].connected {
            self.drop_at_switch(flight, "nobody", |counters| &mut counters.nobody);
            return Happening::Inside;
        }
        if port.rx.len() >= limit {
            self.drop_at_switch(flight, "rx full", |counters| &mut counters.rx_full);
            return Happening::Inside;
        }
        self.counters.delivered += 1;
        self.note_frame("rx", &flight);
        self.absorb(&flight);
        self.ports[to.0]
            .rx
            .push_back((flight.bytes, flight.congestion));
        Happening::Arrived(to)
    }

    fn note_frame(&mut self, what: &'static str, flight: &Flight) {
        let describe = self.config.describe;
        self.note(|| {
            let (from, to) = (flight.from.0, flight.to.0);
            format!("{what:<10} {from}->{to} {}", describe(&flight.bytes))
        });
    }

    fn discard(&mut self, flight: Flight) {
        self.spare.push(flight.bytes);
    }

    /// Takes a delivered frame into the digest of the run.
    fn absorb(&mut self, flight: &Flight) {
        let mut words = [self.now().0, flight.to.0 as u64, 0, 0, 0];
        for (word, bytes) in words[2..].iter_mut().zip(flight.bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        for word in words {
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
        }
    }
}
