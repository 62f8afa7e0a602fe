//! Sessions between simulated endpoints, without a control plane. Called by `build` and `bulk`.

use dunlin_core::transport::PeerId;
use dunlin_core::{Session, SessionOptions};

use crate::world::net::{PortId, SimEndpoint};
use crate::world::{Cluster, Node, World};

/// A process with one endpoint.
pub(super) trait Process: Node {
    /// The state of its user.
    type App;

    fn rpc(&mut self) -> &mut SimEndpoint<Self::App>;
}

/// Opens a session from one process to another. Returns the client's handle of it, or `None` if
/// there is no memory for it.
pub(super) fn connect<C>(
    world: &mut World<C>,
    [client, server]: [PortId; 2],
    options: &SessionOptions,
) -> Option<Session>
where
    C: Cluster,
    C::Node: Process,
{
    let mut near = world.node(client)?.rpc().lifecycle();
    let session = near.open(options).ok()?;
    let offer = near.offer_of(session)?;
    let mut far = world.node(server)?.rpc().lifecycle();
    let (_, answer) = far.accept(peer(client), &offer).ok()?;
    let mut near = world.node(client)?.rpc().lifecycle();
    near.opened(session, peer(server), &answer).ok()?;
    Some(session)
}

fn peer(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).expect("a scenario has fewer than 2^32 endpoints"))
}
