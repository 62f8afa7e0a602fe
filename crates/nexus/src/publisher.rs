//! Publishes an endpoint's counters in its block, ten times a second and before it blocks. That
//! takes a few microseconds, whatever the number of sessions: each publication visits the next few
//! sessions, and the table lists the busiest ones found so far.

mod tap;

use std::sync::Arc;

use dunlin_control::PlaneCounters;
use dunlin_core::transport::PeerId;
use dunlin_core::{Counters, Drops, Endpoint, Histogram, Histograms, Nanos, Session, SessionInfo};
use dunlin_insight::Whereabouts;
use dunlin_insight::writer::{Block, Change, Gauges, Head, Names, ROWS, Recorder, Row, Switch};
use dunlin_transport::counters::Counters as TransportCounters;
use dunlin_wire::SessionNum;

use crate::clock::TscClock;
use crate::events;
use crate::pulse::LONGEST_QUIET;
use crate::transports::Open;
use tap::Recording;

/// Time between two publications of a busy endpoint.
const INTERVAL: Nanos = LONGEST_QUIET;
/// The longest time for which an endpoint sleeps before it checks whether it is still traced.
const TRACED_REST: Nanos = Nanos::from_millis(250);
/// Number of sessions that one publication visits.
const LOOKS: usize = 64;

/// The names of the counters of each transport that has some of its own.
const DETAILS: &[&[&str]] = &[
    #[cfg(feature = "xdp")]
    <dunlin_xdp::Xdp as dunlin_transport::connect::Connect>::DETAILS,
    #[cfg(feature = "dpdk")]
    <dunlin_dpdk::Dpdk as dunlin_transport::connect::Connect>::DETAILS,
];

/// Appends the figures of the program itself, for [`Rpc::publish_own`](crate::Rpc::publish_own).
pub type OwnFn<App> = fn(&App, &mut Vec<u64>);

/// Publishes the counters of one endpoint.
#[derive(Debug)]
pub(crate) struct Publisher {
    block: Option<Block>,
    /// The number of handler panics at the last publication.
    panics: u64,
    /// Whether a reader wants the endpoint's packets.
    switch: Switch,
    /// When the endpoint publishes next.
    due: Nanos,
    /// The next session to visit.
    next: SessionNum,
    /// Buffer for the program's own figures while they are published.
    own: Vec<u64>,
    /// The counters that only some transports have, in the order of their names.
    details: Vec<u64>,
    /// The busiest sessions first, with room for the sessions that one publication visits.
    listed: Vec<(Session, SessionInfo)>,
}

impl Publisher {
    /// Makes a publisher; without a block, the endpoint does not publish.
    pub(crate) fn new(block: Option<Block>) -> Self {
        let own = block.as_ref().map_or(0, Block::own_values);
        Self {
            due: Nanos::ZERO,
            own: Vec::with_capacity(own),
            details: vec![0; detail_names().count()],
            block,
            panics: 0,
            switch: Switch::default(),
            next: SessionNum(0),
            listed: Vec::with_capacity(ROWS + LOOKS),
        }
    }

