//! The writing side of traces: records packets of an endpoint in a ring in the memory file of its
//! nexus, while a reader asks for them in that file.
//!
//! A reader that wants a trace changes a word a few times a second; an endpoint checks the word
//! when it publishes. If the word no longer changes, the reader has died, and the trace ends.
//! Invariants: a slot's first word is its packet's number plus one, and 0 while the slot is being
//! written; the numbers in a reader's request are limited before use; tokens never reach the file,
//! and neither do bytes that may contain one; the other bytes of packets are wiped when the trace
//! ends.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use dunlin_wire::{HEADER_LEN, Header};

use super::page::Page;
use crate::layout::{WORD, slot, trace};

/// Without a change of the word for this time, the reader counts as dead. Readers change it ten
/// times a second. A sleeping endpoint checks it four times a second while it is traced, so the
/// bytes are wiped within a second of the reader's death.
const LEASE_NS: u64 = 600_000_000;

/// The place of the token in a packet's header (rule W1).
const TOKEN: std::ops::Range<usize> = 8..12;

/// Whether an endpoint must be traced.
#[derive(Debug, Default)]
pub struct Switch {
    word: u64,
    changed_ns: u64,
    on: bool,
}

/// The next step of an endpoint's trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Continue as before.
    Nothing,
    /// Begin to record, and keep this many bytes of each packet.
    Begin(usize),
    /// End the trace.
    End,
}

/// Writes the packets of an endpoint.
#[derive(Debug)]
pub struct Recorder {
    page: Arc<Page>,
    index: u16,
    keep: usize,
}

/// A packet that was sent or received, without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether it was sent; otherwise it was received.
    pub sent: bool,
    /// Whether the network had marked it "congestion experienced".
    pub congestion: bool,
    /// The peer, as the endpoint's transport knows it.
    pub peer: Option<u32>,
    /// Why it was dropped, as a place in the file's list of reasons.
    pub dropped: Option<usize>,
    /// Its length.
    pub len: usize,
}

impl Switch {
    /// Whether a trace runs.
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Checks whether a reader wants a trace. `now_ns` is the time on any clock that does not stop.
    pub fn look(&mut self, page: &Page, index: u16, now_ns: u64) -> Change {
        let [word, endpoint, keep] = page.trace_words();
        if word != self.word {
            self.word = word;
            self.changed_ns = now_ns;
        }
        let wanted = word != 0 && (endpoint == trace::ALL || endpoint == u64::from(index));
        let on = wanted && now_ns.saturating_sub(self.changed_ns) < LEASE_NS;
        let was = std::mem::replace(&mut self.on, on);
        match (was, on) {
            (false, true) => Change::Begin(usize::try_from(keep).unwrap_or(usize::MAX)),
            (true, false) => Change::End,
            _ => Change::Nothing,
        }
    }
}

impl Recorder {
    /// Keeps the first `keep` bytes of each packet of the endpoint with this index.
    pub fn new(page: Arc<Page>, index: u16, keep: usize) -> Self {
        Self {
            page,
            index,
            keep: keep.min(slot::ROOM),
        }
    }

    /// Records one frame, whose bytes are in two pieces. `packet_len` returns the length of a
    /// packet in it, or `None` if it is unknown: then only the packet's header is kept, because the
    /// bytes after it may contain the token of another packet.
    pub fn record(
        &self,
        passed: &Passed,
        pieces: [&[u8]; 2],
        packet_len: &dyn Fn(&Header) -> Option<usize>,
    ) {
        let mut kept = [0; slot::ROOM];
        let mut len = 0;
        for piece in pieces {
            let take = piece.len().min(self.keep - len);
            kept[len..len + take].copy_from_slice(&piece[..take]);
            len += take;
        }
        len = mask(&mut kept[..len], packet_len);
        let (number, words) = self.page.next_slot();
        words[slot::NUMBER].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let put = |place: usize, value: u64| words[place].store(value.to_le(), Ordering::Relaxed);
        put(slot::AT, passed.at_ns);
        put(slot::BITS, passed.bits() | u64::from(self.index));
        put(slot::PEER, passed.peer.map_or(0, u64::from));
        put(slot::LEN, passed.len as u64);
        put(slot::KEPT, len as u64);
        for (chunk, place) in kept[..len.next_multiple_of(WORD)]
            .chunks_exact(WORD)
            .zip(slot::HEAD..)
        {
            let chunk = chunk.try_into().expect("a chunk has the length of a word");
            put(place, u64::from_le_bytes(chunk));
        }
        words[slot::NUMBER].store((number + 1).to_le(), Ordering::Release);
    }
}

impl Drop for Recorder {
    /// Wipes the recorded bytes. The slots keep their numbers, so that a reader of other endpoints'
    /// packets continues after them.
    fn drop(&mut self) {
        for words in self.page.used_slots() {
            let bits = u64::from_le(words[slot::BITS].load(Ordering::Relaxed));
            if bits & 0xffff != u64::from(self.index) {
                continue;
            }
            for word in words.iter().skip(slot::KEPT) {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Overwrites the tokens at the beginning of a frame, and returns how many of its bytes may be
/// kept.
fn mask(frame: &mut [u8], packet_len: &dyn Fn(&Header) -> Option<usize>) -> usize {
    let mut at = 0;
    while let Some(packet) = frame.get_mut(at..).filter(|packet| !packet.is_empty()) {
        let header = Header::decode(packet);
        let token = TOKEN.start.min(packet.len())..TOKEN.end.min(packet.len());
        packet[token].fill(0);
        let known = header.ok().and_then(|header| packet_len(&header));
        let Some(len) = known.filter(|len| *len >= HEADER_LEN) else {
            let rest = packet.len().min(HEADER_LEN);
            frame[at + rest..].fill(0);
            return at + rest;
        };
        at += len;
    }
    frame.len()
}

impl Passed {
    fn bits(&self) -> u64 {
        let flags = [
            (self.sent, slot::SENT),
            (self.congestion, slot::CONGESTION),
            (self.peer.is_some(), slot::HAS_PEER),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        let flags = set.fold(0, |bits, (_, flag)| bits | flag);
        let reason = self.dropped.map_or(0, |reason| reason as u64 + 1);
        flags | reason << slot::REASON_SHIFT
    }
}
