//! Finds the session of a packet (rules W5 to W8, W11): its header must be valid, the session open,
//! and the token right.

use dunlin_wire::{Flags, HEADER_LEN, Header, HeaderError, PacketType, peek_session};

use crate::handle::SessionIdx;
use crate::observe::counters::DropReason;
use crate::observe::stats::Stats;
use crate::packet::receive::Packet;
use crate::session::table::Sessions;
use crate::time::Nanos;

/// The header of a packet whose session is open.
struct Found {
    session: SessionIdx,
    header: Header,
    /// Bytes before the data.
    start: usize,
    data_len: u32,
}

impl Sessions {
    /// The packet at the start of `bytes`, which came at `came`.
    #[inline(always)]
    pub(crate) fn next_packet<'a>(
        &mut self,
        bytes: &'a [u8],
        came: Nanos,
        stats: &mut Stats,
    ) -> Option<Packet<'a>> {
        let found = self.look_for_header(bytes, stats)?;
        let len = found.start + found.data_len as usize;
        let Some(data) = bytes.get(found.start..len) else {
            stats.on_drop(DropReason::Size);
            return None;
        };
        Some(self.take_packet(&found, data, len, came))
    }

    /// The packet whose header is `bytes` and whose data lies elsewhere, if `len`, the length of
    /// the data, is right.
    pub(crate) fn packet_of_data<'a>(
        &mut self,
        bytes: &'a [u8],
        len: usize,
        came: Nanos,
        stats: &mut Stats,
    ) -> Option<Packet<'a>> {
        let found = self.look_for_header(bytes, stats)?;
        if bytes.len() != found.start || len != found.data_len as usize {
            stats.on_drop(DropReason::Size);
            return None;
        }
        Some(self.take_packet(&found, &[], found.start, came))
    }

    /// The session and the header of the packet at the start of `bytes`, if it is a packet of a
    /// large request other than the first one, and nothing about it is unusual. Changes and counts
    /// nothing.
    pub(crate) fn find_part(&self, bytes: &[u8]) -> Option<(SessionIdx, Header)> {
        let Found {
            session, header, ..
        } = self.find_header(bytes).ok()?;
        let is_part = header.kind == PacketType::Req && header.pkt.0 != 0;
        let is_usual = Flags::FOLLOWED.has(header.flags);
        (is_part && is_usual).then_some((session, header))
    }

    /// Notes `count` packets for a session, which came at `came`.
    pub(crate) fn on_parts(
        &mut self,
        session: SessionIdx,
        count: u32,
        came: Nanos,
        stats: &mut Stats,
    ) {
        stats.on_packets(count);
        self.note_packet(session, came);
    }

    #[inline(always)]
    fn note_packet(&mut self, session: SessionIdx, came: Nanos) {
        let asserts = self.asserts();
        let line = self.at_mut(session);
        line.note_activity(came);
        if asserts {
            line.check();
        }
    }

    #[inline(always)]
    fn look_for_header(&self, bytes: &[u8], stats: &mut Stats) -> Option<Found> {
        stats.on_packet();
        let found = self.find_header(bytes);
        found
            .map_err(|reason| self.on_drop(bytes, reason, stats))
            .ok()
    }

    /// Counts a dropped packet. A challenge for a session that is not open yet does not count as
    /// dropped: the caller passes it to `Notices::on_challenge`, for the control plane.
    #[cold]
    #[inline(never)]
    fn on_drop(&self, bytes: &[u8], reason: DropReason, stats: &mut Stats) {
        if reason != DropReason::Session || self.challenged(bytes).is_none() {
            stats.on_drop(reason);
        }
    }

    /// Makes a packet of a valid header and its data. The session notes the activity of its peer.
    #[inline(always)]
    fn take_packet<'a>(
        &mut self,
        found: &Found,
        data: &'a [u8],
        len: usize,
        came: Nanos,
    ) -> Packet<'a> {
        self.note_packet(found.session, came);
        Packet {
            session: found.session,
            header: found.header,
            data,
            len,
        }
    }

    /// The session that the packet at the start of `bytes` names, open or not, and the bytes after
    /// that packet in its frame: none if no packet can be recognised.
    pub(crate) fn named_by<'a>(&self, bytes: &'a [u8]) -> Option<(SessionIdx, &'a [u8])> {
        let number = peek_session(bytes)?;
        let rest = self.find_header(bytes).ok().and_then(|found| {
            let len = found.start + found.data_len as usize;
            bytes.get(len..)
        });
        Some((SessionIdx(number.0), rest.unwrap_or_default()))
    }

    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// Why the packet and the rest of its frame are dropped.
    #[inline(always)]
    fn find_header(&self, bytes: &[u8]) -> Result<Found, DropReason> {
        let header = Header::decode(bytes).map_err(reason_of)?;
        let index = SessionIdx(header.session.0);
        let session = self.get_open(index).ok_or(DropReason::Session)?;
        if !self.accepts(session, header.token) {
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

#[cfg(test)]
mod tests;
