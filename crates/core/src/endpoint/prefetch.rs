//! Prefetches all state that a burst's packets need, so that their cache misses overlap (HERD
//! §4.1.1, G-Opt §3).
//!
//! ```text
//! session line, slots → call or request → descriptor of its msgbuf → first bytes of the msgbuf
//! ```
//! Each step handles all packets of the burst, or of a shared frame, and reads the memory that the
//! previous step has prefetched. Packets are not checked here: an invalid one only makes a prefetch
//! useless.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{peek_request, peek_session};

use crate::handle::SessionIdx;
use crate::packet::words::first_packet;
use crate::protocol::Core;
use crate::transport::{RX_BURST, Rx};

/// Smaller bursts are not worth prefetching for.
const PACKETS: usize = 4;

/// Fewer sessions than this fit into the cache anyway.
const SESSIONS: usize = 64;

/// The msgbufs of fewer sessions than this fit into the second-level cache anyway.
const SESSIONS_WITH_MSGBUFS: usize = 1000;

/// Prefetches the state that the packets of a burst need, if that is worth it. In a frame with
/// several packets, only the first one counts; for the others see [`prefetch_shared`].
#[inline(always)]
pub(super) fn prefetch(core: &Core, rx: &impl Rx, frames: usize) {
    if frames >= PACKETS && core.sessions.live() >= SESSIONS {
        prefetch_burst(core, rx, frames);
    }
}

#[inline(never)]
fn prefetch_burst(core: &Core, rx: &impl Rx, frames: usize) {
    prefetch_all(core, (0..frames).map(|index| rx.frame(index).bytes));
}

/// Prefetches the state that the packets of a shared frame need, from `offset` on, if that is worth
/// it. Returns the offset of the first packet that is left for another call.
pub(super) fn prefetch_shared(core: &Core, frame: &[u8], offset: usize) -> usize {
    if core.sessions.live() < SESSIONS {
        return frame.len();
    }
    let mut end = offset;
    let packets = std::iter::from_fn(|| {
        let packet = first_packet(&frame[end..])?;
        end += packet.len();
        Some(packet)
    });
    prefetch_all(core, packets.take(RX_BURST));
    // A packet that is no whole message ends the walk: only the general path knows its length.
    end.max(offset + 1)
}

/// Prefetches the state that these packets need: at most [`RX_BURST`] of them.
fn prefetch_all<'a>(core: &Core, packets: impl Iterator<Item = &'a [u8]>) {
    let mut places = [None; RX_BURST];
    let mut count = 0;
    for (bytes, place) in packets.zip(&mut places) {
        count += 1;
        if let (Some(number), Some((kind, req))) = (peek_session(bytes), peek_request(bytes)) {
            let session = SessionIdx(number.0);
            core.prefetch_session(session, kind.is_for_server());
            *place = Some((session, kind.is_for_server(), req));
        }
    }
    let mut requests = [None; RX_BURST];
    for (place, request) in places[..count].iter().zip(&mut requests) {
        if let Some((session, is_request, req)) = *place {
            *request = core.prefetch_state(session, is_request, req);
        }
    }
    if core.sessions.live() >= SESSIONS_WITH_MSGBUFS {
        let responses = || {
            let requests = requests[..count].iter().flatten();
            requests.filter_map(|request| core.requests.response_to_overwrite(*request))
        };
        responses().for_each(MsgBuf::prefetch_descriptor);
        responses().for_each(MsgBuf::prefetch_data);
    }
}
