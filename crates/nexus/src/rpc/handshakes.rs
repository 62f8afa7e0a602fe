//! The endpoint's adapter for handshakes: it gives offers and descriptors to the transport, and
//! commands to the control thread. `dunlin_control::Handshake`, which the simulator runs too,
//! decides the steps. Called by `rpc.rs`.

use std::os::fd::OwnedFd;

use dunlin_control::{Command, HalvesMut, Handshake, PeerIdentity, Peering, TransportOffers};
use dunlin_core::transport::PeerId;
use dunlin_transport::connect::Pending;
use dunlin_wire::control::RefuseCode;

use super::offers::{code_of, info_of, unwrapped, wrapped};
use crate::events;
use crate::mailbox::{Mailbox, Request};
use crate::transports::Open;

/// The handshakes of an endpoint whose transport passes descriptors of the kernel.
pub(super) type Handshakes = Handshake<OwnedFd, Pending>;

/// The adapter's access to the control thread.
pub(super) struct Ways<'a>(pub(super) &'a Mailbox<Request>);

/// Logs, once for each endpoint, why it does not reach processes of this host over shared memory,
/// which is many times as fast.
fn warn_of_fallback<T: Open>(tx: &mut T::Tx) {
    if let Some(why) = T::take_fallback(tx) {
        events::on_fallback(&why);
    }
}

impl<T: Open> Peering<T> for Ways<'_> {
    type Fd = OwnedFd;
    type Pending = Pending;

    fn offer(
        &mut self,
        (rx, tx): HalvesMut<'_, T>,
        peer: &PeerIdentity,
    ) -> Result<(Pending, TransportOffers<OwnedFd>), RefuseCode> {
        let made = T::offer(rx, tx, &info_of(peer));
        warn_of_fallback::<T>(tx);
        let (pending, offer) = made.map_err(|error| code_of(&error))?;
        Ok((pending, wrapped::<T>(offer)))
    }

    fn accept(
        &mut self,
        (rx, tx): HalvesMut<'_, T>,
        peer: &PeerIdentity,
        offers: TransportOffers<OwnedFd>,
    ) -> Result<(PeerId, TransportOffers<OwnedFd>), RefuseCode> {
        let offer = unwrapped::<T>(offers);
        let taken = offer.and_then(|offer| T::accept(rx, tx, &info_of(peer), offer));
        warn_of_fallback::<T>(tx);
        let (peer, answer) = taken.map_err(|error| code_of(&error))?;
        Ok((peer, wrapped::<T>(answer)))
    }

    fn complete(
        &mut self,
        (rx, tx): HalvesMut<'_, T>,
        pending: Pending,
        answer: TransportOffers<OwnedFd>,
    ) -> Result<PeerId, RefuseCode> {
        let completed = match unwrapped::<T>(answer) {
            Ok(answer) => T::complete(rx, tx, pending, answer),
            Err(error) => {
                T::abandon(rx, tx, pending);
                Err(error)
            }
        };
        warn_of_fallback::<T>(tx);
        completed.map_err(|error| code_of(&error))
    }

    fn must_prove(&self, (rx, tx): HalvesMut<'_, T>, peer: PeerId) -> bool {
        T::must_prove(rx, tx, peer)
    }

    fn data_size(&self, (rx, tx): HalvesMut<'_, T>, peer: PeerId) -> u32 {
        T::data_size(rx, tx, peer)
    }

    fn abandon(&mut self, (rx, tx): HalvesMut<'_, T>, pending: Pending) {
        T::abandon(rx, tx, pending);
    }

    fn release(&mut self, (rx, tx): HalvesMut<'_, T>, peer: PeerId) {
        T::release(rx, tx, peer);
    }

    fn remove(&mut self, (rx, tx): HalvesMut<'_, T>, peer: PeerId) {
        T::remove(rx, tx, peer);
    }

    fn command(&mut self, command: Command<OwnedFd>) {
        self.0.send(Request::Plane(command));
    }
}
