//! Messages of more than one packet, at the server side: puts requests together, says what of
//! them has arrived, and sends the packets of responses that the client asks for (rules S7, S13,
//! S14; eRPC §5).
//!
//! Invariants: a request that is being put together has work in the state `Receiving`, a buffer of
//! its whole size, and that size in the budgets of its session and its endpoint. Called by
//! `server/requests.rs` for packets, by the loop for its queue (`attend`), and by
//! `endpoint/scan.rs` for senders that have stopped. Nothing here calls user code.

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::{Bitmap, ErrorCode, Flags, Header, PacketType, PktNum, Residence};

use crate::endpoint::proto::Proto;
use crate::observe::counters::DropReason;
use crate::packet::receive::Data;
use crate::server::work::{Marks, WorkIdx, WorkState};
use crate::transfer::client::packets_of;
use crate::transfer::reassembly::Taken;

impl Proto {
    /// A packet of a request that does not fit into one.
    #[cold]
    pub(crate) fn on_large_request(
        &mut self,
        session: u32,
        header: &Header,
        data: Data<'_>,
        congestion: bool,
    ) {
        let line = self.sessions.at(session);
        let at = line.slot_at(header.req);
        let new = header.req == self.works.last_at(at).next(line.terms().window);
        if new {
            let Some(idx) = self.accept_number(session, at, header, congestion) else {
                return;
            };
            self.stats.on_request_accepted();
            self.begin_request(session, idx, header);
        }
        if let Some(idx) = self.works.current(at, header.req, WorkState::Receiving) {
            self.take_request_packet(session, idx, header, data, congestion);
        } else if !new {
            self.on_repeated(session, at, header);
        }
    }

    /// Makes room for the request, or refuses it.
    fn begin_request(&mut self, session: u32, idx: WorkIdx, header: &Header) {
        let size = header.size;
        let terms = self.sessions.at(session).terms();
        if size > terms.max_message {
            return self.reject(idx, ErrorCode::TOO_LARGE);
        }
        let fits = self.reassembly.has_room(session, size, &self.config);
        let message = match fits {
            true => self.pool.alloc(size as usize).ok(),
            false => None,
        };
        let Some(message) = message else {
            return self.reject(idx, ErrorCode::OVERLOADED);
        };
        let packets = packets_of(size, terms.data_size);
        let incoming = self.reassembly.begin(session, packets, size, message);
        let work = self.works.at_mut(idx);
        work.state = WorkState::Receiving;
        work.incoming = incoming;
        work.packets = packets;
        work.answered = self.moment.now();
        self.expect_sweep();
    }

    fn take_request_packet(
        &mut self,
        session: u32,
        idx: WorkIdx,
        header: &Header,
        data: Data<'_>,
        congestion: bool,
    ) {
        let data_size = self.sessions.at(session).terms().data_size as usize;
        let work = self.works.at_mut(idx);
        let place = work.incoming;
        let taken = self
            .reassembly
            .take(place, header, data, data_size, congestion);
        let taken = match taken {
            Ok(taken) => taken,
            Err(reason) => return self.stats.on_drop(reason),
        };
        if taken != Taken::Again {
            work.answered = self.moment.now();
        }
        work.arrived = self.moment.burst_time();
        if congestion {
            work.marks.set(Marks::CONGESTION, true);
        }
        match taken {
            Taken::Last => self.complete(idx),
            Taken::New | Taken::Again => self.owe(idx),
        }
    }

    /// A CR for the request is due at the end of the burst.
    pub(crate) fn owe(&mut self, idx: WorkIdx) {
        self.reassembly.owe(self.works.at(idx).incoming, idx);
        self.agenda.call_attention();
    }

    /// The last packet is here: the request goes to its handler.
    fn complete(&mut self, idx: WorkIdx) {
        if let Some(message) = self.end_incoming(idx) {
            self.works.at_mut(idx).state = WorkState::Dispatched;
            self.reassembly.on_complete(idx, message);
            self.agenda.call_attention();
        }
    }

