//! Calls whose messages have more than one packet, for the transfers that move them (rules S7,
//! S13).

use std::ops::Range;

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::{Flags, Header, PacketType, PktNum};

use super::issue::message_size;
use super::{CallState, Calls};
use crate::context::Context;
use crate::error::RpcError;
use crate::handle::{CallIdx, TransferIdx};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::packet::receive::Data;
use crate::session::line::Line;
use crate::transport::TxSeq;

/// Packets of a request that leave together.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    packets: Range<u32>,
    /// The packets were sent before.
    again: bool,
    /// The first packet of each pair has this parity, if one CR may answer both (rule S7).
    pairs: Option<u32>,
}

impl Run {
    /// Packets that have never left. If `pairs`, they leave in pairs, and one CR may answer both
    /// packets of a pair. The `sent` packets that leave just before these are paired too; the
    /// first of them begins a pair.
    pub(crate) fn new(packets: Range<u32>, pairs: bool, sent: u32) -> Self {
        let pairs = pairs.then_some((packets.start + sent) % 2);
        Self {
            packets,
            again: false,
            pairs,
        }
    }

    /// A packet that is sent again.
    pub(crate) fn again(packet: u32) -> Self {
        Self {
            packets: packet..packet + 1,
            again: true,
            pairs: None,
        }
    }

    /// The flags of one of the packets.
    #[inline]
    fn flags(&self, packet: u32) -> Flags {
        if self.again {
            return Flags::RETRANSMISSION;
        }
        // The next packet of the request leaves right after it.
        let is_followed = self.pairs == Some(packet % 2) && packet + 1 != self.packets.end;
        match is_followed {
            true => Flags::FOLLOWED,
            false => Flags::NONE,
        }
    }
}

/// The packets of a response that an RFR asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Whether an earlier RFR has asked for these packets.
    pub(crate) again: bool,
}

impl Calls {
    /// The call's transfer, if it has one.
    #[inline]
    pub(crate) fn transfer_of(&self, idx: CallIdx) -> Option<TransferIdx> {
        let call = self.at(idx);
        call.state.has_transfer().then_some(call.transfer)
    }

    /// Whether packets of the request are on their way.
    #[inline]
    pub(crate) fn is_sending(&self, idx: CallIdx) -> bool {
        self.at(idx).state == CallState::Sending
    }

    /// Whether packets of the response are on their way.
    pub(crate) fn is_receiving(&self, idx: CallIdx) -> bool {
        self.at(idx).state == CallState::Receiving
    }

    /// Whether the request was sent, but the server has not confirmed all of it.
    pub(crate) fn is_sent(&self, idx: CallIdx) -> bool {
        self.at(idx).state == CallState::Sent
    }

    /// Whether the user has the call's completion already.
    pub(crate) fn is_zombie(&self, idx: CallIdx) -> bool {
        self.at(idx).state == CallState::Zombie
    }

    /// The length of the message that is on its way, in bytes.
    pub(crate) fn bytes_under_way(&self, idx: CallIdx) -> u32 {
        let call = self.at(idx);
        let message = match call.state {
            CallState::Sending => call.request(),
            _ => call.response(),
        };
        message.map_or(0, message_size)
    }

    /// Begins to send the call's request in parts, with this transfer.
    pub(crate) fn begin_sending(&mut self, idx: CallIdx, transfer: TransferIdx) {
        self.begin_transfer(idx, CallState::Sending, transfer);
    }

    /// Begins to receive the call's response in parts, with this transfer.
    pub(crate) fn begin_receiving(&mut self, idx: CallIdx, transfer: TransferIdx) {
        self.begin_transfer(idx, CallState::Receiving, transfer);
    }

    fn begin_transfer(&mut self, idx: CallIdx, state: CallState, transfer: TransferIdx) {
        let call = self.at_mut(idx);
        call.enter(state);
        call.transfer = transfer;
        self.settle(idx);
    }

    /// Ends the transfer of the call and returns it.
    pub(crate) fn end_transfer(&mut self, idx: CallIdx) -> Option<TransferIdx> {
        let transfer = self.transfer_of(idx)?;
        self.at_mut(idx).enter(CallState::Sent);
        self.settle(idx);
        Some(transfer)
    }

