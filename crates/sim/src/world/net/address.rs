//! The numbers of machines and of their ports.

use dunlin_core::EndpointNum;

/// A simulated machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostId(pub usize);

/// The queues of one endpoint. The port number is the low half of a `PeerId` of the simulated
/// transport.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortId(pub usize);

impl PortId {
    /// The number that handles of this port's endpoints carry. It is the same in every run of a
    /// seed.
    pub(crate) fn endpoint(self) -> EndpointNum {
        EndpointNum::chosen(u32::try_from(self.0).expect("a few thousand ports") + 1)
    }
}
