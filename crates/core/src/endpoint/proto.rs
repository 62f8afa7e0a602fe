//! The protocol state of an endpoint: everything but the user's state, the handlers and the
//! transport. It is not generic; `endpoint/event_loop.rs` drives it, `client/calls.rs`,
//! `server/requests.rs`, `endpoint/scan.rs` and `session/lifecycle.rs` implement its actions, and
//! `Cx` lends it to handlers.

use std::collections::{BTreeMap, VecDeque};

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum};

use crate::client::call::{CallTable, Done, Ending};
use crate::config::{Config, ConfigError};
use crate::congestion::flow::Flows;
use crate::congestion::pacing::sample_interval;
use crate::congestion::wheel::Wheel;
use crate::endpoint::scan::Schedule;
use crate::endpoint::timers::Timers;
use crate::handler::request::Ticket;
use crate::observe::counters::Counters;
use crate::observe::histogram::Histograms;
use crate::packet::tx_queue::TxQueue;
use crate::rng::{Rng, Tokens};
use crate::server::work::{WorkId, WorkIdx, WorkTable};
use crate::session::lifecycle::{Closed, SessionEvent};
use crate::session::rtt::RttLog;
use crate::session::table::{SessionState, SessionTable};
use crate::time::Nanos;
use crate::transfer::scoreboard::Transfers;
use crate::transfer::server::{Arrived, Incoming};
use crate::transport::{Limits, TxSeq};

/// Packets that the queue towards the transport holds before its memory grows.
const TX_QUEUE_START: usize = 256;

/// The protocol state of one endpoint.
#[derive(Debug)]
pub(crate) struct Proto {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    /// The time: of this iteration, or later, after a slow handler.
    pub(crate) now: Nanos,
    /// Calls are made from outside of an iteration: when their packets will leave is open.
    pub(crate) outside: bool,
    /// When this iteration's burst was taken. Round trips, residences and what was heard count
    /// from it, whatever handlers have taken since.
    pub(crate) received: Nanos,
    /// How long ago the previous burst was taken, for round-trip samples (rule S10).
    pub(crate) away: Nanos,
    pub(crate) sessions: SessionTable,
    pub(crate) calls: CallTable,
    pub(crate) works: WorkTable,
    /// Large messages on their way, and those of them that may send.
    pub(crate) transfers: Transfers,
    pub(crate) sending: VecDeque<u32>,
    /// Large requests that are being put together; bytes of all of them.
    pub(crate) incoming: Vec<Incoming>,
    pub(crate) incoming_free: Vec<u32>,
    pub(crate) receiving: u64,
    /// And those of each session that ever had any.
    pub(crate) receiving_of: BTreeMap<u32, u64>,
    /// Work of such requests that owes a CR.
    pub(crate) owed: Vec<WorkIdx>,
    /// Large requests that are complete.
    pub(crate) arrived: VecDeque<Arrived>,
    pub(crate) pool: Pool,
    pub(crate) tx: TxQueue,
    /// How far the transport has come.
    pub(crate) tx_done: TxSeq,
    /// Completions for the loop to deliver, once the transport is done with their requests.
    pub(crate) ending: VecDeque<Ending>,
    /// Responses that wait for the transport before they go back to the pool.
    pub(crate) lingering: VecDeque<(TxSeq, MsgBuf)>,
    /// Sessions to look at before the burst: a slot or a credit may be free for their backlog.
    pub(crate) stall: VecDeque<u32>,
    /// What the user is told about sessions.
    pub(crate) events: VecDeque<SessionEvent>,
    /// Kept requests whose clients do not wait any more, and whose handlers are not told yet.
    pub(crate) given_up: VecDeque<Ticket>,
    /// What the nexus is told about sessions that ended here.
    pub(crate) closed: VecDeque<Closed>,
    /// Detached work in order of the time at which it must be acknowledged (rule S4).
    pub(crate) ack_due: VecDeque<(Nanos, WorkId)>,
    pub(crate) timers: Timers,
    /// Sessions with congestion control, and their packets that wait for their time.
    pub(crate) flows: Flows,
    pub(crate) wheel: Wheel,
    /// How often a session that is not paced asks for a round trip (rule S10).
    pub(crate) sample_interval: Nanos,
    pub(crate) schedule: Schedule,
    /// One of the queues above may hold something.
    pub(crate) attention: bool,
    /// Jobs that worker threads have.
    pub(crate) jobs: usize,
    /// Packets in flight that all sessions together may have (rule S7).
    pub(crate) promised: u64,
    pub(crate) rng: Rng,
    pub(crate) tokens: Tokens,
    pub(crate) counters: Counters,
    pub(crate) histograms: Box<Histograms>,
    pub(crate) rtts: RttLog,
}

