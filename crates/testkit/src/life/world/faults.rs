//! Frames that are delivered one by one, lost, copied, packed together or forged. Steps of an input
//! call these functions.

use super::{Datagram, SOUND, World};

impl World {
    fn take_flight(&mut self, from: usize, which: usize) -> Option<Datagram> {
        let flight = &mut self.hosts[from].out.borrow_mut().flight;
        let len = flight.len();
        (len != 0).then(|| flight.remove(which % len))
    }

    fn arrive(&mut self, at: usize, datagram: Datagram) {
        self.hosts[at].inbox.borrow_mut().push_back(datagram);
    }

    pub(in crate::life) fn deliver(&mut self, from: usize, which: usize) {
        if let Some(mut datagram) = self.take_flight(from, which) {
            datagram.congestion = which >= 128;
            self.arrive(1 - from, datagram);
        }
    }

    pub(in crate::life) fn lose(&mut self, from: usize, which: usize) {
        let _lost = self.take_flight(from, which);
    }

    pub(in crate::life) fn lose_all(&mut self, from: usize) {
        self.hosts[from].out.borrow_mut().flight.clear();
    }

    /// Delivers a frame that was sent some time ago, even if it was delivered before.
    pub(in crate::life) fn duplicate(&mut self, from: usize, which: usize) {
        if let Some(bytes) = self.sent(from, which) {
            let congestion = false;
            self.arrive(1 - from, Datagram { bytes, congestion });
        }
    }

    /// Delivers all packets that are in flight in one frame (rule W11).
    pub(in crate::life) fn pack(&mut self, from: usize) {
        let flight = std::mem::take(&mut self.hosts[from].out.borrow_mut().flight);
        let bytes: Vec<u8> = flight
            .into_iter()
            .flat_map(|datagram| datagram.bytes)
            .collect();
        if !bytes.is_empty() {
            let congestion = false;
            self.arrive(1 - from, Datagram { bytes, congestion });
        }
    }

    fn sent(&self, from: usize, which: usize) -> Option<Vec<u8>> {
        let out = self.hosts[from].out.borrow();
        let len = out.history.len();
        (len != 0).then(|| out.history[which % len].clone())
    }

    /// Delivers a copy of a frame at `to`, with changed header bytes.
    pub(in crate::life) fn mutate(
        &mut self,
        from: usize,
        which: usize,
        to: usize,
        changes: [(usize, u8); 2],
    ) {
        let Some(real) = self.sent(from, which) else {
            return;
        };
        let mut bytes = real.clone();
        for (place, change) in changes {
            bytes[place % dunlin_wire::HEADER_LEN] ^= change;
        }
        self.ledger.lock().expect(SOUND).taint_copy(&real, &bytes);
        self.arrive_forged(to, bytes);
    }

    /// Delivers bytes that no host sent.
    pub(in crate::life) fn inject(&mut self, to: usize, bytes: Vec<u8>) {
        self.ledger.lock().expect(SOUND).taint(&bytes);
        self.arrive_forged(to, bytes);
    }

    fn arrive_forged(&mut self, to: usize, bytes: Vec<u8>) {
        self.challenges.on_forged(to, &bytes);
        self.hosts[to].out.borrow_mut().attacked = true;
        let congestion = false;
        self.arrive(to, Datagram { bytes, congestion });
    }
}
