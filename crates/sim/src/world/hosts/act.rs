//! Changes of the world from outside: pauses, crashes, cuts. A run plans them, and `hosts` carries
//! them out.

use crate::world::net::{HostId, PortId};
use crate::world::record::{Fact, See};

/// Changes of the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// No process of the host runs from now on; frames and messages pile up.
    Pause(HostId),
    /// The host's processes run again.
    Resume(HostId),
    /// The process dies; its peers' control connections break.
    Crash(PortId),
    /// The process shuts down normally.
    Exit(PortId),
    /// A new process starts on the port.
    Boot(PortId),
    /// Frames from the first host to the second are lost, and control messages wait.
    Block(HostId, HostId),
    /// Ends a [`Self::Block`].
    Unblock(HostId, HostId),
    /// The host's cable is pulled.
    Unplug(HostId),
    /// The host's cable is put back.
    Plug(HostId),
    /// Every fault ends and every process runs.
    Heal,
    /// Makes `run_until` return this number, which the scenario has chosen.
    Ask(u64),
}

impl Fact for Act {
    fn show(&self, see: &mut impl See) {
        see.kind("act");
        see.text("act", format_args!("{self:?}"));
    }

    fn words(&self) -> String {
        format!("{self:?}")
    }
}
