//! The numbers of machines and of their ports. Used by all files that name one.

/// A simulated machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostId(pub usize);

/// The queues of one endpoint; a `PeerId` of the simulated transport is its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortId(pub usize);
