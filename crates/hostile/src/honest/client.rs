//! The healthy client. It has a session over UDP and one over shared memory, makes a call on each
//! every millisecond, and opens a new session every second.
//!
//! Invariant: it has one call in flight at a time, so no call waits for another one of this client.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dunlin_core::{CallOptions, CloseReason, Done, Rng, Session, SessionEvent, Tag};
use dunlin_nexus::{ConnectOptions, Nexus, Open, Rpc};
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use harness::process::{Parent, Role};
use hdrhistogram::Histogram;

use super::{HONEST, fill, is_answer, questions};
use crate::words::{Ask, Stats};

pub(crate) const ROLE: Role = Role::new("client", run);

/// Time between two calls on a session.
const TICK: Duration = Duration::from_millis(1);
/// Time between two new sessions.
const VISIT: Duration = Duration::from_secs(1);
/// Deadline of a call.
const DEADLINE: Duration = Duration::from_secs(5);
/// Each entry is a number N and a size in bytes: one of N calls has a request of this size.
const SIZES: [(u64, usize); 3] = [(512, 200_000), (32, 3_000), (1, 32)];

#[derive(Default)]
struct App {
    ends: Vec<Done>,
    /// Sessions that have ended.
    closed: Vec<(Session, CloseReason)>,
}

/// A session and its endpoint.
struct Line<T: Open> {
    rpc: Rpc<T, App>,
    server: SocketAddr,
    session: Session,
}

/// The observations since the parent's last question.
struct Seen {
    stats: Stats,
    latencies: Histogram<u64>,
}

fn run(parent: &Parent) -> anyhow::Result<()> {
    let (server, seed): (SocketAddr, u64) = parent.receive()?;
    let nexus = Nexus::bind("127.0.0.1:0")?;
    let mut udp = Line::<Udp>::open(&nexus, server)?;
    let mut shm = Line::<Shm>::open(&nexus, server)?;
    parent.say(&())?;
    let asked = questions();
    let mut seen = Seen::new()?;
    let mut rng = Rng::new(seed);
    let mut visit = Instant::now();
    for number in 0_u64.. {
        let begun = Instant::now();
        udp.call(2 * number, &mut rng, &mut seen)?;
        shm.call(2 * number + 1, &mut rng, &mut seen)?;
        if visit.elapsed() >= VISIT {
            visit = Instant::now();
            udp.visit(&mut seen);
            shm.visit(&mut seen);
        }
        match asked.try_recv() {
            Ok(Ask) => parent.say(&seen.take())?,
            Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => break,
        }
        let left = TICK.saturating_sub(begun.elapsed());
        udp.rpc.run_for(left / 2);
        shm.rpc.run_for(left / 2);
    }
    Ok(())
}

impl<T: Open> Line<T> {
    fn open(nexus: &Nexus, server: SocketAddr) -> anyhow::Result<Self> {
        let mut rpc: Rpc<T, App> = nexus.endpoint(App::default())?;
        rpc.on_completion(|app, done, _| app.ends.push(done));
        rpc.on_session(|app, event, _| {
            if let SessionEvent::Closed { session, reason } = event {
                app.closed.push((session, reason));
            }
        });
        let session = rpc.connect_blocking(server)?;
        Ok(Self {
            rpc,
            server,
            session,
        })
    }

    /// One call, from its beginning to its end.
    fn call(&mut self, number: u64, rng: &mut Rng, seen: &mut Seen) -> anyhow::Result<()> {
        let is_due = |(each, _): &&(u64, usize)| (number / 2).is_multiple_of(*each);
        let (_, len) = SIZES.iter().find(is_due).copied().unwrap_or((1, 32));
        let mut request = vec![0; len];
        fill(&mut request, number, rng);
        let bytes = self.rpc.cx().copy(&request)?;
        let response = self.rpc.buf(len)?;
        let deadline = Some(DEADLINE.into());
        let options = CallOptions { deadline };
        let begun = Instant::now();
        let called = self
            .rpc
            .call_with(self.session, HONEST, bytes, response, Tag(0), options);
        if called.is_ok() {
            self.rpc.run_until(|rpc| !rpc.app().ends.is_empty());
        }
        match self.rpc.app_mut().ends.pop() {
            Some(done) if done.result.is_err() => {
                seen.failed(format!("a call of {len} bytes: {:?}", done.result));
            }
            Some(done) if !is_answer(&request, done.response.data()) => seen.stats.wrong += 1,
            Some(_) => seen.answered(begun.elapsed()),
            None => seen.failed("a call was not taken".to_owned()),
        }
        let closed = std::mem::take(&mut self.rpc.app_mut().closed);
        if let Some((_, why)) = closed.iter().find(|(which, _)| *which == self.session) {
            seen.stats.lost += 1;
            let reason = format!("a session over {}: {why:?}", T::LABEL);
            seen.stats.reasons.push(reason);
            self.session = self.rpc.connect_blocking(self.server)?;
        }
        Ok(())
    }

    /// Opens a new session and ends it immediately.
    fn visit(&mut self, seen: &mut Seen) {
        let options = ConnectOptions {
            patience: DEADLINE,
            ..ConnectOptions::default()
        };
        let made = self.rpc.connect_with(self.server, &options);
        let made = made.and_then(|session| {
            self.rpc.wait_connected(session)?;
            Ok(session)
        });
        match made {
            Ok(session) => {
                // The server may have ended it.
                let _ = self.rpc.disconnect(session);
                self.rpc.run_once();
            }
            Err(_) => seen.stats.refused += 1,
        }
    }
}

impl Seen {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            stats: Stats::default(),
            latencies: Histogram::new(3)?,
        })
    }

    fn failed(&mut self, why: String) {
        self.stats.failed += 1;
        self.stats.reasons.push(why);
    }

    fn answered(&mut self, took: Duration) {
        self.stats.calls += 1;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // The histogram grows by itself, so this cannot fail.
        let _ = self.latencies.record(nanos);
    }

    fn take(&mut self) -> Stats {
        let mut stats = std::mem::take(&mut self.stats);
        let recorded = self.latencies.iter_recorded();
        let counted = recorded.map(|it| (it.value_iterated_to(), it.count_since_last_iteration()));
        stats.latencies = counted.collect();
        self.latencies.reset();
        stats
    }
}
