//! The receiving half's rare work: answering the doorbell, parking rings that stay empty, and
//! checking parked rings; and closing a ring whose peer writes nonsense. Called by bursts that are
//! not plain.

use std::sync::atomic::{Ordering, fence};

use super::super::channel::ChannelIdx;
use super::super::doorbell::MAX_BITS;
use super::super::ring::Parked;
use super::{RxRing, ShmRx};

/// The most active rings that cost less to poll than to park.
const FEW: usize = 8;

/// Parked rings that one round checks. With 4096 rings, each has its turn within 16 000 bursts,
/// which take about a millisecond if they find nothing.
const LOOKS: usize = 8;

/// After this many bursts without a packet, a ring is parked if there are more than [`FEW`].
const IDLE: u32 = 32;

impl ShmRx {
    #[cold]
    pub(super) fn close_corrupt(&mut self, index: ChannelIdx) {
        self.counters.rx_corrupt += 1;
        self.remove(index.at());
    }

    /// Activates the rings whose peers have rung.
    #[cold]
    pub(super) fn answer_bell(&mut self) {
        let mut rung = [0_u64; MAX_BITS as usize / 64];
        self.bell
            .take(|bit| rung[bit as usize / 64] |= 1 << (bit % 64));
        for (word, mut bits) in rung.into_iter().enumerate() {
            while bits != 0 {
                self.activate(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Parks rings that stayed empty, if there are many to poll. Checks some parked rings, so that
    /// a peer that writes into the doorbell cannot hide another peer's packets for long.
    #[cold]
    pub(super) fn keep_house(&mut self) {
        // The frames in these rings belong to an earlier burst.
        self.retired.clear();
        if self.active.len() > FEW {
            self.park_idle();
        }
        if self.rings.is_empty() {
            return;
        }
        for _ in 0..self.rings.len().min(LOOKS) {
            self.round = (self.round + 1) % self.rings.len();
            self.look(self.round);
        }
    }

    /// Activates a parked ring that has packets.
    fn look(&mut self, index: usize) {
        if let Some(Some(ring)) = self.rings.get(index)
            && !ring.active
            && ring.ring.has_next()
        {
            self.activate(index);
        }
    }

    fn park_idle(&mut self) {
        let now = self.alone.bursts;
        let is_idle = |ring: &RxRing| now.wrapping_sub(ring.last_busy) >= IDLE;
        let mut marked = false;
        for ring in self.active().filter(|ring| is_idle(ring)) {
            ring.ring.set_parked(Parked::Awake);
            marked = true;
        }
        if !marked {
            return;
        }
        fence(Ordering::SeqCst);
        let (rings, dozing) = (&mut self.rings, &mut self.dozing);
        self.active.retain(|polled| {
            let Some(ring) = rings[polled.index.at()].as_mut() else {
                return false;
            };
            if is_idle(ring) {
                ring.active = ring.ring.has_next();
                if ring.active {
                    ring.ring.set_parked(Parked::No);
                } else {
                    start_to_doze(ring, polled.index, dozing);
                }
            }
            ring.active
        });
    }

    /// Sets the marks of the rings that bursts poll (`active`), and of the rings that are parked
    /// but not asleep (`dozing`).
    pub(super) fn mark(&self, active: Parked, dozing: Parked) {
        self.active().for_each(|ring| ring.ring.set_parked(active));
        self.dozing().for_each(|ring| ring.ring.set_parked(dozing));
    }

    /// Undoes the marks of a sleep that did not begin.
    pub(super) fn stay_awake(&mut self) {
        self.mark(Parked::No, Parked::Awake);
        for place in 0..self.dozing.len() {
            self.look(self.dozing[place].at());
        }
    }

    /// Stops polling the active rings, which doze from now on. The rings that dozed until now keep
    /// their mark even after the thread has woken. So the work for a sleep depends only on the
    /// number of active rings. The price is that the peer of another ring may send one message to a
    /// thread that is awake.
    pub(super) fn doze(&mut self) {
        for index in self.dozing.drain(..) {
            if let Some(ring) = &mut self.rings[index.at()] {
                ring.dozes = false;
            }
        }
        for polled in self.active.drain(..) {
            if let Some(ring) = &mut self.rings[polled.index.at()] {
                ring.active = false;
                start_to_doze(ring, polled.index, &mut self.dozing);
            }
        }
    }

    pub(super) fn dozing(&self) -> impl Iterator<Item = &RxRing> {
        let ring = |index: &ChannelIdx| self.rings[index.at()].as_ref();
        let rings = self.dozing.iter().filter_map(ring);
        rings.filter(|ring| !ring.active)
    }

    /// Looks at a ring whose peer has woken the thread, and reads the peer's messages from its
    /// line. False if the peer's end is gone.
    pub(in crate::shm) fn on_woken(&mut self, index: usize) -> bool {
        let Some(Some(ring)) = self.rings.get_mut(index) else {
            return false;
        };
        let is_there = ring.known.listen(ring.channel.line());
        if !ring.active {
            // The peer may have cleared the mark. The next sleep sets it again.
            ring.ring.set_parked(Parked::Awake);
            start_to_doze(ring, ChannelIdx::new(index), &mut self.dozing);
        }
        self.look(index);
        is_there
    }
}

/// Adds a ring with the mark [`Parked::Awake`] to the list of such rings.
fn start_to_doze(ring: &mut RxRing, index: ChannelIdx, dozing: &mut Vec<ChannelIdx>) {
    if !std::mem::replace(&mut ring.dozes, true) {
        dozing.push(index);
    }
}