/// Requests that outlive their handler within `ack_delay`, for which there is room from the start:
/// how many there are depends on the moment, and growing then would be an allocation.
const ACKS_DUE: usize = 256;

impl Proto {
    pub(crate) fn new(config: Config, limits: Limits, seed: u64) -> Result<Self, ConfigError> {
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
            schedule: Schedule::new(),
            flows: Flows::default(),
            wheel: Wheel::new(config.wheel_slot, config.wheel_horizon),
            sample_interval: sample_interval(config.bypasses),
            config,
            limits,
            now: Nanos::ZERO,
            outside: false,
            received: Nanos::ZERO,
            away: Nanos::ZERO,
            calls: CallTable::default(),
            works: WorkTable::default(),
            transfers: Transfers::default(),
            sending: VecDeque::new(),
            incoming: Vec::new(),
            incoming_free: Vec::new(),
            receiving: 0,
            receiving_of: BTreeMap::new(),
            owed: Vec::new(),
            arrived: VecDeque::new(),
            pool,
            tx: TxQueue::with_capacity(TX_QUEUE_START),
            tx_done: TxSeq(0),
            ending: VecDeque::new(),
            lingering: VecDeque::new(),
            stall: VecDeque::new(),
            events: VecDeque::new(),
            given_up: VecDeque::new(),
            closed: VecDeque::new(),
            ack_due: VecDeque::with_capacity(ACKS_DUE),
            timers: Timers::default(),
            attention: false,
            jobs: 0,
            promised: 0,
            rng: Rng::new(seed),
            tokens: Tokens::new(seed),
            counters: Counters::default(),
            histograms: Box::default(),
            rtts: RttLog::default(),
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
        self.attention || !self.tx.is_empty()
    }

    /// One of the queues that the loop empties holds something.
    pub(crate) fn any_queued(&self) -> bool {
        !(self.stall.is_empty()
            && self.sending.is_empty()
            && self.owed.is_empty()
            && self.arrived.is_empty()
            && self.ending.is_empty()
            && self.lingering.is_empty()
            && self.events.is_empty()
            && self.given_up.is_empty())
    }

    /// Tells the user that nobody waits for the answer to a kept request any more.
    pub(crate) fn tell_given_up(&mut self, work: WorkIdx) {
        self.given_up.push_back(Ticket(self.works.id(work)));
        self.attention = true;
    }

    /// Tells the user what happened to a session.
    pub(crate) fn tell(&mut self, event: SessionEvent) {
        self.events.push_back(event);
        self.attention = true;
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
            self.stall.push_back(session);
            self.attention = true;
        }
    }

    /// Hands a completion to the loop, which delivers it when the transport is done.
    pub(crate) fn end(&mut self, done: Done, tx_end: TxSeq) {
        self.ending.push_back(Ending { done, tx_end });
        self.attention = true;
    }

    /// Gives a response buffer back to the pool once the transport is done with it (rule S12).
    pub(crate) fn recycle_sent(&mut self, mut buf: MsgBuf, tx_end: TxSeq) {
        if tx_end <= self.tx_done {
            buf.revoke();
            self.pool.recycle(buf);
        } else {
            self.lingering.push_back((tx_end, buf));
            self.attention = true;
        }
    }

    /// Gives back what lingered and is done. The queue is nearly in order; what is behind an
    /// unfinished entry waits for it.
    pub(crate) fn recycle_lingering(&mut self) {
        while let Some((tx_end, _)) = self.lingering.front() {
            if *tx_end > self.tx_done {
                return;
            }
            if let Some((_, mut buf)) = self.lingering.pop_front() {
                buf.revoke();
                self.pool.recycle(buf);
            }
        }
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
