//! The side that writes traces: packets of an endpoint, into a ring in the memory file of its
//! nexus, as long as somebody asks for them there.
//!
//! Who wants a trace writes a word that it changes a few times a second; an endpoint looks at it
//! when it publishes. If the word stays as it is, whoever wrote it has died, and the trace ends.
//! Invariants: a slot's first word is its packet's number plus one, and 0 while it is written; what
//! was asked for is brought within limits before it is used.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use dunlin_core::transport::{Frame, TxItem};
use dunlin_core::{Nanos, Seen, Tap};
use dunlin_msgbuf::{BufRef, regions};

use super::layout::{WORD, slot, trace};
use super::page::{Page, unix_now};

/// A word that does not change for so long was left by somebody who has died.
const LEASE: Nanos = Nanos::from_secs(2);

/// Whether an endpoint is to be traced.
#[derive(Debug, Default)]
pub(super) struct Switch {
    word: u64,
    changed: Nanos,
    on: bool,
}

/// What an endpoint is to do about its trace.
pub(super) enum Change {
    /// Go on as before.
    Nothing,
    /// Begin, and keep so many bytes of each packet.
    Begin(usize),
    /// End.
    End,
}

/// Writes the packets of an endpoint.
pub(super) struct Recorder {
    page: Arc<Page>,
    index: u16,
    keep: usize,
    /// From the endpoint's clock to nanoseconds since 1970.
    shift: u64,
}

/// A packet but for its bytes.
struct About {
    at: Nanos,
    bits: u64,
    peer: u32,
    len: usize,
}

impl Switch {
    /// Looks at what is asked for.
    pub(super) fn look(&mut self, page: &Page, index: u16, now: Nanos) -> Change {
        let [word, endpoint, keep] = page.trace_words();
        if word != self.word {
            self.word = word;
            self.changed = now;
        }
        let wanted = word != 0 && (endpoint == trace::ALL || endpoint == u64::from(index));
        let on = wanted && now.since(self.changed) < LEASE;
        let was = std::mem::replace(&mut self.on, on);
        match (was, on) {
            (false, true) => Change::Begin(usize::try_from(keep).unwrap_or(usize::MAX)),
            (true, false) => Change::End,
            _ => Change::Nothing,
        }
    }
}

impl Recorder {
    pub(super) fn new(page: Arc<Page>, index: u16, keep: usize, now: Nanos) -> Self {
        Self {
            page,
            index,
            keep: keep.min(slot::ROOM),
            shift: unix_now().wrapping_sub(now.0),
        }
    }

    fn record(&self, about: &About, pieces: [&[u8]; 2]) {
        let mut kept = [0; slot::ROOM];
        let mut len = 0;
        for piece in pieces {
            let take = piece.len().min(self.keep - len);
            kept[len..len + take].copy_from_slice(&piece[..take]);
            len += take;
        }
        let (number, words) = self.page.next_slot();
        words[slot::NUMBER].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let put = |place: usize, value: u64| words[place].store(value.to_le(), Ordering::Relaxed);
        put(slot::AT, about.at.0.wrapping_add(self.shift));
        put(slot::BITS, about.bits | u64::from(self.index));
        put(slot::PEER, u64::from(about.peer));
        put(slot::LEN, about.len as u64);
        put(slot::KEPT, len as u64);
        for (chunk, place) in kept[..len.next_multiple_of(WORD)]
            .chunks_exact(WORD)
            .zip(slot::HEAD..)
        {
            let chunk = chunk.try_into().expect("a chunk is as long as asked for");
            put(place, u64::from_le_bytes(chunk));
        }
        words[slot::NUMBER].store((number + 1).to_le(), Ordering::Release);
    }
}

impl Tap for Recorder {
    fn received(&mut self, seen: Seen, frame: &Frame<'_>) {
        let mut bits = 0;
        if frame.congestion {
            bits |= slot::CONGESTION;
        }
        if seen.peer.is_some() {
            bits |= slot::HAS_PEER;
        }
        if let Some(reason) = seen.dropped {
            bits |= (reason as u64 + 1) << slot::REASON_SHIFT;
        }
        // Data that lies with its sender is not fetched for this.
        let elsewhere = frame.elsewhere.map_or(0, |data| data.len());
        let about = About {
            at: seen.at,
            bits,
            peer: seen.peer.unwrap_or_default().0,
            len: frame.bytes.len() + elsewhere,
        };
        self.record(&about, [frame.bytes, &[]]);
    }

    fn sent(&mut self, at: Nanos, item: &TxItem) {
        let head = &item.inline[..item.inline_len as usize];
        let about = About {
            at,
            bits: slot::SENT | slot::HAS_PEER,
            peer: item.peer.0,
            len: head.len() + item.data.len(),
        };
        self.record(&about, [head, lent_bytes(&item.data)]);
    }
}

/// What a packet names, as long as the packet is borrowed.
fn lent_bytes(data: &BufRef) -> &[u8] {
    if data.is_empty() {
        return &[];
    }
    // SAFETY: the endpoint shows a packet in the thread that owns its msgbufs, so none of their
    // regions is freed during the call.
    let found = unsafe { regions::resolve(*data) };
    // SAFETY: `resolve` vouches for so many readable bytes until the msgbuf is revoked. The
    // endpoint revokes none while it shows a packet, and the slice does not leave `Tap::sent`.
    found.map_or(&[], |start| unsafe {
        std::slice::from_raw_parts(start.as_ptr(), data.len())
    })
}
