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
use crate::packet::receive::Data;
use crate::server::work::{WorkIdx, WorkState};
use crate::session::table::NONE;
use crate::transfer::client::packets_of;
use crate::transfer::scoreboard::{Arrival, Arrivals};

/// A request of which some has arrived.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    arrivals: Arrivals,
    packets: u32,
    size: u32,
    /// The whole message; `None` if the entry is free.
    message: Option<MsgBuf>,
    /// The packet that came last, which the next CR answers.
    trigger: u32,
    /// A CR is due at the end of the burst.
    owes: bool,
    congestion: bool,
    /// A packet came that was here already, which the next CR says.
    duplicate: bool,
}

/// A request that is complete, on its way to its handler.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) work: WorkIdx,
    pub(crate) message: MsgBuf,
}

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
        let state = self.sessions.at(session);
        let window = u32::from(state.window);
        let at = (state.slots + header.req.slot(window)) as usize;
        let new = header.req == self.sessions.server_slots[at].last.next(window);
        if new {
            let Some(idx) = self.accept_number(session, at, header, congestion) else {
                return;
            };
            self.counters.requests_received += 1;
            self.begin_request(session, idx, header);
        }
        let slot = self.sessions.server_slots[at];
        let receiving = header.req == slot.last
            && slot.work != NONE
            && self.works.at(WorkIdx(slot.work)).state == WorkState::Receiving;
        if receiving {
            self.take_request_packet(session, WorkIdx(slot.work), header, data, congestion);
        } else if !new {
            self.on_repeated(session, at, header);
        }
    }

    /// Makes room for the request, or refuses it.
    fn begin_request(&mut self, session: u32, idx: WorkIdx, header: &Header) {
        let size = header.size;
        let state = self.sessions.at(session);
        if size > state.max_message {
            return self.reject(idx, ErrorCode::TOO_LARGE);
        }
        let bytes = u64::from(size);
        let fits = self.receiving_of(session) + bytes <= self.config.session_receive_budget
            && self.receiving + bytes <= self.config.receive_budget;
        let message = if fits {
            self.pool.alloc(size as usize).ok()
        } else {
            None
        };
        let Some(message) = message else {
            return self.reject(idx, ErrorCode::OVERLOADED);
        };
        let packets = packets_of(size, state.data_size);
        let incoming = self.insert_incoming(Incoming {
            packets,
            size,
            message: Some(message),
            ..Incoming::default()
        });
        self.receiving += bytes;
        *self.receiving_of.entry(session).or_default() += bytes;
        let work = self.works.at_mut(idx);
        work.state = WorkState::Receiving;
        work.incoming = incoming;
        work.packets = packets;
        work.answered = self.now;
        self.expect_sweep();
    }

    /// Bytes of the session's requests that are being put together.
    pub(crate) fn receiving_of(&self, session: u32) -> u64 {
        self.receiving_of.get(&session).copied().unwrap_or(0)
    }

    fn insert_incoming(&mut self, incoming: Incoming) -> u32 {
        if let Some(index) = self.incoming_free.pop() {
            self.incoming[index as usize] = incoming;
            return index;
        }
        self.incoming.push(incoming);
        // Freeing must never allocate: the list has room for every entry.
        let room = self.incoming.capacity() - self.incoming_free.len();
        self.incoming_free.reserve(room);
        u32::try_from(self.incoming.len() - 1).expect("fewer than 2^32 fit in memory")
    }

    fn take_request_packet(
        &mut self,
        session: u32,
        idx: WorkIdx,
        header: &Header,
        data: Data<'_>,
        congestion: bool,
    ) {
        let data_size = self.sessions.at(session).data_size as usize;
        let work = self.works.at_mut(idx);
        let incoming = &mut self.incoming[work.incoming as usize];
        if header.size != incoming.size {
            self.counters.drops.size += 1;
            return;
        }
        let packet = header.pkt.0;
        match incoming.arrivals.find(packet) {
            Arrival::TooFar => {
                self.counters.drops.packet_number += 1;
                return;
            }
            Arrival::Duplicate => incoming.duplicate = true,
            Arrival::New => {
                let start = packet as usize * data_size;
                let message = incoming.message.as_mut().map(MsgBuf::data_mut);
                // The packet exists and its data is as long as it should be (rule W8).
                let place = message.and_then(|bytes| bytes.get_mut(start..start + data.len()));
                if !place.is_some_and(|place| data.copy_to(place)) {
                    self.counters.drops.revoked += 1;
                    return;
                }
                incoming.arrivals.insert(packet);
                work.answered = self.now;
            }
        }
        work.arrived = self.received;
        work.congestion |= congestion;
        incoming.congestion |= congestion;
        incoming.trigger = packet;
        if incoming.arrivals.cumulative() == incoming.packets {
            return self.complete(idx);
        }
        self.owe(idx);
    }

    /// A CR for the request is due at the end of the burst.
    pub(crate) fn owe(&mut self, idx: WorkIdx) {
        let incoming = &mut self.incoming[self.works.at(idx).incoming as usize];
        if !incoming.owes {
            incoming.owes = true;
            self.owed.push(idx);
            self.attention = true;
        }
    }

    /// The last packet is here: the request goes to its handler.
    fn complete(&mut self, idx: WorkIdx) {
        if let Some(message) = self.end_incoming(idx) {
            self.works.at_mut(idx).state = WorkState::Dispatched;
            self.arrived.push_back(Arrived { work: idx, message });
            self.attention = true;
        }
    }

    /// Forgets a request that is being put together; returns its bytes.
    pub(crate) fn end_incoming(&mut self, idx: WorkIdx) -> Option<MsgBuf> {
        let work = self.works.at(idx);
        if work.state != WorkState::Receiving {
            return None;
        }
        let (index, session) = (work.incoming, work.session);
        let incoming = &mut self.incoming[index as usize];
        let message = incoming.message.take();
        let bytes = u64::from(incoming.size);
        self.receiving -= bytes;
        *self.receiving_of.entry(session).or_default() -= bytes;
        self.incoming_free.push(index);
        message
    }

    /// Gives up a request whose sender has stopped, or which nobody wants any more.
    #[cold]
    pub(crate) fn give_up(&mut self, idx: WorkIdx) {
        if let Some(message) = self.end_incoming(idx) {
            #[cfg(feature = "mutants")]
            if self.shows(crate::mutant::Mutant::BudgetLeaked) {
                self.receiving += message.len() as u64;
            }
            self.pool.recycle(message);
        }
    }

    /// Says what has arrived of the requests that this burst brought packets of (rule S7).
    pub(crate) fn return_credits(&mut self) {
        while let Some(idx) = self.owed.pop() {
            let work = self.works.at(idx);
            if work.state != WorkState::Receiving {
                continue;
            }
            let incoming = &mut self.incoming[work.incoming as usize];
            if !std::mem::take(&mut incoming.owes) {
                continue;
            }
            let congestion = std::mem::take(&mut incoming.congestion);
            let duplicate = std::mem::take(&mut incoming.duplicate);
            let ((bits, more), trigger) = (incoming.arrivals.bitmaps(), incoming.trigger);
            let cumulative = PktNum(incoming.arrivals.cumulative());
            let (session, req, arrived) = (work.session, work.req, work.arrived);
            let state = self.sessions.at(session);
            let mut header = Self::header(state, PacketType::Cr, req);
            header.pkt = PktNum(trigger);
            if congestion {
                header.flags = header.flags.with(Flags::ECN_ECHO);
            }
            if duplicate {
                header.flags = header.flags.with(Flags::RETRANSMISSION);
            }
            let peer = state.peer;
            for bits in [Some(bits), more].into_iter().flatten() {
                header.size = Header::arrivals(cumulative, bits.extent());
                self.counters.credit_returns += 1;
                self.tx.push(peer, &header, BufRef::EMPTY);
                self.tx.add_bitmap(&bits);
                self.tx.measure(arrived, self.received);
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
        let state = self.sessions.at(session);
        let Some(response) = work.response.as_ref().filter(|_| work.error.is_none()) else {
            return self.send_answer(idx, Flags::RETRANSMISSION);
        };
        let size = u32::try_from(response.len()).unwrap_or(u32::MAX);
        let packets = packets_of(size, state.data_size);
        let (first, count) = (header.pkt.0, u32::from(header.aux));
        let Some(end) = first.checked_add(count).filter(|end| *end <= packets) else {
            self.counters.drops.packet_number += 1;
            return;
        };
        // Whoever asks is still there.
        work.answered = self.now;
        for packet in first..end {
            let start = packet as usize * state.data_size as usize;
            let len = (response.len() - start).min(state.data_size as usize);
            let mut answer = Self::header(state, PacketType::Resp, work.req);
            answer.flags = Flags(header.flags.0 & Flags::RETRANSMISSION.0);
            if congestion {
                answer.flags = answer.flags.with(Flags::ECN_ECHO);
            }
            answer.aux = Residence::NO_SAMPLE.0;
            answer.size = size;
            answer.pkt = PktNum(packet);
            let data = response.lend_range(start, len).unwrap_or(BufRef::EMPTY);
            work.tx_end = self.tx.push(state.peer, &answer, data);
        }
        if count != 0 {
            self.tx.measure(self.received, self.received);
        }
    }

    /// The bitmap behind the header of a CR.
    pub(crate) fn bitmap_of(header: &Header, bytes: &[u8]) -> Bitmap {
        let words = bytes.get(dunlin_wire::HEADER_LEN..).unwrap_or(&[]);
        Bitmap::decode(words, header.bitmap_extent()).unwrap_or(Bitmap::EMPTY)
    }
}