    /// Whether the endpoint must publish now.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.due
    }

    /// The longest time for which the endpoint may sleep without publishing.
    pub(crate) const fn longest_rest(&self) -> Nanos {
        if self.switch.is_on() {
            TRACED_REST
        } else {
            Nanos::MAX
        }
    }

    /// Writes the endpoint's counters and sessions, and the program's own figures. `places`: the
    /// peers' nexuses and endpoint indices.
    #[cold]
    #[inline(never)]
    pub(crate) fn publish<T: Open, App>(
        &mut self,
        rpc: &mut Endpoint<T, TscClock, App>,
        index: u16,
        own: OwnFn<App>,
        places: impl Fn(PeerId) -> Whereabouts,
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
        self.own.clear();
        own(rpc.app(), &mut self.own);
        let (pool_bytes, pool_buffers) = rpc.pool_use();
        let (rx, tx) = rpc.lifecycle().halves_mut();
        let transport = T::counters(rx, tx);
        let (label, details) = (T::label(tx), &mut self.details);
        T::details(rx, tx, &mut |name, count| {
            if let Some(at) = detail_names().position(|known| known == name) {
                details[at] = count;
            }
        });
        let rows = self.listed.len().min(ROWS);
        let Some(block) = &mut self.block else { return };
        if self.own.len() != block.own_values() {
            self.own.clear();
        }
        let mut out = block.write(&Head {
            index,
            transport: label,
            clock_ns: now.0,
            rows,
        });
        out.values(values(&rpc.counters().named()));
        out.values(values(&rpc.counters().drops.named()));
        let details = self.details.iter().copied();
        out.values(values(&transport.named()).chain(details));
        out.gauges(&Gauges {
            sessions: rpc.session_count() as u64,
            calls: rpc.call_count() as u64,
            pool_bytes: pool_bytes as u64,
            pool_buffers: pool_buffers as u64,
            receiving_bytes: rpc.receiving(),
        });
        for (_, histogram) in rpc.histograms().named() {
            out.histogram(histogram.sum_ns(), histogram.buckets());
        }
        for (session, info) in &self.listed[..rows] {
            out.row(&row(*session, info, places(info.peer)));
        }
        out.own(&self.own);
        out.finish();
        let page = block.page();
        match self.switch.look(page, index, now.0) {
            Change::Nothing => {}
            Change::Begin(keep) => {
                let recorder = Recorder::new(Arc::clone(page), index, keep);
                rpc.set_tap(Some(Box::new(Recording::new(recorder, now))));
            }
            Change::End => rpc.set_tap(None),
        }
    }

    /// Visits the next few sessions, and keeps the busiest of these and the listed ones.
    fn choose<T: Open, App>(&mut self, rpc: &Endpoint<T, TscClock, App>) {
        self.listed.truncate(ROWS);
        self.listed.retain_mut(|(session, info)| {
            let fresh = rpc.session_info(*session);
            fresh.is_ok_and(|fresh| {
                *info = fresh;
                true
            })
        });
        let listed = self.listed.len();
        let mut last = None;
        for session in rpc.sessions_from(self.next).take(LOOKS) {
            last = Some(session.number().0);
            let is_new = !self.listed[..listed].iter().any(|(s, _)| *s == session);
            if let (true, Ok(info)) = (is_new, rpc.session_info(session)) {
                self.listed.push((session, info));
            }
        }
        self.next = SessionNum(last.map_or(0, |last| last + 1));
        // Sorts in place, because this must not allocate.
        self.listed.sort_unstable_by_key(|(session, info)| {
            let busy = info.in_flight + info.backlog;
            (std::cmp::Reverse(busy), session.number().0)
        });
    }
}

/// The names of the counters that only some of the transports in this program have. Two transports
/// may share a name.
fn detail_names() -> impl Iterator<Item = &'static str> {
    DETAILS.iter().enumerate().flat_map(|(at, list)| {
        let earlier = &DETAILS[..at];
        let is_new = move |name: &&str| !earlier.iter().any(|list| list.contains(name));
        list.iter().copied().filter(is_new)
    })
}

/// The names of all counters of a nexus and its endpoints.
pub(crate) fn names() -> Names {
    let buckets = 0..Histogram::BUCKETS;
    Names {
        nexus: names_of(&PlaneCounters::default().named()),
        counters: names_of(&Counters::default().named()),
        drops: names_of(&Drops::default().named()),
        transport: names_of(&TransportCounters::default().named())
            .into_iter()
            .chain(detail_names())
            .collect(),
        histograms: names_of(&Histograms::default().named()),
        buckets: buckets.map(Histogram::smallest_ns).collect(),
        ..Names::default()
    }
}

fn names_of<V>(named: &[(&'static str, V)]) -> Vec<&'static str> {
    named.iter().map(|(name, _)| *name).collect()
}

/// Values without their names, which the file has once.
pub(crate) fn values(named: &[(&'static str, u64)]) -> impl Iterator<Item = u64> {
    named.iter().map(|(_, value)| *value)
}

fn row(session: Session, info: &SessionInfo, place: Whereabouts) -> Row {
    Row {
        number: session.number().0,
        peer: info.peer.0,
        remote: info.remote.0,
        accepted: info.accepted,
        window: info.window,
        in_flight: info.in_flight,
        backlog: info.backlog,
        credits: info.credits,
        credit_limit: info.credit_limit,
        rtt_ns: info.rtt.map_or(0, |time| time.0),
        rtt_min_ns: info.rtt_min.map_or(0, |time| time.0),
        rate: info.rate.map_or(0, |rate| rate.0),
        place,
    }
}
