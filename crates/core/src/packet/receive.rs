//! From bytes to packets: header, session, token, length (rules W5 to W8, W11, W12).
//!
//! What fails here is counted and dropped, with the rest of its frame: where the next packet
//! starts is not known.

use dunlin_msgbuf::PeerBytes;
use dunlin_wire::{ACK_VECTOR_LEN, AckVector, Flags, HEADER_LEN, Header, HeaderError, PacketType};

use crate::endpoint::proto::Proto;
use crate::observe::counters::DropReason;

/// A packet that belongs to an open session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) session: u32,
    pub(crate) header: Header,
    pub(crate) data: &'a [u8],
    /// Bytes of the frame that the packet took.
    pub(crate) len: usize,
}

/// Where the data of a packet lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// In the frame.
    Here(&'a [u8]),
    /// With the sender, on the same host.
    There(PeerBytes<'a>),
}

impl Data<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::There(bytes) => bytes.len(),
        }
    }

    /// Copies it to where it belongs, which is as long. False if the sender has taken it back.
    #[must_use]
    pub(crate) fn copy_to(&self, place: &mut [u8]) -> bool {
        match self {
            Self::Here(bytes) => {
                place.copy_from_slice(bytes);
                true
            }
            Self::There(bytes) => bytes.copy_to(place),
        }
    }
}

/// What the header at the start of a frame's bytes says of its packet.
struct Found {
    session: u32,
    header: Header,
    /// Bytes in front of the data.
    start: usize,
    data_len: u32,
}

impl Proto {
    /// The packet at the start of `bytes`.
    #[inline(always)]
    pub(crate) fn next_packet<'a>(&mut self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        let found = self.find_header(bytes)?;
        let len = found.start + found.data_len as usize;
        let Some(data) = bytes.get(found.start..len) else {
            self.stats.on_drop(DropReason::Size);
            return None;
        };
        self.hear(found.session);
        Some(Packet {
            session: found.session,
            header: found.header,
            data,
            len,
        })
    }

    /// The packet that `bytes` are in front of, if its data lies elsewhere and is so long.
    pub(crate) fn packet_of_data<'a>(&mut self, bytes: &'a [u8], len: usize) -> Option<Packet<'a>> {
        let found = self.find_header(bytes)?;
        if bytes.len() != found.start || len != found.data_len as usize {
            self.stats.on_drop(DropReason::Size);
            return None;
        }
        self.hear(found.session);
        Some(Packet {
            session: found.session,
            header: found.header,
            data: &[],
            len: found.start,
        })
    }

    /// Something came from the other side of the session.
    #[inline]
    fn hear(&mut self, session: u32) {
        let heard = self.moment.present(self.moment.burst_time());
        let line = self.sessions.at_mut(session);
        line.on_heard(heard);
        #[cfg(all(debug_assertions, not(feature = "mutants")))]
        line.check();
    }

    #[inline(always)]
    fn find_header(&mut self, bytes: &[u8]) -> Option<Found> {
        self.stats.on_packet();
        let header = match Header::decode(bytes) {
            Ok(header) => header,
            Err(error) => {
                self.stats.on_drop(reason_of(error));
                return None;
            }
        };
        let index = header.session.0;
        let Some(session) = self.sessions.get_open(index) else {
            self.stats.on_drop(DropReason::Session);
            return None;
        };
        let known = session.has_token(header.token);
        #[cfg(feature = "mutants")]
        let known = known || self.config.mutant == Some(crate::mutant::Mutant::TokenIgnored);
        if !known {
            self.stats.on_drop(DropReason::Token);
            return None;
        }
        let data_size = session.terms().data_size;
        // Nearly every packet has data, is the first of its message, and has no extension.
        let plain = header.pkt.0 == 0 && !header.flags.has(Flags::ACK_VECTOR);
        let (start, data_len) = match header.kind {
            PacketType::Req | PacketType::Resp if plain => (HEADER_LEN, header.size.min(data_size)),
            _ => {
                let Some(data_len) = header.data_len(data_size) else {
                    self.stats.on_drop(DropReason::PacketNumber);
                    return None;
                };
                (HEADER_LEN + header.extension_len(), data_len)
            }
        };
        Some(Found {
            session: index,
            header,
            start,
            data_len,
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

fn reason_of(error: HeaderError) -> DropReason {
    match error {
        HeaderError::Short => DropReason::Short,
        HeaderError::Version => DropReason::Version,
        HeaderError::Type => DropReason::Kind,
        HeaderError::Flags => DropReason::Flags,
        HeaderError::Field => DropReason::Field,
    }
}
