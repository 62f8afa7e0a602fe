//! The core of an endpoint: all of it but the user's state, the handlers and the transport. It is
//! made of parts, and of the context that they work with. It is not generic.
//!
//! `endpoint/event_loop.rs` drives it, and `Cx` lends it to handlers. How events reach the parts is
//! in `protocol/client.rs` for what concerns calls, `protocol/server.rs` for what concerns
//! requests, `protocol/sessions.rs` for sessions that come and go, `protocol/scan.rs` for what time
//! does, and `protocol/laws.rs` for laws between parts.

mod client;
mod laws;
mod scan;
mod server;
mod sessions;

use dunlin_wire::{Header, PacketType};

use crate::client::calls::Calls;
use crate::config::{Config, ConfigError};
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::handle::CallIdx;
use crate::observe::counters::DropReason;
use crate::packet::receive::Packet;
use crate::protocol::laws::Laws;
use crate::server::requests::Requests;
use crate::session::receive::Found;
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transfer::reassembly::Reassembly;
use crate::transfer::transfers::{Lent, Transfers};
use crate::transport::Limits;

/// The protocol state of one endpoint: its parts, and what they work with.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) context: Context,
    pub(crate) sessions: Sessions,
    pub(crate) calls: Calls,
    pub(crate) requests: Requests,
    pub(crate) transfers: Transfers,
    pub(crate) reassembly: Reassembly,
    pub(crate) pacer: Pacer,
    pub(crate) laws: Laws,
    /// Jobs that worker threads have.
    pub(crate) jobs: usize,
}

impl Core {
    pub(crate) fn new(
        config: Config,
        limits: Limits,
        seed: u64,
        now: Nanos,
    ) -> Result<Self, ConfigError> {
        let context = Context::new(config, limits, seed, now)?;
        let sessions = Sessions::new(context.config.max_sessions, seed);
        #[cfg(feature = "mutants")]
        let sessions = spoil_tokens(sessions, &context);
        Ok(Self {
            sessions,
            pacer: Pacer::new(&context.config),
            context,
            calls: Calls::default(),
            requests: Requests::default(),
            transfers: Transfers::default(),
            reassembly: Reassembly::default(),
            laws: Laws::default(),
            jobs: 0,
        })
    }

    /// The part for large messages, and what it is lent for an event.
    #[inline]
    pub(crate) fn transfers(&mut self) -> (&mut Transfers, Lent<'_>) {
        let lent = Lent {
            calls: &mut self.calls,
            sessions: &mut self.sessions,
            pacer: &mut self.pacer,
            context: &mut self.context,
        };
        (&mut self.transfers, lent)
    }

    /// Credits that a call in a slot holds.
    pub(crate) fn credits_held(&self, idx: CallIdx) -> u32 {
        let transfer = self.calls.transfer_of(idx);
        transfer.map_or(1, |transfer| self.transfers.held(transfer))
    }

    /// Something waits for the loop although no frame came in.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.context.agenda.needs_attention() || !self.context.outbox.is_empty()
    }

    /// One of the queues that the loop drains holds something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.transfers.is_waiting()
            || self.reassembly.is_waiting()
            || self.context.outbox.is_waiting()
            || self.context.notices.is_waiting()
    }

    /// The packet at the start of `bytes`.
    #[inline(always)]
    pub(crate) fn next_packet<'a>(&mut self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        let found = self.find_header(bytes)?;
        let len = found.start + found.data_len as usize;
        let Some(data) = bytes.get(found.start..len) else {
            self.context.stats.on_drop(DropReason::Size);
            return None;
        };
        Some(self.take_packet(&found, data, len))
    }

    /// The packet that `bytes` are in front of, if its data lies elsewhere and is as long.
    pub(crate) fn packet_of_data<'a>(&mut self, bytes: &'a [u8], len: usize) -> Option<Packet<'a>> {
        let found = self.find_header(bytes)?;
        if bytes.len() != found.start || len != found.data_len as usize {
            self.context.stats.on_drop(DropReason::Size);
            return None;
        }
        Some(self.take_packet(&found, &[], found.start))
    }

    #[inline(always)]
    fn find_header(&mut self, bytes: &[u8]) -> Option<Found> {
        self.context.stats.on_packet();
        let found = self.sessions.find_header(bytes);
        found
            .map_err(|reason| self.context.stats.on_drop(reason))
            .ok()
    }

    /// A valid packet came from the other side of its session.
    #[inline(always)]
    fn take_packet<'a>(&mut self, found: &Found, data: &'a [u8], len: usize) -> Packet<'a> {
        let moment = &self.context.moment;
        let line = self.sessions.at_mut(found.session);
        line.note_activity(moment.present(moment.burst_time()));
        #[cfg(all(debug_assertions, not(feature = "mutants")))]
        line.check();
        Packet {
            session: found.session,
            header: found.header,
            data,
            len,
        }
    }

    /// A packet that is neither a request nor its end.
    #[inline(never)]
    pub(crate) fn on_control_packet(
        &mut self,
        session: u32,
        header: &Header,
        bytes: &[u8],
        congestion: bool,
    ) {
        match header.kind {
            PacketType::Cr => self.on_credit_return(session, header, bytes),
            PacketType::Rfr => self.on_probe(session, header, congestion),
            PacketType::Cancel => self.on_cancel(session, header),
            PacketType::Req | PacketType::Resp | PacketType::Err => {}
        }
    }
}

impl Core {
    /// Asks for the session's slots; its own memory has been asked for.
    #[inline]
    pub(crate) fn prefetch_slots(&self, index: u32) {
        if let Some(line) = self.sessions.get(index) {
            let at = line.slots().start as usize;
            self.calls.prefetch_slot(at);
            self.requests.prefetch_slot(at);
        }
    }

    /// Asks for the call or the request that the packet is for.
    #[inline]
    pub(crate) fn prefetch_state(&self, index: u32, bytes: &[u8]) {
        let Some(line) = self.sessions.get(index) else {
            return;
        };
        let Some((kind, req)) = dunlin_wire::peek_request(bytes) else {
            return;
        };
        let at = line.slot_at(req);
        if kind.is_for_server() {
            self.requests.prefetch_request(at);
        } else {
            self.calls.prefetch_call(at);
        }
    }
}

/// A planted bug.
#[cfg(feature = "mutants")]
fn spoil_tokens(mut sessions: Sessions, context: &Context) -> Sessions {
    if context.shows(crate::mutant::Mutant::TokenIgnored) {
        sessions.take_any_token();
    }
    sessions
}
