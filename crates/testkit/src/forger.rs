//! A forger that knows a session's token, and sends CRs, CANCELs, RFRs and packets of wrong sizes
//! about requests that are in flight: an attacker on the path.
//!
//! Invariants: it begins no request and completes no message. All sizes that it claims are odd, so
//! the forger's bytes alone never complete a call whose sizes are even. Used by tests of core and
//! nexus.

use dunlin_core::Rng;
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

/// The kinds of packets that it forges.
pub const KINDS: [PacketType; 5] = [
    PacketType::Cr,
    PacketType::Cancel,
    PacketType::Resp,
    PacketType::Req,
    PacketType::Rfr,
];

/// Packets of a forged message.
const MOST_PACKETS: u32 = 6;

/// The forger. The same seed forges the same packets.
#[derive(Debug)]
pub struct Forger {
    rng: Rng,
    data_size: u32,
}

impl Forger {
    /// A forger of packets for sessions with `data_size` bytes of data in each.
    pub fn new(seed: u64, data_size: u32) -> Self {
        let rng = Rng::new(seed);
        Self { rng, data_size }
    }

    /// Forges a packet of this kind about request `req`, for the side that gave the session this
    /// number and token.
    pub fn packet(
        &mut self,
        kind: PacketType,
        (session, token): (SessionNum, Token),
        req: ReqNum,
    ) -> Vec<u8> {
        let pkt = PktNum(self.below(MOST_PACKETS));
        let size = match kind {
            PacketType::Cr => Header::arrivals(PktNum(self.below(MOST_PACKETS)), 0),
            PacketType::Resp | PacketType::Req => self.odd_size(pkt),
            _ => 0,
        };
        let aux = match kind {
            PacketType::Rfr => u16::try_from(self.below(3)).unwrap_or(0),
            PacketType::Resp => u16::MAX,
            PacketType::Req => 1,
            _ => 0,
        };
        let again = self.below(2) == 0;
        let header = Header {
            kind,
            flags: if again {
                Flags::RETRANSMISSION
            } else {
                Flags::NONE
            },
            aux,
            session,
            token,
            size,
            pkt,
            req,
        };
        let mut bytes = header.encode().to_vec();
        let data = header.data_len(self.data_size).unwrap_or(0);
        bytes.resize(bytes.len() + data as usize, 0xF0);
        bytes
    }

    /// The size of a message of several packets that contains packet `pkt`. A first packet never
    /// claims a size that a later one can claim.
    fn odd_size(&mut self, pkt: PktNum) -> u32 {
        let least = pkt.0.max(1) * self.data_size + 4;
        let size = least + self.below(MOST_PACKETS * self.data_size);
        let odd = if pkt.0 == 0 { 1 } else { 3 };
        size & !3 | odd
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.rng.next_u32() % bound
    }
}
