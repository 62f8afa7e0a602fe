//! The core of an endpoint: everything except the user's state, the handlers and the transport. It
//! consists of parts and their context, and has no type parameters.
//!
//! `endpoint/event_loop.rs` drives the core, and `Cx` lends it to handlers. Each kind of event has
//! a file that brings it to the parts: `protocol/client.rs` for calls, `server/events.rs` for
//! requests, `protocol/sessions.rs` for the start and end of sessions, `protocol/timeouts.rs` for
//! time, and `protocol/inquiries.rs` for questions about calls without progress.
//! `protocol/laws.rs` reads all parts, and changes none.

mod client;
mod inquiries;
mod laws;
mod sessions;
mod timeouts;

use dunlin_wire::{Header, PacketType, ReqNum};

use crate::client::calls::Calls;
use crate::client::inquiries::Inquiries;
use crate::config::{Config, ConfigError};
use crate::congestion::pacer::Pacer;
use crate::context::Context;
use crate::handle::{EndpointNum, RequestIdx, SessionIdx};
use crate::packet::receive::Packet;
use crate::protocol::inquiries::Inquirer;
use crate::protocol::laws::Laws;
use crate::server::events::Server;
use crate::server::requests::Requests;
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transfer::reassembly::Reassembly;
use crate::transfer::transfers::{Lent, Transfers};
use crate::transport::Limits;

/// The protocol state of one endpoint: its parts and their context.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) context: Context,
    pub(crate) sessions: Sessions,
    pub(crate) calls: Calls,
    pub(crate) inquiries: Inquiries,
    pub(crate) requests: Requests,
    pub(crate) transfers: Transfers,
    pub(crate) reassembly: Reassembly,
    pub(crate) pacer: Pacer,
    pub(crate) laws: Laws,
}

impl Core {
    pub(crate) fn new(
        config: Config,
        limits: Limits,
        seed: u64,
        number: EndpointNum,
        now: Nanos,
    ) -> Result<Self, ConfigError> {
        let context = Context::new(config, limits, seed, now)?;
        let mut sessions = Sessions::new(context.config.max_sessions, seed, number);
        sessions.set_common(context.config.bypasses.common);
        #[cfg(feature = "mutants")]
        let sessions = sessions.showing(context.config.mutant);
        Ok(Self {
            sessions,
            pacer: Pacer::new(&context.config),
            context,
            calls: Calls::default(),
            inquiries: Inquiries::default(),
            requests: Requests::default(),
            transfers: Transfers::default(),
            reassembly: Reassembly::default(),
            laws: Laws::default(),
        })
    }

    /// The part for large messages, and the parts that it borrows for an event.
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

    /// The server side, borrowed for an event.
    #[inline(always)]
    pub(crate) fn server(&mut self) -> Server<'_> {
        Server::new(
            &mut self.requests,
            &mut self.reassembly,
            &self.sessions,
            &mut self.context,
        )
    }

    /// The parts that a question concerns, borrowed for an event.
    pub(crate) fn inquirer(&mut self) -> Inquirer<'_> {
        Inquirer {
            inquiries: &mut self.inquiries,
            sessions: &self.sessions,
            calls: &self.calls,
            transfers: &mut self.transfers,
            context: &mut self.context,
        }
    }

    /// Whether a queue that the loop drains holds entries.
    pub(crate) fn is_waiting(&self) -> bool {
        self.transfers.is_waiting()
            || self.reassembly.is_waiting()
            || self.requests.is_waiting()
            || self.context.held.is_waiting()
            || self.context.notices.is_waiting()
    }

    /// The packet at the start of `bytes`.
    #[inline(always)]
    pub(crate) fn next_packet<'a>(&mut self, bytes: &'a [u8]) -> Option<Packet<'a>> {
        let Context { moment, stats, .. } = &mut self.context;
        let came = moment.came();
        self.sessions.next_packet(bytes, came, stats)
    }

    /// The packet whose header is `bytes` and whose data lies elsewhere, if `len`, the length of
    /// the data, is right.
    pub(crate) fn packet_of_data<'a>(&mut self, bytes: &'a [u8], len: usize) -> Option<Packet<'a>> {
        let Context { moment, stats, .. } = &mut self.context;
        let came = moment.came();
        self.sessions.packet_of_data(bytes, len, came, stats)
    }

    /// Handles a packet that is neither a request nor an answer.
    #[inline(never)]
    pub(crate) fn on_control_packet(
        &mut self,
        session: SessionIdx,
        header: &Header,
        bytes: &[u8],
        congestion: bool,
    ) {
        match header.kind {
            PacketType::Cr => self.on_credit_return(session, header, bytes),
            PacketType::Rfr => self.server().on_probe(session, header, congestion),
            PacketType::Cancel => self.server().on_cancel(session, header),
            PacketType::Challenge => {
                self.context.notices.on_challenge(&self.sessions, bytes);
            }
            PacketType::Req | PacketType::Resp | PacketType::Err => {}
        }
    }
}

impl Core {
    /// Prefetches a session and its slots: the slots of the peer's requests, or those of this
    /// side's calls.
    #[inline]
    pub(crate) fn prefetch_session(&self, index: SessionIdx, for_request: bool) {
        match (self.sessions.prefetch(index), for_request) {
            (Some(at), true) => self.requests.prefetch_slot(at),
            (Some(at), false) => self.calls.prefetch_slot(at),
            (None, _) => {}
        }
    }

    /// Prefetches the request with this number. If the peer has issued it, returns its index;
    /// otherwise it is a call of this side.
    #[inline]
    pub(crate) fn prefetch_state(
        &self,
        index: SessionIdx,
        is_request: bool,
        req: ReqNum,
    ) -> Option<RequestIdx> {
        let at = self.sessions.get(index)?.slot_at(req);
        if is_request {
            return self.requests.prefetch_request(at);
        }
        self.calls.prefetch_call(at);
        None
    }
}
