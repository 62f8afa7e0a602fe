//! The context of an endpoint's parts: the time, the limits, and the queues towards the transport,
//! the loop and the user.
//!
//! A part gets the context with each event. The context holds no session, no call and no request,
//! so a part cannot reach another part through it.

pub(crate) mod agenda;
pub(crate) mod moment;
pub(crate) mod notices;
pub(crate) mod peers;
pub(crate) mod user_timers;

use dunlin_msgbuf::{MsgBuf, Pool, PoolConfig};

use crate::call::Done;
use crate::config::{Config, ConfigError};
use crate::context::agenda::Agenda;
use crate::context::moment::Moment;
use crate::context::notices::Notices;
use crate::context::peers::Peers;
use crate::handle::{CallIdx, RequestId, SessionIdx};
use crate::observe::stats::Stats;
use crate::packet::held_until_done::Held;
use crate::packet::outbox::Outbox;
use crate::rng::Rng;
use crate::session::lifecycle::SessionEvent;
use crate::session::line::Line;
use crate::time::Nanos;
use crate::transport::{Limits, TxSeq};

/// The context in which a part of an endpoint works.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) moment: Moment,
    pub(crate) outbox: Outbox,
    pub(crate) held: Held,
    pub(crate) notices: Notices,
    pub(crate) agenda: Agenda,
    pub(crate) pool: Pool,
    pub(crate) rng: Rng,
    pub(crate) stats: Stats,
    pub(crate) peers: Peers,
}

impl Context {
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
            // A simulator may have more endpoints than its one process has descriptors.
            shared: !config.readable_buffers,
            ..PoolConfig::default()
        })
        .map_err(|_| ConfigError::Memory)?;
        let outbox = Outbox::new();
        #[cfg(feature = "mutants")]
        let outbox = outbox.showing(config.mutant);
        Ok(Self {
            config,
            limits,
            moment: Moment::new(now),
            outbox,
            held: Held::default(),
            notices: Notices::default(),
            agenda: Agenda::new(),
            pool,
            rng: Rng::new(seed),
            stats: Stats::default(),
            peers: Peers::default(),
        })
    }

    /// True if this build has planted bugs, and this endpoint has the bug `mutant`.
    #[cfg(feature = "mutants")]
    #[inline]
    pub(crate) fn shows(&self, mutant: crate::mutant::Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    /// Finds out whether packets of this burst may have waited for the thread (rules W4, S10).
    pub(crate) fn look_for_backlog(&mut self) {
        self.moment
            .look_for_backlog(self.stats.counters().rx_frames);
    }

    /// Notes that the caller now uses the endpoint between two iterations.
    pub(crate) fn leave_iteration(&mut self, now: Nanos) {
        self.moment.leave_iteration(now);
        self.agenda.note_calls();
    }

    /// Notes an ordinary call whose request leaves at the end of the iteration.
    #[inline(always)]
    pub(crate) fn on_ordinary_call(&mut self, call: CallIdx) {
        if self.agenda.must_note_call(self.moment.now()) {
            self.note_call(call);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_call(&mut self, call: CallIdx) {
        if !self.moment.is_between_iterations() {
            return self.expect_scan();
        }
        // Later calls must be noted as well, and the agenda knows that already.
        self.agenda
            .scan_within(self.moment.now(), self.config.scan_interval);
        self.outbox.tell_soon(call);
    }

    /// Makes sure that a scan visits a call that begins now, within one interval.
    pub(crate) fn expect_scan(&mut self) {
        let (now, between) = (self.moment.now(), self.moment.is_between_iterations());
        if self.agenda.must_note_call(now) {
            self.agenda.on_call(now, self.config.scan_interval, between);
        }
    }

    /// Whether the loop has work to do even if no frame has come in.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.agenda.needs_attention() || !self.outbox.is_empty()
    }

    /// Tells the user that no client waits for the answer to a kept request now.
    pub(crate) fn tell_given_up(&mut self, request: RequestId) {
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::NotReported) {
            return;
        }
        self.notices.on_given_up(request);
        self.agenda.call_attention();
    }

    /// Tells the user what happened to a session.
    pub(crate) fn tell(&mut self, event: SessionEvent) {
        self.notices.on_session(event);
        self.agenda.call_attention();
    }

    /// Makes the loop look at the session if calls of its backlog may be able to start.
    #[inline]
    pub(crate) fn wake(&mut self, session: SessionIdx, line: &mut Line) {
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::LostWakeup) {
            return;
        }
        if line.stall() {
            self.agenda.on_stalled(session);
        }
    }

    /// Hands a completion to the loop, which delivers it once the transport has released the
    /// request.
    pub(crate) fn end(&mut self, done: Done, tx_end: TxSeq) {
        self.held.end(done, tx_end);
        self.agenda.call_attention();
    }

    /// Gives a response buffer back to the pool once the transport has released it (rule S12).
    pub(crate) fn recycle_sent(&mut self, buf: MsgBuf, tx_end: TxSeq) {
        if self.held.recycle(buf, tx_end, &mut self.pool) {
            self.agenda.call_attention();
        }
    }

    /// Gives the pool back the lingering buffers that the transport has released.
    pub(crate) fn recycle_lingering(&mut self) {
        self.held.recycle_lingering(&mut self.pool);
    }
}
