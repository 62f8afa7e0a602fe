//! The outbox: packets on their way to the transport within one iteration of the event loop (rule
//! S8).
//!
//! Slots push packets here and never see the transport. Just before the burst,
//! [`Outbox::stamp_answers`] writes into the answers how long their requests stayed in the server,
//! which is not known earlier.
//!
//! Whole short messages are staged in the lane (`transport/lane.rs`) until the iteration makes a
//! packet of another kind; from then on, every packet is an item of the queue. The lane's packets
//! leave first, so all packets leave in the order in which they were made.
//!
//! Invariant: the lane is closed while the queue holds an item.

mod staging;

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::{
    ACK_VECTOR_LEN, AckVector, Bitmap, CHALLENGE_LEN, Flags, HEADER_LEN, Header, Residence,
};

use crate::handle::CallIdx;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::observe::stats::Stats;
use crate::packet::words::{Words, words};
use crate::time::Nanos;
use crate::transport::{Lane, LanePacket, MAX_INLINE, PeerId, TxItem, TxSeq};

/// Inline bytes of a packet whose header has no extension.
const BARE_LEN: u32 = 24;
/// The place of the residence in a header (rule W1).
const RESIDENCE: std::ops::Range<usize> = 2..4;
/// Inline bytes of a packet with an acknowledgement vector.
const ACKS_LEN: u32 = 40;

/// Inline bytes of a challenge.
const CHALLENGE_BYTES: u32 = 32;
const _: () = assert!(BARE_LEN as usize == HEADER_LEN);
const _: () = assert!(ACKS_LEN as usize == HEADER_LEN + ACK_VECTOR_LEN);
const _: () = assert!(CHALLENGE_BYTES as usize == HEADER_LEN + CHALLENGE_LEN);

/// Longest message that an entry can hold after a header without extension.
const SHORT: usize = MAX_INLINE - HEADER_LEN;

/// Packets that fit into the outbox before its memory grows.
const START_CAPACITY: usize = 256;

/// The packets of one iteration, in order.
///
/// The entries are reused and written in place. An entry's inline bytes after `inline_len` are left
/// over from earlier packets, so building a packet writes only the bytes to send.
#[derive(Debug)]
pub(crate) struct Outbox {
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
    /// A planted bug: the lane's packets have left once, and will leave again.
    #[cfg(feature = "mutants")]
    kept: bool,
    lane: Lane,
    items: Vec<TxItem>,
    /// The number of entries that hold a packet.
    len: usize,
    /// Queued messages that are short enough for the lane.
    unstaged: u64,
    /// First transmissions of requests, apart from those that the lane counts.
    requests: usize,
    /// More than the complete packets of the lane must leave: the queue holds an item, a packet
    /// lacks a fact that is known only when it leaves, or a request is counted apart.
    unusual: bool,
    /// Position in the transport's sequence before the first packet.
    base: TxSeq,
    /// Calls that need the exact time at which their packet leaves.
    sent: Vec<CallIdx>,
    /// Answers to requests of the same iteration, which all have the same residence.
    fresh: Vec<BurstPos>,
    /// Other answers, with their requests' times of arrival.
    late: Vec<(BurstPos, Nanos)>,
}

/// The index of a packet among those of the iteration. The lane's packets come first.
#[derive(Clone, Copy, Debug)]
struct BurstPos(u32);

const EMPTY: TxItem = TxItem {
    peer: PeerId(0),
    inline_len: 0,
    inline: [0; MAX_INLINE],
    data: BufRef::EMPTY,
};

impl Outbox {
    pub(crate) fn new() -> Self {
        Self::with_capacity(START_CAPACITY)
    }

    fn with_capacity(capacity: usize) -> Self {
        Self {
            #[cfg(feature = "mutants")]
            mutant: None,
            #[cfg(feature = "mutants")]
            kept: false,
            lane: Lane::new(0),
            items: vec![EMPTY; capacity],
            len: 0,
            unstaged: 0,
            requests: 0,
            unusual: false,
            base: TxSeq(0),
            sent: Vec::with_capacity(capacity),
            fresh: Vec::with_capacity(capacity),
            late: Vec::with_capacity(capacity),
        }
    }

