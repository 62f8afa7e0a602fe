//! The facts of a network: packets that endpoints hand over, frames that leave and arrive. Made by
//! `path` and `transport`.

use dunlin_wire::HEADER_LEN;

use super::address::PortId;
use super::packet::Packet;
use crate::world::packets::describe;
use crate::world::record::{Fact, See};

/// One event of a packet or a frame.
pub(super) enum FrameFact<'a> {
    /// An endpoint hands a packet to its transport; the time is that of its thread's clock.
    Hands(&'a Packet),
    /// A frame leaves the memory of a host.
    Sends { to: PortId, frame: &'a [u8] },
    /// A frame lies in an RX queue.
    Receives {
        from: PortId,
        frame: &'a [u8],
        congestion: bool,
    },
}

impl Fact for FrameFact<'_> {
    fn show(&self, see: &mut impl See) {
        match self {
            Self::Hands(packet) => {
                see.kind("hands");
                see.number("to", packet.item.peer.0.into());
                see.number("length", packet.len() as u64);
                see.bytes("header", packet.header());
            }
            Self::Sends { to, frame } => {
                see.kind("sends");
                see.number("to", to.0 as u64);
                see.bytes("bytes", frame);
            }
            Self::Receives {
                from,
                frame,
                congestion,
            } => {
                see.kind("receives");
                see.number("from", from.0 as u64);
                see.number("congestion", u64::from(*congestion));
                see.number("length", frame.len() as u64);
                // The whole frame was compared when it left.
                see.bytes("header", &frame[..frame.len().min(HEADER_LEN)]);
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Hands(packet) => {
                let (to, len) = (packet.item.peer.0, packet.len());
                let described = describe(packet.header());
                format!("hands over {len} bytes to {to}: {described}")
            }
            Self::Sends { to, frame } => format!("sends to {}: {}", to.0, describe(frame)),
            Self::Receives { from, frame, .. } => {
                format!("receives from {}: {}", from.0, describe(frame))
            }
        }
    }
}
