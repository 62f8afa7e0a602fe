//! The protocol state of an endpoint: everything but the user's state, the handlers and the
//! transport. It is not generic; `endpoint/event_loop.rs` drives it, `client/calls.rs`,
//! `server/requests.rs`, `endpoint/scan.rs` and `session/lifecycle.rs` implement its actions, and
//! `Cx` lends it to handlers.

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};
use dunlin_wire::{Header, PacketType};

use crate::client::call::{Calls, Done};
use crate::config::{Config, ConfigError};
use crate::congestion::pacer::Pacer;
use crate::endpoint::agenda::Agenda;
use crate::endpoint::moment::Moment;
use crate::handler::notices::Notices;
use crate::handler::request::Ticket;
use crate::observe::stats::Stats;
use crate::packet::outbox::Outbox;
use crate::rng::Rng;
use crate::server::work::{Requests, WorkIdx};
use crate::session::lifecycle::SessionEvent;
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transfer::reassembly::Reassembly;
use crate::transfer::scoreboard::Transfers;
use crate::transport::{Limits, TxSeq};

/// The protocol state of one endpoint.
#[derive(Debug)]
pub(crate) struct Proto {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) moment: Moment,
    pub(crate) sessions: Sessions,
    pub(crate) calls: Calls,
    pub(crate) works: Requests,
    pub(crate) transfers: Transfers,
    pub(crate) reassembly: Reassembly,
    pub(crate) pacer: Pacer,
    pub(crate) outbox: Outbox,
    pub(crate) notices: Notices,
    pub(crate) agenda: Agenda,
    pub(crate) pool: Pool,
    /// Jobs that worker threads have.
    pub(crate) jobs: usize,
    pub(crate) rng: Rng,
    pub(crate) stats: Stats,
}

impl Proto {
    pub(crate) fn new(
        config: Config,
        limits: Limits,
        seed: u64,
        now: Nanos,
    ) -> Result<Self, ConfigError> {
        config.check_ranges()?;
        let pool = Pool::new(PoolConfig {
            hugepages: if config.hugepages {
                dunlin_msgbuf::Hugepages::Try
            } else {
                dunlin_msgbuf::Hugepages::Never
            },
            max_bytes: config.pool_bytes,
            data_size: limits.data_size,
            readable: config.readable_buffers,
            // A simulator has one process, and may have more endpoints than that has descriptors.
            shared: !config.readable_buffers,
            ..PoolConfig::default()
        })
        .map_err(|_| ConfigError::Memory)?;
        Ok(Self {
            sessions: Sessions::new(config.max_sessions, seed),
            pacer: Pacer::new(&config),
            config,
            limits,
            moment: Moment::new(now),
            calls: Calls::default(),
            works: Requests::default(),
            transfers: Transfers::default(),
            reassembly: Reassembly::default(),
            outbox: Outbox::new(),
            notices: Notices::default(),
            agenda: Agenda::new(),
            pool,
            jobs: 0,
            rng: Rng::new(seed),
            stats: Stats::default(),
        })
    }

    /// True if this build has planted bugs and this endpoint shows `mutant`.
    #[cfg(feature = "mutants")]
    #[inline]
    pub(crate) fn shows(&self, mutant: crate::mutant::Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    /// Something waits for the loop although no frame came in.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.agenda.needs_attention() || !self.outbox.is_empty()
    }

    /// One of the queues that the loop drains holds something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.transfers.is_waiting()
            || self.reassembly.is_waiting()
            || self.outbox.is_waiting()
            || self.notices.is_waiting()
    }

    /// Tells the user that no client waits for the answer to a kept request any more.
    pub(crate) fn tell_given_up(&mut self, work: WorkIdx) {
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::NotReported) {
            return;
        }
        self.notices.on_given_up(Ticket(self.works.id(work)));
        self.agenda.call_attention();
    }

    /// Tells the user what happened to a session.
    pub(crate) fn tell(&mut self, event: SessionEvent) {
        self.notices.on_session(event);
        self.agenda.call_attention();
    }

    /// A packet that is neither a request nor its end.
    #[inline(never)]
    pub(crate) fn on_other(
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

    /// Puts the session before the loop if it has a backlog that could move.
    #[inline]
    pub(crate) fn wake(&mut self, session: u32) {
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::LostWakeup) {
            return;
        }
        if self.sessions.at_mut(session).stall() {
            self.agenda.on_stalled(session);
        }
    }

    /// Hands a completion to the loop, which delivers it when the transport is done.
    pub(crate) fn end(&mut self, done: Done, tx_end: TxSeq) {
        self.outbox.end(done, tx_end);
        self.agenda.call_attention();
    }

    /// Gives a response buffer back to the pool once the transport is done with it (rule S12).
    pub(crate) fn recycle_sent(&mut self, buf: MsgBuf, tx_end: TxSeq) {
        if self.outbox.recycle(buf, tx_end, &mut self.pool) {
            self.agenda.call_attention();
        }
    }

    /// Gives back what lingered and is done.
    pub(crate) fn recycle_lingering(&mut self) {
        self.outbox.recycle_lingering(&mut self.pool);
    }
}

impl Proto {
    /// Asks for the session's slots; its own memory has been asked for.
    #[inline]
    pub(crate) fn prefetch_slots(&self, index: u32) {
        if let Some(line) = self.sessions.get(index) {
            let at = line.slots().start as usize;
            self.calls.prefetch_slot(at);
            self.works.prefetch_slot(at);
        }
    }

    /// Asks for the call or the work that the packet is for.
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
            self.works.prefetch_work(at);
        } else {
            self.calls.prefetch_call(at);
        }
    }

    /// Looks at a session of the stall queue.
    pub(crate) fn resume(&mut self, session: u32) {
        let line = self.sessions.at_mut(session);
        line.leave_stall_queue();
        if line.is_open() {
            self.drain_backlog(session);
        }
    }
}