    /// Notes that all packets of the request have arrived. Its transfer has ended.
    pub(crate) fn on_all_arrived(&mut self, idx: CallIdx, context: &mut Context) {
        let now = context.moment.now();
        self.accept(idx, now);
        context.expect_scan();
    }

    /// Sends packets of the request. Their headers differ only in number and flags.
    pub(crate) fn send_parts(
        &mut self,
        idx: CallIdx,
        run: &Run,
        line: &Line,
        context: &mut Context,
    ) {
        let (call, terms) = (self.at(idx), line.terms());
        let Some(request) = call.request() else {
            return;
        };
        if run.again {
            context.stats.on_retransmission(1);
            #[cfg(feature = "mutants")]
            if context.shows(Mutant::LostNotResent) {
                return;
            }
        }
        let mut header = line.header(PacketType::Req, self.req_of(idx));
        header.aux = call.req_type.0;
        header.size = message_size(request);
        let (data_size, mut end) = (terms.data_size as usize, TxSeq(0));
        for packet in run.packets.clone() {
            let start = packet as usize * data_size;
            let len = (request.len() - start).min(data_size);
            #[cfg(feature = "mutants")]
            let len = match context.config.mutant {
                Some(Mutant::WrongLastPacket) if start + len == request.len() => len % data_size,
                _ => len,
            };
            let Some(data) = request.lend_range(start, len) else {
                break;
            };
            (header.pkt, header.flags) = (PktNum(packet), run.flags(packet));
            let pushed = context.outbox.push(terms.peer, &header, data);
            #[cfg(feature = "mutants")]
            if packet != 0 && context.shows(Mutant::ReusedWhileSent) {
                continue;
            }
            end = pushed;
        }
        self.at_mut(idx).lend_until(end);
    }

    /// Sends an RFR that asks for packets of the response (rule S13). All packets before `base`
    /// have arrived.
    pub(crate) fn ask_for_parts(
        &self,
        idx: CallIdx,
        asked: Asked,
        base: u32,
        line: &Line,
        context: &mut Context,
    ) {
        let mut header = line.header(PacketType::Rfr, self.req_of(idx));
        header.aux = u16::try_from(asked.count).unwrap_or(u16::MAX);
        header.pkt = PktNum(asked.first);
        header.size = Header::arrivals(PktNum(base), 0);
        if asked.again {
            header.flags = Flags::RETRANSMISSION;
            context.stats.on_retransmission(asked.count);
        }
        context
            .outbox
            .push(line.terms().peer, &header, BufRef::EMPTY);
    }

    /// Makes room for a response of `size` bytes. False: the user's buffer is too small.
    pub(crate) fn make_room(&mut self, idx: CallIdx, size: u32) -> bool {
        let response = self.at_mut(idx).response_mut();
        response.is_some_and(|response| response.resize(size as usize).is_ok())
    }

    /// The length of the response for which [`Self::make_room`] was called.
    pub(crate) fn response_len(&self, idx: CallIdx) -> Option<usize> {
        self.at(idx).response().map(MsgBuf::len)
    }

    /// Copies a part of the response to its place. False: the sender has withdrawn the data.
    pub(crate) fn put_part(&mut self, idx: CallIdx, start: usize, data: &Data<'_>) -> bool {
        let response = self.at_mut(idx).response_mut();
        // The caller has checked that this packet exists and that its data has the right length
        // (rule W8).
        let place = response.and_then(|it| it.data_mut().get_mut(start..start + data.len()));
        place.is_some_and(|place| data.copy_to(place))
    }

    /// Completes the call, whose whole response has arrived, and frees its slot and credit. Its
    /// transfer has ended.
    pub(crate) fn end_answered(
        &mut self,
        idx: CallIdx,
        error: Option<RpcError>,
        line: &mut Line,
        context: &mut Context,
    ) {
        let req = self.req_of(idx);
        self.release(line, req);
        #[cfg(feature = "mutants")]
        self.stop_numbers(line.slot_at(req), req, line.window(), context);
        if line.has_waiting() {
            context.wake(self.session_of(idx), line);
        }
        let tx_end = self.at(idx).tx_end();
        if let Some(done) = self.take_done(idx, error.map_or(Ok(()), Err), line) {
            self.note_answered(idx, context);
            context.end(done, tx_end);
        }
        self.remove(idx);
    }
}
