//! The simulator's adapter for handshakes: offers and descriptors for the simulated transport, and
//! commands to the control thread. `dunlin_control::Handshake`, which the nexus runs too, decides
//! the steps and calls this.

use dunlin_control::{Command, HalvesMut, PeerIdentity, Peering, TransportOffers};
use dunlin_core::transport::PeerId;
use dunlin_wire::control::RefuseCode;

use super::ways::Ways;
use crate::world::net::channels::Pending;
use crate::world::net::{Fd, SimTransport};

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
        self.strike(tx.channels_mut(), &pending);
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
