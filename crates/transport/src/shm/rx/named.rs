//! The frames of packets by reference, whose data lies in their senders' memory. Called by `rx`.

use std::sync::atomic::AtomicU32;

use dunlin_core::transport::Frame;
use dunlin_msgbuf::PeerBytes;

use super::ShmRx;

impl ShmRx {
    /// Shows a few of the packets whose data lies elsewhere. If the burst has other packets, they
    /// wait for the next burst.
    #[inline]
    pub(super) fn show(&mut self) -> usize {
        if self.count() > 0 {
            self.waiting.on_others(self.alone.bursts);
            return 0;
        }
        if self.waiting.is_empty() {
            return 0;
        }
        let shown = self.waiting.show(self.alone.bursts);
        for named in self.waiting.shown() {
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += u64::from(named.len) + named.data.len() as u64;
        }
        shown
    }

    /// The frame of a packet whose data lies elsewhere. If its ring is gone by now, the frame has
    /// no bytes, so the endpoint rejects it.
    #[inline(never)]
    pub(super) fn named_frame(&self, index: usize) -> Frame<'_> {
        static NOTHING: AtomicU32 = AtomicU32::new(0);
        let named = self.waiting.shown().nth(index);
        let named = named.expect("the burst has such a frame");
        let ring = self.rings.get(named.ring.at());
        let elsewhere = ring
            .and_then(|ring| ring.as_ref()?.known.find(named.data))
            .unwrap_or_else(|| PeerBytes::of(&[], &NOTHING, 0));
        let mut frame = Frame::new(&named.front[..named.len as usize]);
        frame.elsewhere = Some(elsewhere);
        frame
    }
}
