//! The interface between a simulated process and the world.
//!
//! Implemented by scenarios, called by `world`.

use dunlin_core::Nanos;

use crate::world::net::{Fd, NetHandle, PortId};
use crate::world::record::{Fact, See};

/// A process: number `life`, from 1, on its port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProcessId {
    /// The port.
    pub port: PortId,
    /// The number of processes that have run there, itself included.
    pub life: u32,
}

/// Events of a process's control connections, with the names that the process gave them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// A connection that the process has requested is established.
    Dialled(u64),
    /// A message arrived, perhaps with descriptors.
    Frame(u64, Vec<u8>, Vec<Fd>),
    /// A connection is gone, or could not be made.
    Closed(u64),
}

impl Fact for StreamEvent {
    fn show(&self, see: &mut impl See) {
        see.kind("control");
        match self {
            Self::Frame(name, frame, _) => {
                see.number("connection", *name);
                see.bytes("message", frame);
            }
            event => see.text("event", format_args!("{event:?}")),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Frame(name, frame, _) => {
                format!("control message of {} bytes on {name}", frame.len())
            }
            other => format!("control {other:?}"),
        }
    }
}

/// Requests of a process to its control connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamRequest {
    /// Connect to the process that listens on the port. `local`: over a path without a cable.
    Dial {
        /// The name of the new connection.
        name: u64,
        /// The port of the other process.
        to: PortId,
        /// Both processes are on one host.
        local: bool,
    },
    /// Send a message, with descriptors if the connection carries them.
    Send(u64, Vec<u8>, Vec<Fd>),
    /// Close.
    Close(u64),
    /// A fault: the process at the other end dies now, and another one starts on its port.
    Restart(u64),
}

/// A simulated process: a thread with an event loop, and a thread for the control plane. By default
/// it refuses every connection.
pub trait Node {
    /// Runs one iteration of its event loop.
    fn run_once(&mut self);

    /// When it wants to run again if nothing arrives; [`Nanos::MAX`] for never.
    fn next_wakeup(&mut self) -> Nanos;

    /// Learns that its host runs again after a pause.
    fn on_resume(&mut self) {}

    /// Runs the control thread at the time for which it asked.
    fn on_tick(&mut self) {}

    /// When the control thread wants to run if there is no event before.
    fn next_tick(&mut self) -> Nanos {
        Nanos::MAX
    }

    /// Accepts another process's connection and returns the name that it gives to it; `None`
    /// refuses it. `local`: both are on one host, and the connection carries descriptors.
    fn on_incoming(&mut self, _local: bool) -> Option<u64> {
        None
    }

    /// Gives the control thread an event of a connection.
    fn on_stream(&mut self, _event: StreamEvent) {}

    /// Shuts the process down normally, now.
    fn on_exit(&mut self) {}

    /// Notes that the process ends now, normally or by a crash. This is the last moment to read its
    /// counters.
    fn on_end(&mut self) {}

    /// Moves out its requests to its connections.
    fn take_requests(&mut self, _out: &mut Vec<StreamRequest>) {}
}

/// Starts processes, and learns of their ends.
pub trait Cluster {
    /// The processes.
    type Node: Node;

    /// Starts a process.
    fn boot(&mut self, net: &NetHandle, process: ProcessId) -> Self::Node;

    /// Notes that a process has ended, normally or by a crash.
    fn on_end(&mut self, process: ProcessId);
}
