//! Channels of a process's transport, and the faults that strike them: a channel may vanish between
//! grant and completion. Called by `control`, and by handshakes through `peering`.

use dunlin_core::transport::PeerId;

use super::commands::Commands;
use crate::world::net::channels::{Channels, Pending, port_of};
use crate::world::rng::{Ppm, Rng};

/// Least number of completions between two vanishing channels. If several vanished in a row, they
/// could exhaust a session's retries.
const SPARED: u32 = 100;

/// The transport's peers, and the way to the control thread.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) commands: Commands,
    rng: Rng,
    /// How often a channel vanishes between grant and completion.
    gone: Ppm,
    /// Whether the next channel vanishes in any case, because its process has restarted.
    pub(super) restarted: bool,
    spared: u32,
    /// Whether some processes receive packets at an address other than their connections'.
    elsewhere: bool,
}

impl Ways {
    pub(super) fn new(mut rng: Rng, gone: Ppm, elsewhere: bool) -> Self {
        Self {
            commands: Commands::new(rng.fork()),
            rng,
            gone,
            restarted: false,
            spared: SPARED,
            elsewhere,
        }
    }

    /// Whether packets to this peer go to an address other than its connection's. If the plan
    /// demands this, it holds for processes with odd ports, except those with which this one shares
    /// memory.
    pub(super) fn is_elsewhere(&self, channels: &Channels, peer: PeerId) -> bool {
        self.elsewhere && port_of(peer) % 2 == 1 && channels.uses_datagrams(peer)
    }

    /// Makes the offered channel vanish, if its turn has come.
    pub(super) fn strike(&mut self, channels: &mut Channels, pending: &Pending) {
        if self.is_gone() {
            channels.lose(pending);
        }
    }

    fn is_gone(&mut self) -> bool {
        self.spared += 1;
        let chosen = std::mem::take(&mut self.restarted) || self.rng.chance(self.gone);
        let gone = chosen && self.spared > SPARED;
        self.spared *= u32::from(!gone);
        gone
    }
}
