//! The receiving half's rare work: it answers the doorbell, parks rings that stay empty, and looks
//! at parked ones. Called by bursts that are not plain.

use std::sync::atomic::{Ordering, fence};

use super::super::doorbell::MAX_BITS;
use super::{Incoming, ShmRx};

/// Most active rings that cost less to poll than to park.
const FEW: usize = 8;

/// Bursts without a packet after which a ring is parked if there are more than [`FEW`].
const IDLE: u32 = 32;

impl ShmRx {
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

    /// Parks rings that stayed empty, if there are many to poll, and looks at one parked ring: so a
    /// peer that writes into the doorbell cannot hide another's packets for long.
    #[cold]
    pub(super) fn keep_house(&mut self) {
        // An earlier burst showed their frames.
        self.retired.clear();
        if self.active.len() > FEW {
            self.park_idle();
        }
        if self.rings.is_empty() {
            return;
        }
        self.round = (self.round + 1) % self.rings.len();
        if let Some(ring) = &self.rings[self.round]
            && !ring.active
            && ring.ring.has_next()
        {
            self.activate(self.round);
        }
    }

    fn park_idle(&mut self) {
        let now = self.alone.bursts;
        let is_idle = |ring: &Incoming| now.wrapping_sub(ring.last_busy) >= IDLE;
        let mut marked = false;
        for ring in self.active().filter(|ring| is_idle(ring)) {
            ring.ring.set_parked(true);
            marked = true;
        }
        if !marked {
            return;
        }
        fence(Ordering::SeqCst);
        let rings = &mut self.rings;
        self.active.retain(|polled| {
            let Some(ring) = rings[polled.index as usize].as_mut() else {
                return false;
            };
            if is_idle(ring) {
                ring.active = ring.ring.has_next();
                ring.ring.set_parked(!ring.active);
            }
            ring.active
        });
    }
}
