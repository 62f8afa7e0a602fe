//! What an endpoint writes into its block: everything that it counts, ten times a second, and
//! before it blocks. It takes a few microseconds, whatever the number of sessions: of these a few
//! are looked at each time, in turn, and the busiest that were seen are in the table.

use std::sync::Arc;

use dunlin_core::transport::PeerId;
use dunlin_core::{Nanos, Rpc, Session, SessionInfo};
use dunlin_wire::SessionNum;

use super::layout;
use super::page::{Block, unix_now};
use super::place::{self, Place};
use super::tap::{Change, Recorder, Switch};
use crate::clock::TscClock;
use crate::events;
use crate::transports::Open;

/// Time between two publications of a busy endpoint.
const INTERVAL: Nanos = Nanos::from_millis(100);
/// Sessions that are looked at in one.
const LOOKS: usize = 64;

/// Publishes one endpoint.
#[derive(Debug)]
pub(crate) struct Publisher {
    block: Option<Block>,
    /// Handlers that had panicked when it published last.
    panics: u64,
    /// Whether its packets are wanted.
    switch: Switch,
    /// The endpoint is to publish from then on.
    due: Nanos,
    /// The next session to look at.
    next: SessionNum,
    /// The busiest first; has room for those that are looked at as well.
    listed: Vec<(Session, SessionInfo)>,
}

impl Publisher {
    /// `None`: the endpoint cannot be seen.
    pub(crate) fn new(block: Option<Block>) -> Self {
        Self {
            due: Nanos::ZERO,
            block,
            panics: 0,
            switch: Switch::default(),
            next: SessionNum(0),
            listed: Vec::with_capacity(layout::ROWS + LOOKS),
        }
    }

    /// It is time.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.due
    }

    /// Writes how the endpoint stands. `places`: where the peers are.
    #[cold]
    #[inline(never)]
    pub(crate) fn publish<T: Open, App>(
        &mut self,
        rpc: &mut Rpc<T, TscClock, App>,
        index: u16,
        places: impl Fn(PeerId) -> Place,
    ) {
        let now = rpc.now();
        self.due = now + INTERVAL;
        let panics = rpc.counters().handler_panics;
        if panics > self.panics {
            self.panics = panics;
            events::on_panics(index, panics);
        }
        if self.block.is_none() {
            return;
        }
        self.choose(rpc);
        let (pool_bytes, pool_buffers) = rpc.pool_use();
        let (rx, tx) = rpc.lifecycle().halves_mut();
        let transport = T::counters(rx, tx);
        let rows = self.listed.len().min(layout::ROWS);
        let Some(block) = &mut self.block else { return };
        let mut out = block.write();
        out.put(unix_now());
        out.put(u64::from(index));
        out.put(u64::from_le_bytes(name_of::<T>()));
        out.put(now.0);
        out.put(rows as u64);
        out.skip_to_values();
        out.put_named(&rpc.counters().named());
        out.put_named(&rpc.counters().drops.named());
        out.put_named(&transport.named());
        let gauges = [
            rpc.session_count() as u64,
            rpc.call_count() as u64,
            pool_bytes as u64,
            pool_buffers as u64,
            rpc.receiving(),
        ];
        gauges.into_iter().for_each(|value| out.put(value));
        for (_, histogram) in rpc.histograms().named() {
            out.put_histogram(histogram);
        }
        for (session, info) in &self.listed[..rows] {
            row(*session, info).into_iter().for_each(|v| out.put(v));
            let place = places(info.peer).words();
            place.into_iter().for_each(|v| out.put(v));
        }
        out.finish();
        let page = block.page();
        match self.switch.look(page, index, now) {
            Change::Nothing => {}
            Change::Begin(keep) => {
                let recorder = Recorder::new(Arc::clone(page), index, keep, now);
                rpc.set_tap(Some(Box::new(recorder)));
            }
            Change::End => rpc.set_tap(None),
        }
    }

    /// Looks at a few more sessions, and keeps the busiest of them and of those that it has.
    fn choose<T: Open, App>(&mut self, rpc: &Rpc<T, TscClock, App>) {
        self.listed.truncate(layout::ROWS);
        self.listed.retain_mut(|(session, info)| {
            let fresh = rpc.session_info(*session);
            fresh.is_some_and(|fresh| {
                *info = fresh;
                true
            })
        });
        let listed = self.listed.len();
        let mut last = None;
        for session in rpc.sessions_from(self.next).take(LOOKS) {
            last = Some(session.number().0);
            let is_new = !self.listed[..listed].iter().any(|(s, _)| *s == session);
            if let (true, Some(info)) = (is_new, rpc.session_info(session)) {
                self.listed.push((session, info));
            }
        }
        self.next = SessionNum(last.map_or(0, |last| last + 1));
        // Without room of its own: this must not allocate.
        self.listed.sort_unstable_by_key(|(session, info)| {
            let busy = info.in_flight + info.backlog;
            (std::cmp::Reverse(busy), session.number().0)
        });
    }
}

/// The columns of `layout::SESSIONS`, but for those of the place.
fn row(
    session: Session,
    info: &SessionInfo,
) -> [u64; layout::SESSIONS.len() - place::COLUMNS.len()] {
    let ns = |time: Option<Nanos>| time.map_or(0, |time| time.0);
    [
        u64::from(session.number().0),
        u64::from(info.peer.0),
        u64::from(info.remote.0),
        u64::from(info.accepted),
        u64::from(info.window),
        u64::from(info.in_flight),
        u64::from(info.backlog),
        u64::from(info.credits),
        u64::from(info.credit_limit),
        ns(info.rtt),
        ns(info.rtt_min),
        info.rate.map_or(0, |rate| rate.0),
    ]
}

/// The first letters of the transport's name.
fn name_of<T: Open>() -> [u8; 8] {
    let mut name = [0; 8];
    for (to, from) in name.iter_mut().zip(T::LABEL.bytes()) {
        *to = from;
    }
    name
}
