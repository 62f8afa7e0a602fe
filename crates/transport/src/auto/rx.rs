//! The receiving half: shared memory, and from time to time the socket.
//!
//! Invariant: the frames of a burst come from the transport that `source` names; the other
//! transport has not been polled since, so its frames wait for a later burst. Called by the event
//! loop, and by `connect`.

use dunlin_core::transport::{Frame, Rx};

use crate::shm::ShmRx;
use crate::turns::Turns;
use crate::udp::UdpRx;

/// The receiving half of an `auto` endpoint.
#[derive(Debug)]
pub struct AutoRx {
    /// `None` if the system refused to open shared memory.
    pub(super) shm: Option<ShmRx>,
    pub(super) udp: UdpRx,
    pub(super) turns: Turns,
    source: Source,
}

/// The transport of the current burst's frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Shm,
    Udp,
}

impl AutoRx {
    pub(super) fn new(shm: Option<ShmRx>, udp: UdpRx) -> Self {
        Self {
            shm,
            udp,
            turns: Turns::new(),
            source: Source::Udp,
        }
    }

    /// Looks at the socket. It is not inlined, so that the path through shared memory stays short.
    #[inline(never)]
    fn look_at_socket(&mut self) -> usize {
        let count = self.udp.burst();
        self.turns.on_look(count > 0);
        self.source = Source::Udp;
        count
    }
}

impl Rx for AutoRx {
    #[inline]
    fn burst(&mut self) -> usize {
        if self.turns.is_due() {
            let count = self.look_at_socket();
            if count > 0 {
                return count;
            }
        }
        let Some(shm) = &mut self.shm else {
            self.turns.on_idle();
            return 0;
        };
        let count = shm.burst();
        self.source = Source::Shm;
        if count > 0 {
            self.turns.on_busy();
        } else {
            self.turns.on_idle();
        }
        count
    }

    #[inline]
    fn frame(&self, index: usize) -> Frame<'_> {
        match (&self.shm, self.source) {
            (Some(shm), Source::Shm) => shm.frame(index),
            _ => self.udp.frame(index),
        }
    }
}
