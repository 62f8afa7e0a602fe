//! The simulator's side of a handshake: offers and descriptors for the simulated transport, and
//! channels that vanish while a grant is under way. Called by `control`.

use dunlin_control::{Command, HalvesMut, PeerIdentity, Peering, TransportOffers};
use dunlin_core::transport::PeerId;
use dunlin_wire::control::RefuseCode;

use super::commands::Commands;
use crate::world::net::channels::{Channels, Pending, port_of};
use crate::world::net::{Fd, SimTransport};
use crate::world::rng::{Ppm, Rng};

/// Least number of completions between two channels that vanish: several that vanish in a row could
/// exhaust a session's retries.
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
    /// Whether some processes get their packets at another address than that of their connections.
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

    /// Whether packets to this peer go to another address than that of its connection. If the plan
    /// says so, that holds for processes with odd ports, except those with which this one shares
    /// memory.
    pub(super) fn is_elsewhere(&self, channels: &Channels, peer: PeerId) -> bool {
        self.elsewhere && port_of(peer) % 2 == 1 && channels.uses_datagrams(peer)
    }

    fn is_gone(&mut self) -> bool {
        self.spared += 1;
        let chosen = std::mem::take(&mut self.restarted) || self.rng.chance(self.gone);
        let gone = chosen && self.spared > SPARED;
        self.spared *= u32::from(!gone);
        gone
    }
}

impl Peering<SimTransport> for Ways {
    type Fd = Fd;
    type Pending = Pending;

    fn offer(
        &mut self,
        (_, tx): HalvesMut<'_, SimTransport>,
        peer: &PeerIdentity,
    ) -> Result<(Pending, TransportOffers<Fd>), RefuseCode> {
        Ok(tx.channels_mut().offer(peer))
    }

    fn accept(
        &mut self,
        (_, tx): HalvesMut<'_, SimTransport>,
        peer: &PeerIdentity,
        offers: TransportOffers<Fd>,
    ) -> Result<(PeerId, TransportOffers<Fd>), RefuseCode> {
        tx.channels_mut().accept(peer, offers)
    }

    fn complete(
        &mut self,
        (_, tx): HalvesMut<'_, SimTransport>,
        pending: Pending,
        answer: TransportOffers<Fd>,
    ) -> Result<PeerId, RefuseCode> {
        if self.is_gone() {
            tx.channels_mut().lose(&pending);
        }
        tx.channels_mut().complete(pending, answer)
    }

    fn must_prove(&self, (_, tx): HalvesMut<'_, SimTransport>, peer: PeerId) -> bool {
        self.is_elsewhere(tx.channels(), peer)
    }

    fn data_size(&self, _: HalvesMut<'_, SimTransport>, _: PeerId) -> u32 {
        u32::MAX
    }

    fn abandon(&mut self, (_, tx): HalvesMut<'_, SimTransport>, pending: Pending) {
        tx.channels_mut().abandon(pending);
    }

    fn release(&mut self, (_, tx): HalvesMut<'_, SimTransport>, peer: PeerId) {
        tx.channels_mut().release(peer);
    }

    fn remove(&mut self, (_, tx): HalvesMut<'_, SimTransport>, peer: PeerId) {
        tx.channels_mut().remove(peer);
    }

    fn command(&mut self, command: Command<Fd>) {
        self.commands.push(command);
    }
}