    /// Begins the positions at this one, because the transport may have sent packets before this
    /// endpoint took it over.
    pub(crate) fn begin_at(&mut self, position: TxSeq) {
        debug_assert!(self.is_empty(), "packets already have positions");
        self.base = position;
    }

    /// Allows staging packets of up to `longest` bytes, from the next iteration on if the lane is
    /// closed.
    pub(crate) fn set_lane(&mut self, longest: usize) {
        self.lane.set_longest(longest);
    }

    /// The same outbox, with a planted bug.
    #[cfg(feature = "mutants")]
    pub(crate) fn showing(self, mutant: Option<Mutant>) -> Self {
        Self { mutant, ..self }
    }

    /// Appends a packet as it is, and returns the position after it: once the transport's `done`
    /// has reached that position, `data` may be given back.
    #[inline]
    pub(crate) fn push(&mut self, peer: PeerId, header: &Header, data: BufRef) -> TxSeq {
        let item = self.append(peer);
        item.inline[..HEADER_LEN].copy_from_slice(&header.encode());
        item.inline_len = BARE_LEN;
        item.data = data;
        self.position()
    }

    /// The position after the last packet.
    #[inline]
    fn position(&self) -> TxSeq {
        TxSeq(self.base.0 + self.count() as u64)
    }

    /// Appends a packet whose data is all of `message`. A short message is copied: the transport
    /// never reads it, and the position is zero. If it is sent again, the highest position counts.
    ///
    /// A packet that leaves again is queued. So if a call ends, or a response is replaced, in the
    /// iteration in which its packet leaves again, a message that is too long to be copied waits
    /// for the transport, whether the endpoint has a lane or not.
    #[inline(always)]
    pub(crate) fn push_message(
        &mut self,
        peer: PeerId,
        header: &Header,
        message: &MsgBuf,
    ) -> TxSeq {
        let words = words(&header.encode());
        match header.flags.has(Flags::RETRANSMISSION) {
            true => self.queue(peer, words, message),
            false => self.push_words(peer, words, message),
        }
    }

    /// Appends a packet whose header is these words and whose data is all of `message`.
    #[inline(always)]
    pub(crate) fn push_words(&mut self, peer: PeerId, words: Words, message: &MsgBuf) -> TxSeq {
        match self.room(message.len()) {
            Some(room) => {
                self.stage::<false>(room, peer, words, message.data());
                TxSeq(0)
            }
            None => self.queue(peer, words, message),
        }
    }

    /// Appends a packet for which the lane has no room.
    #[inline(always)]
    pub(crate) fn queue(&mut self, peer: PeerId, words: Words, message: &MsgBuf) -> TxSeq {
        let [first, second, third] = words;
        self.queue_words(peer, first, second, third, message)
    }

    /// Takes the words in registers, as the lane's functions do.
    #[inline(never)]
    fn queue_words(
        &mut self,
        peer: PeerId,
        first: u64,
        second: u64,
        third: u64,
        message: &MsgBuf,
    ) -> TxSeq {
        self.unstaged += u64::from(self.lane.is_for(message.len()));
        let item = self.append(peer);
        let (places, _) = item.inline.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip([first, second, third]) {
            *place = word.to_le_bytes();
        }
        self.add_message(message)
    }

    /// Appends an entry for a packet and returns it.
    #[inline(always)]
    fn append(&mut self, peer: PeerId) -> &mut TxItem {
        self.unusual = true;
        #[cfg(feature = "mutants")]
        if self.mutant != Some(Mutant::LaneOvertakes) {
            self.lane.close();
        }
        #[cfg(not(feature = "mutants"))]
        self.lane.close();
        if self.len == self.items.len() {
            self.grow();
        }
        let item = &mut self.items[self.len];
        self.len += 1;
        item.peer = peer;
        item
    }