    /// Forgets a request that is being put together; returns its bytes.
    fn end_incoming(&mut self, idx: WorkIdx) -> Option<MsgBuf> {
        let work = self.works.at(idx);
        match work.state {
            WorkState::Receiving => self.reassembly.end(work.incoming, work.session),
            _ => None,
        }
    }

    /// Gives up a request whose sender has stopped, or which nobody wants any more.
    #[cold]
    pub(crate) fn give_up(&mut self, idx: WorkIdx) {
        if let Some(message) = self.end_incoming(idx) {
            #[cfg(feature = "mutants")]
            if self.shows(crate::mutant::Mutant::BudgetLeaked) {
                self.reassembly.leak(message.len());
            }
            self.pool.recycle(message);
        }
    }

    /// Says what has arrived of the requests that this burst brought packets of (rule S7).
    pub(crate) fn return_credits(&mut self) {
        while let Some(idx) = self.reassembly.pop_owing() {
            let work = self.works.at(idx);
            if work.state != WorkState::Receiving {
                continue;
            }
            let Some(owed) = self.reassembly.take_credit_return(work.incoming) else {
                continue;
            };
            let arrived = work.arrived;
            let line = self.sessions.at(work.session);
            let mut header = line.header(PacketType::Cr, work.req);
            header.pkt = owed.trigger;
            if owed.congestion {
                header.flags = header.flags.with(Flags::ECN_ECHO);
            }
            if owed.duplicate {
                header.flags = header.flags.with(Flags::RETRANSMISSION);
            }
            let peer = line.terms().peer;
            let (bits, more) = owed.bitmaps;
            for bits in [Some(bits), more].into_iter().flatten() {
                header.size = Header::arrivals(owed.cumulative, bits.extent());
                self.stats.on_credit_return();
                self.outbox.push(peer, &header, BufRef::EMPTY);
                self.outbox.add_bitmap(&bits);
                self.outbox.measure(arrived, self.moment.burst_time());
                // What the flags say is said once.
                header.flags = Flags::NONE;
            }
        }
    }

    /// RFR that asks for packets of a response (rule S13).
    pub(crate) fn send_asked(
        &mut self,
        session: u32,
        idx: WorkIdx,
        header: &Header,
        congestion: bool,
    ) {
        let work = self.works.at_mut(idx);
        let line = self.sessions.at(session);
        let terms = line.terms();
        let Some(response) = work.response.as_ref().filter(|_| work.error.is_none()) else {
            return self.send_answer(idx, Flags::RETRANSMISSION);
        };
        let size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        let packets = packets_of(size, terms.data_size);
        let (first, count) = (header.pkt.0, u32::from(header.aux));
        let Some(end) = first.checked_add(count).filter(|end| *end <= packets) else {
            self.stats.on_drop(DropReason::PacketNumber);
            return;
        };
        // Whoever asks is still there.
        work.answered = self.moment.now();
        for packet in first..end {
            let start = packet as usize * terms.data_size as usize;
            let len = (response.len() - start).min(terms.data_size as usize);
            let mut answer = line.header(PacketType::Resp, work.req);
            answer.flags = Flags(header.flags.0 & Flags::RETRANSMISSION.0);
            if congestion {
                answer.flags = answer.flags.with(Flags::ECN_ECHO);
            }
            answer.aux = Residence::NO_SAMPLE.0;
            answer.size = size;
            answer.pkt = PktNum(packet);
            let data = response.lend_range(start, len).unwrap_or(BufRef::EMPTY);
            work.tx_end = self.outbox.push(terms.peer, &answer, data);
        }
        if count != 0 {
            self.outbox
                .measure(self.moment.burst_time(), self.moment.burst_time());
        }
    }

    /// The bitmap behind the header of a CR.
    pub(crate) fn bitmap_of(header: &Header, bytes: &[u8]) -> Bitmap {
        let words = bytes.get(dunlin_wire::HEADER_LEN..).unwrap_or(&[]);
        Bitmap::decode(words, header.bitmap_extent()).unwrap_or(Bitmap::EMPTY)
    }
}
