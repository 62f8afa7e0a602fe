//! The facts of a network: packets that endpoints hand over, frames that leave and arrive. Made by
//! `path` and `transport`.

use dunlin_core::transport::TxItem;
use dunlin_wire::HEADER_LEN;

use super::address::PortId;
use crate::world::packets::describe;
use crate::world::record::{Fact, See};

/// One event of a packet or a frame.
pub(super) enum FrameFact<'a> {
    /// An endpoint hands a packet to its transport; the time is that of its thread's clock.
    Hands(&'a TxItem),
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
            Self::Hands(item) => {
                see.kind("hands");
                see.number("to", item.peer.0.into());
                see.number("length", packet_len(item) as u64);
                see.bytes("header", header_of(item));
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
            Self::Hands(item) => {
                let (to, packet) = (item.peer.0, describe(header_of(item)));
                let len = packet_len(item);
                format!("hands over {len} bytes to {to}: {packet}")
            }
            Self::Sends { to, frame } => format!("sends to {}: {}", to.0, describe(frame)),
            Self::Receives { from, frame, .. } => {
                format!("receives from {}: {}", from.0, describe(frame))
            }
        }
    }
}

/// The header of a packet, wherever the packet's data lies.
fn header_of(item: &TxItem) -> &[u8] {
    &item.inline[..(item.inline_len as usize).min(HEADER_LEN)]
}

fn packet_len(item: &TxItem) -> usize {
    item.inline_len as usize + item.data.len()
}
