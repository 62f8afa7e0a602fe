//! Egress: the time until which the NIC is busy with packets of large responses and with CRs.
//!
//! The server side keeps the packets that RFRs ask for until the NIC has room for them (rule S13).
//! In the NIC's queue they would delay the CRs after them. Clients would mistake that delay for a
//! queue of requests, and would leave the path to the server idle. The estimate counts bytes at the
//! line rate, so only sessions whose transport declares their path use it (`Line::is_declared`).
//! Answers of one packet are not counted, because counting would make each of them more expensive.
//!
//! Owned by `server/requests.rs`, which keeps the packets and asks before it sends one.

use crate::congestion::constants::egress::{AHEAD_PACKETS, FRAME_BYTES, MOST_LATE};
use crate::packet::words::HEADER_BYTES;
use crate::scheme::BytesPerSec;
use crate::time::Nanos;
use crate::transport::Limits;

/// The estimate for one NIC.
#[derive(Debug, Default)]
pub(crate) struct Egress {
    /// When the NIC will have sent every counted packet.
    free_at: Nanos,
    /// Whether packets have been waiting ever since the NIC was last full. If the endpoint then
    /// polls late, it makes up for up to [`MOST_LATE`] of the delay.
    waits: bool,
}

impl Egress {
    /// Counts a packet with `len` bytes after its header, which leaves at `now`.
    pub(crate) fn on_sent(&mut self, len: usize, limits: &Limits, now: Nanos) {
        let from = match self.waits {
            true => now.since(MOST_LATE),
            false => now,
        };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let bytes = len.saturating_add(HEADER_BYTES + FRAME_BYTES);
        self.free_at = self.free_at.max(from) + BytesPerSec(limits.line_rate).time_of(bytes);
    }

    /// When the next packet may leave, `now` or later; `None` if no packet waits (`any` is false).
    pub(crate) fn next(&mut self, any: bool, limits: &Limits, now: Nanos) -> Option<Nanos> {
        let packet = limits.data_size.saturating_add(HEADER_BYTES + FRAME_BYTES);
        let ahead = BytesPerSec(limits.line_rate)
            .time_of(packet)
            .times(AHEAD_PACKETS);
        let at = self.free_at.since(ahead);
        self.waits = any && (self.waits || at > now);
        any.then_some(at.max(now))
    }
}

#[cfg(test)]
mod tests;
