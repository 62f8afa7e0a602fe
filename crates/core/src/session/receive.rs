//! The session of a packet (rules W5 to W8, W11): its header is valid, its session open, its token
//! right.

use dunlin_wire::{Flags, HEADER_LEN, Header, HeaderError, PacketType};

use crate::observe::counters::DropReason;
use crate::session::table::Sessions;

/// The header of a packet whose session is open.
pub(crate) struct Found {
    pub(crate) session: u32,
    pub(crate) header: Header,
    /// Bytes in front of the data.
    pub(crate) start: usize,
    pub(crate) data_len: u32,
}

impl Sessions {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// Why the packet is dropped, with the rest of its frame.
    #[inline(always)]
    pub(crate) fn find_header(&self, bytes: &[u8]) -> Result<Found, DropReason> {
        let header = Header::decode(bytes).map_err(reason_of)?;
        let index = header.session.0;
        let session = self.get_open(index).ok_or(DropReason::Session)?;
        let known = session.has_token(header.token);
        #[cfg(feature = "mutants")]
        let known = known || self.takes_any_token();
        if !known {
            return Err(DropReason::Token);
        }
        let data_size = session.terms().data_size;
        // Nearly every packet has data, is the first of its message, and has no extension.
        let plain = header.pkt.0 == 0 && !header.flags.has(Flags::ACK_VECTOR);
        let (start, data_len) = match header.kind {
            PacketType::Req | PacketType::Resp if plain => (HEADER_LEN, header.size.min(data_size)),
            _ => {
                let data_len = header.data_len(data_size);
                let start = HEADER_LEN + header.extension_len();
                (start, data_len.ok_or(DropReason::PacketNumber)?)
            }
        };
        Ok(Found {
            session: index,
            header,
            start,
            data_len,
        })
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