    /// Makes all of `message` the data of the last packet.
    #[inline]
    fn add_message(&mut self, message: &MsgBuf) -> TxSeq {
        let item = &mut self.items[self.len - 1];
        let room = item.inline.last_chunk_mut::<SHORT>();
        let room = room.expect("a header and a short message fill the inline bytes");
        if let Some(len) = message.copy_short(room) {
            item.inline_len = BARE_LEN + len;
            item.data.clear();
            return TxSeq(0);
        }
        item.inline_len = BARE_LEN;
        item.data = message.lend();
        self.position()
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.items.len() * 2;
        self.items.resize(len, EMPTY);
    }

    /// Notes that the call needs the time at which the last packet leaves.
    #[inline(never)]
    pub(crate) fn tell_when_sent(&mut self, call: CallIdx) {
        self.unusual = true;
        self.sent.push(call);
    }

    /// Like [`Self::tell_when_sent`], but without a function call, unless there are more such
    /// packets than in any burst before.
    #[inline(always)]
    pub(crate) fn tell_soon(&mut self, call: CallIdx) {
        if self.sent.len() == self.sent.capacity() {
            return self.tell_when_sent(call);
        }
        self.unusual = true;
        self.sent.push(call);
    }

    /// Notes that the header of the last packet, an answer, must contain the time since its request
    /// arrived (rule W4). `burst_time` is the time of this iteration's burst.
    #[inline(never)]
    pub(crate) fn measure(&mut self, arrived: Nanos, burst_time: Nanos) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a burst has fewer than 2^32 packets"
        )]
        let pos = BurstPos(self.count() as u32 - 1);
        self.unusual = true;
        if arrived == burst_time {
            self.fresh.push(pos);
        } else {
            self.late.push((pos, arrived));
        }
    }

    /// Adds an acknowledgement vector to the last packet (rule W10), whose header has the flag for
    /// it.
    #[cold]
    pub(crate) fn add_acks(&mut self, acks: AckVector) {
        if let Some(item) = self.items[..self.len].last_mut() {
            item.inline_len = ACKS_LEN;
            item.inline[HEADER_LEN..ACKS_LEN as usize].copy_from_slice(&acks.encode());
        }
    }

    /// Adds the bitmap to the last packet (rule W7), whose header states its length.
    pub(crate) fn add_bitmap(&mut self, bitmap: &Bitmap) {
        if let Some(item) = self.items[..self.len].last_mut() {
            let len = bitmap.words() as usize * size_of::<u64>();
            item.inline[HEADER_LEN..HEADER_LEN + len].copy_from_slice(&bitmap.encode()[..len]);
            item.inline_len = BARE_LEN + bitmap.words() * 8;
        }
    }

    /// Puts these bytes after the header of the last packet.
    pub(crate) fn add_challenge(&mut self, bytes: [u8; CHALLENGE_LEN]) {
        if let Some(item) = self.items[..self.len].last_mut() {
            item.inline[HEADER_LEN..][..CHALLENGE_LEN].copy_from_slice(&bytes);
            item.inline_len = CHALLENGE_BYTES;
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // A queued packet is unusual.
        self.lane.is_empty() && !self.unusual
    }

    /// The number of packets.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.lane.len() + self.len
    }

    /// The packets outside the lane, which leave after it.
    #[inline]
    pub(crate) fn items(&self) -> &[TxItem] {
        &self.items[..self.len]
    }

    /// The lane, if it holds all packets and they are complete.
    #[inline(always)]
    pub(crate) fn plain_packets(&self) -> Option<&Lane> {
        (!self.unusual).then_some(&self.lane)
    }

    /// The packet, if there is only one, and it is in the lane and complete.
    #[inline(always)]
    pub(crate) fn lone(&self) -> Option<LanePacket> {
        if self.unusual {
            return None;
        }
        self.lane.lone()
    }

    /// The lane.
    #[inline(always)]
    pub(crate) fn lane(&self) -> &Lane {
        debug_assert!(self.lane.len() <= self.count());
        &self.lane
    }

    /// All packets: the staged ones, and after them the items.
    #[inline]
    pub(crate) fn packets(&self) -> (&Lane, &[TxItem]) {
        (&self.lane, self.items())
    }

    /// Whether the header of an answer must contain how long its request stayed.
    #[inline]
    pub(crate) fn measures(&self) -> bool {
        !(self.fresh.is_empty() && self.late.is_empty())
    }

    /// Writes into the answers how long their requests stayed: since `burst_time` if the request
    /// arrived in this iteration, otherwise since its own arrival. `waited(at)`: whether a request
    /// that arrived at this time may have waited for the thread before; then its stay is not known.
    #[inline]
    pub(crate) fn stamp_answers(
        &mut self,
        now: Nanos,
        burst_time: Nanos,
        waited: impl Fn(Nanos) -> bool,
        stats: &mut Stats,
    ) {
        let known = |stay: Nanos, came| match waited(came) {
            true => Residence::NO_SAMPLE,
            false => Residence::from_nanos(stay.0),
        };
        if !self.fresh.is_empty() {
            let stay = now.since(burst_time);
            stats.on_residence(stay, self.fresh.len());
            let residence = known(stay, burst_time);
            for at in 0..self.fresh.len() {
                self.stamp(self.fresh[at], residence);
            }
            self.fresh.clear();
        }
        for at in 0..self.late.len() {
            let (pos, arrived) = self.late[at];
            let stay = now.since(arrived);
            stats.on_residence(stay, 1);
            self.stamp(pos, known(stay, arrived));
        }
        self.late.clear();
    }

    fn stamp(&mut self, pos: BurstPos, residence: Residence) {
        let (place, staged) = (pos.0 as usize, self.lane.len());
        let packet = match place.checked_sub(staged) {
            None => self.lane.bytes_mut(place),
            Some(place) => &mut self.items[place].inline,
        };
        packet[RESIDENCE].copy_from_slice(&residence.0.to_le_bytes());
    }

    /// Whether a call needs the time at which its packet leaves.
    #[inline]
    pub(crate) fn tells_calls(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The calls that need the time at which their packets leave.
    #[inline]
    pub(crate) fn sent(&self) -> impl Iterator<Item = CallIdx> {
        self.sent.iter().copied()
    }

    /// Notes that a call sends its request for the first time, but not by [`Self::stage`].
    pub(crate) fn on_request(&mut self) {
        self.requests += 1;
        self.unusual = true;
    }

    /// The number of calls that have sent their first request packet since the last use of this
    /// function. The lane must still hold its packets.
    pub(crate) fn take_requests(&mut self) -> usize {
        if self.count() == 0 {
            // The counted requests are paced and have not left.
            self.unusual = false;
        }
        std::mem::take(&mut self.requests) + self.lane.requests()
    }

    /// The number of queued messages that were short enough for the lane, since the last use of
    /// this function.
    pub(crate) fn take_unstaged(&mut self) -> u64 {
        std::mem::take(&mut self.unstaged)
    }

    /// Forgets the packets, which were all in the lane.
    #[inline]
    pub(crate) fn clear_plain(&mut self, end: TxSeq) {
        debug_assert_eq!(end, self.position());
        self.base.0 += self.lane.len() as u64;
        #[cfg(feature = "mutants")]
        if self.keeps_lane() {
            return;
        }
        self.lane.rewind();
    }

    /// Forgets the packets, which the transport has taken. `end` is the position after them.
    #[inline]
    pub(crate) fn clear(&mut self, end: TxSeq) {
        debug_assert_eq!(end, self.position());
        self.len = 0;
        self.unusual = false;
        self.sent.clear();
        self.base = end;
        #[cfg(feature = "mutants")]
        if self.keeps_lane() {
            return;
        }
        self.lane.clear();
    }

    /// A planted bug: staged packets leave twice.
    #[cfg(feature = "mutants")]
    fn keeps_lane(&mut self) -> bool {
        let shown = self.mutant == Some(Mutant::LaneKept) && !self.lane.is_empty();
        self.kept = shown && !self.kept;
        self.kept
    }
}

#[cfg(test)]
mod tests;
