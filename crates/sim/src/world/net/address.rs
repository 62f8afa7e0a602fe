//! The numbers of machines and of their ports. Used by all files that name one.

use dunlin_core::EndpointNum;

/// A simulated machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostId(pub usize);

/// The queues of one endpoint; a `PeerId` of the simulated transport is its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortId(pub usize);

impl PortId {
    /// The number that handles of this port's endpoints carry: every run of a seed has the same.
    pub(crate) fn endpoint(self) -> EndpointNum {
        EndpointNum::chosen(u32::try_from(self.0).expect("a few thousand ports") + 1)
    }
}
