//! Passes the packets of an endpoint to the recorder of its nexus's memory file. `publisher.rs`
//! sets the tap; core then calls it for each packet.

use dunlin_core::transport::{Frame, TxItem};
use dunlin_core::{Nanos, PacketLen, Seen, Tap};
use dunlin_insight::writer::{Passed, Recorder, unix_now};
use dunlin_msgbuf::{BufRef, regions};
use dunlin_wire::Header;

/// Records the packets that an endpoint sends and receives.
pub(super) struct Recording {
    recorder: Recorder,
    /// The difference between nanoseconds since 1970 and the endpoint's clock.
    shift: u64,
}

impl Recording {
    pub(super) fn new(recorder: Recorder, now: Nanos) -> Self {
        Self {
            recorder,
            shift: unix_now().wrapping_sub(now.0),
        }
    }
}

impl Tap for Recording {
    fn received(&mut self, seen: Seen, frame: &Frame<'_>, packet_len: PacketLen<'_>) {
        // The recorder does not copy data that is still in the sender's memory.
        let elsewhere = frame.elsewhere.map_or(0, |data| data.len());
        let passed = Passed {
            at_ns: seen.at.0.wrapping_add(self.shift),
            sent: false,
            congestion: frame.congestion,
            peer: seen.peer.map(|peer| peer.0),
            dropped: seen.dropped,
            len: frame.bytes.len() + elsewhere,
        };
        self.recorder
            .record(&passed, [frame.bytes, &[]], packet_len);
    }

    fn sent(&mut self, at: Nanos, item: &TxItem) {
        let head = &item.inline[..item.inline_len as usize];
        let passed = Passed {
            at_ns: at.0.wrapping_add(self.shift),
            sent: true,
            peer: Some(item.peer.0),
            len: head.len() + item.data.len(),
            ..Passed::default()
        };
        // `item` is one packet. Only the transport puts several packets into a frame.
        let whole = |_: &Header| Some(passed.len);
        self.recorder
            .record(&passed, [head, lent_bytes(&item.data)], &whole);
    }
}

/// The bytes to which a packet refers, for as long as the packet is borrowed.
fn lent_bytes(data: &BufRef) -> &[u8] {
    if data.is_empty() {
        return &[];
    }
    // SAFETY: the endpoint shows a packet in the thread that owns its msgbufs, so none of their
    // regions is freed during the call.
    let found = unsafe { regions::resolve(*data) };
    // SAFETY: `resolve` vouches for this many readable bytes until the msgbuf is revoked. The
    // endpoint revokes none while it shows a packet, and the slice does not leave `Tap::sent`.
    found.map_or(&[], |start| unsafe {
        std::slice::from_raw_parts(start.as_ptr(), data.len())
    })
}

#[cfg(test)]
mod tests;
