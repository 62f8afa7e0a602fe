//! Prefetching of all state that a burst's packets concern, so that their cache misses overlap
//! (HERD §4.1.1, G-Opt §3).
//!
//! ```text
//! session line, slots → call or request → description of its msgbuf → first bytes of that
//! ```
//! Each step handles all packets of the burst, and reads the memory that the previous step has
//! prefetched. Packets are not checked here: an invalid one only makes a prefetch useless.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{peek_request, peek_session};

use crate::handle::SessionIdx;
use crate::protocol::Core;
use crate::transport::{RX_BURST, Rx};

/// Smaller bursts are not worth prefetching for.
const PACKETS: usize = 4;

/// Fewer sessions than this are in the cache anyway.
const SESSIONS: usize = 64;

/// The msgbufs of fewer sessions than this are in the second-level cache anyway.
const SESSIONS_WITH_MSGBUFS: usize = 1000;

/// Prefetches the state that the packets of a burst need, if that is worth it.
#[inline(always)]
pub(super) fn prefetch(core: &Core, rx: &impl Rx, frames: usize) {
    if frames >= PACKETS && core.sessions.live() >= SESSIONS {
        prefetch_all(core, rx, frames);
    }
}

#[inline(never)]
fn prefetch_all(core: &Core, rx: &impl Rx, frames: usize) {
    let mut packets = [None; RX_BURST];
    for (index, packet) in packets.iter_mut().enumerate().take(frames) {
        let bytes = rx.frame(index).bytes;
        if let (Some(number), Some((kind, req))) = (peek_session(bytes), peek_request(bytes)) {
            let session = SessionIdx(number.0);
            core.prefetch_session(session, kind.is_for_server());
            *packet = Some((session, kind.is_for_server(), req));
        }
    }
    let mut requests = [None; RX_BURST];
    for (packet, request) in packets[..frames].iter().zip(&mut requests) {
        if let Some((session, is_request, req)) = *packet {
            *request = core.prefetch_state(session, is_request, req);
        }
    }
    if core.sessions.live() >= SESSIONS_WITH_MSGBUFS {
        let responses = || {
            let requests = requests[..frames].iter().flatten();
            requests.filter_map(|request| core.requests.response_to_overwrite(*request))
        };
        responses().for_each(MsgBuf::prefetch_descriptor);
        responses().for_each(MsgBuf::prefetch_data);
    }
}
