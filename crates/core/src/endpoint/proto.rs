//! The protocol state of an endpoint: everything but the user's state, the handlers and the
//! transport. It is not generic; `endpoint/event_loop.rs` drives it, `client/calls.rs`,
//! `server/requests.rs`, `endpoint/scan.rs` and `session/lifecycle.rs` implement its actions, and
//! `Cx` lends it to handlers.

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum};

use crate::client::call::{CallTable, Done};
use crate::config::{Config, ConfigError};
use crate::congestion::pacer::Pacer;
use crate::endpoint::agenda::Agenda;
use crate::endpoint::moment::Moment;
use crate::handler::notices::Notices;
use crate::handler::request::Ticket;
use crate::observe::stats::Stats;
use crate::packet::outbox::Outbox;
use crate::rng::{Rng, Tokens};
use crate::server::work::{WorkIdx, WorkTable};
use crate::session::lifecycle::SessionEvent;
use crate::session::table::{SessionState, SessionTable};
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
    pub(crate) sessions: SessionTable,
    pub(crate) calls: CallTable,
    pub(crate) works: WorkTable,
    pub(crate) transfers: Transfers,
    pub(crate) reassembly: Reassembly,
    pub(crate) pacer: Pacer,
    pub(crate) outbox: Outbox,
    pub(crate) notices: Notices,
    pub(crate) agenda: Agenda,
    pub(crate) pool: Pool,
    /// Jobs that worker threads have.
    pub(crate) jobs: usize,
    /// Packets in flight that all sessions together may have (rule S7).
    pub(crate) promised: u64,
    pub(crate) rng: Rng,
    pub(crate) tokens: Tokens,
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
            sessions: SessionTable::new(config.max_sessions),
            pacer: Pacer::new(&config),
            config,
            limits,
            moment: Moment::new(now),
            calls: CallTable::default(),
            works: WorkTable::default(),
            transfers: Transfers::default(),
            reassembly: Reassembly::default(),
            outbox: Outbox::new(),
            notices: Notices::default(),
            agenda: Agenda::new(),
            pool,
            jobs: 0,
            promised: 0,
            rng: Rng::new(seed),
            tokens: Tokens::new(seed),
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

    /// A header of this session towards its other side.
    #[inline]
    pub(crate) fn header(session: &SessionState, kind: PacketType, req: ReqNum) -> Header {
        Header {
            kind,
            flags: Flags::NONE,
            aux: 0,
            session: session.remote,
            token: session.remote_token,
            size: 0,
            pkt: PktNum(0),
            req,
        }
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
        let state = self.sessions.at_mut(session);
        if state.backlog_len != 0 && !state.stalled && state.can_send() {
            #[cfg(feature = "mutants")]
            if self.config.mutant == Some(crate::mutant::Mutant::LostWakeup) {
                return;
            }
            state.stalled = true;
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
    /// Asks for the memory of a session that a packet names.
    #[inline]
    pub(crate) fn prefetch_session(&self, index: u32) {
        if let Some(session) = self.sessions.get(index) {
            dunlin_msgbuf::prefetch_lines(session, 2);
        }
    }

    /// Asks for the session's slots; its own memory has been asked for.
    #[inline]
    pub(crate) fn prefetch_slots(&self, index: u32) {
        if let Some(session) = self.sessions.get(index) {
            let at = session.slots as usize;
            dunlin_msgbuf::prefetch_slice(&self.sessions.client_slots, at);
            dunlin_msgbuf::prefetch_slice(&self.sessions.server_slots, at);
        }
    }

    /// Asks for the call or the work that the packet is for.
    #[inline]
    pub(crate) fn prefetch_state(&self, index: u32, bytes: &[u8]) {
        let Some(session) = self.sessions.get(index) else {
            return;
        };
        let Some((kind, req)) = dunlin_wire::peek_request(bytes) else {
            return;
        };
        let at = (session.slots + req.slot(u32::from(session.window))) as usize;
        if kind.is_for_server() {
            let slot = self.sessions.server_slots.get(at);
            if let Some(work) = slot.and_then(|slot| self.works.peek(slot.work)) {
                dunlin_msgbuf::prefetch_lines(work, 2);
            }
        } else {
            let slot = self.sessions.client_slots.get(at);
            if let Some(call) = slot.and_then(|slot| self.calls.peek(slot.call)) {
                dunlin_msgbuf::prefetch_lines(call, 2);
            }
        }
    }

    /// Looks at a session of the stall queue.
    pub(crate) fn resume(&mut self, session: u32) {
        let state = self.sessions.at_mut(session);
        state.stalled = false;
        if state.is_open() {
            self.drain_backlog(session);
        }
    }
}
