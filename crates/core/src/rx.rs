//! From bytes to packets: header, session, token, length (rules W5 to W8, W11, W12).
//!
//! What fails here is counted and dropped, with the rest of its frame: where the next packet
//! starts is not known.

use dunlin_wire::{ACK_VECTOR_LEN, AckVector, Flags, HEADER_LEN, Header, HeaderError, PacketType};

use crate::counters::Drops;
use crate::proto::Proto;

/// A packet that belongs to an open session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) session: u32,
    pub(crate) header: Header,
    pub(crate) data: &'a [u8],
    /// Bytes of the frame that the packet took.
    pub(crate) len: usize,
}

impl Proto {
    /// The packet at the start of `bytes`.
    #[inline]
    pub(crate) fn next_packet<'a>(&mut self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        self.counters.rx_packets += 1;
        let header = match Header::decode(bytes) {
            Ok(header) => header,
            Err(error) => {
                count_bad_header(&mut self.counters.drops, error);
                return None;
            }
        };
        let index = header.session.0;
        let Some(session) = self.sessions.get_open(index) else {
            self.counters.drops.session += 1;
            return None;
        };
        #[cfg(feature = "mutants")]
        let checked = self.config.mutant != Some(crate::mutant::Mutant::TokenIgnored);
        #[cfg(not(feature = "mutants"))]
        let checked = true;
        if header.token != session.token && checked {
            self.counters.drops.token += 1;
            return None;
        }
        let data_size = session.data_size;
        // Nearly every packet has data, is the first of its message, and has no extension.
        let plain = header.pkt.0 == 0 && !header.flags.has(Flags::ACK_VECTOR);
        let (start, data_len) = match header.kind {
            PacketType::Req | PacketType::Resp if plain => (HEADER_LEN, header.size.min(data_size)),
            _ => {
                let Some(data_len) = header.data_len(data_size) else {
                    self.counters.drops.packet_number += 1;
                    return None;
                };
                (HEADER_LEN + header.extension_len(), data_len)
            }
        };
        let len = start + data_len as usize;
        let Some(data) = bytes.get(start..len) else {
            self.counters.drops.size += 1;
            return None;
        };
        let heard = self.present(self.received);
        self.sessions.at_mut(index).heard = heard;
        Some(Packet {
            session: index,
            header,
            data,
            len,
        })
    }

    /// The acknowledgement vector of a packet, if it has one.
    #[inline]
    pub(crate) fn acks_of(packet: &Packet<'_>, bytes: &[u8]) -> Option<AckVector> {
        if !packet.header.flags.has(Flags::ACK_VECTOR) {
            return None;
        }
        let end = HEADER_LEN + packet.header.extension_len();
        AckVector::decode(bytes.get(end - ACK_VECTOR_LEN..end)?)
    }
}

#[cold]
fn count_bad_header(drops: &mut Drops, error: HeaderError) {
    match error {
        HeaderError::Short => drops.short += 1,
        HeaderError::Version => drops.version += 1,
        HeaderError::Type => drops.kind += 1,
        HeaderError::Flags => drops.flags += 1,
        HeaderError::Field => drops.field += 1,
    }
}
