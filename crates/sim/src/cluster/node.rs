//! A simulated process: an endpoint with its application, its workers, and its part of the control
//! plane (design §9, §13).
//!
//! Called by `world`.

use std::rc::Rc;

use dunlin_control::Overdue;
use dunlin_core::{Config, Nanos, Progress, SessionInfo, SessionOptions};
use dunlin_wire::control::Message;

use super::app::App;
use super::control::Control;
use super::fact::{EndpointFact, Standing};
use super::handlers::{Endpoint, register};
use super::ledger::{Phase, Shared};
use super::pacing::Whim;
use super::workers::SimWorkers;
use crate::cluster::plan::Plan;
use crate::world::clock::SimClock;
use crate::world::net::{NetHandle, PortId, SimTransport};
use crate::world::rng::Rng;
use crate::world::{Node, ProcessId, StreamEvent, StreamRequest};

/// A process.
#[derive(Debug)]
pub struct RpcNode {
    rpc: Endpoint,
    net: NetHandle,
    clock: SimClock,
    shared: Shared,
    workers: SimWorkers,
    rng: Rng,
    control: Control,
    /// Whether sessions are paced.
    paced: bool,
    /// The most bytes of requests that may have arrived in part.
    budget: u64,
}

/// Time until the process tries again to open a session for which the endpoint had no room.
const REOPEN: Nanos = Nanos::from_millis(5);

impl RpcNode {
    /// Starts a process that opens sessions to all others.
    pub(super) fn boot(
        net: &NetHandle,
        id: ProcessId,
        plan: &Plan,
        config: Config,
        shared: Shared,
        mut rng: Rng,
    ) -> Self {
        let halves = SimTransport::open(net, id.port);
        let clock = net.borrow().clock(id.port);
        let work = &plan.workload;
        let workers = SimWorkers::new(rng.fork(), work.worker_queue, work.slow.2);
        let app = App::new(id, shared.clone(), rng.fork(), clock.clone(), work.clone());
        let largest = halves.limits.data_size as usize;
        let boxed = Some(Box::new(workers.clone()) as Box<dyn dunlin_core::Workers>);
        let mut rpc = Endpoint::new(
            app,
            clock.clone(),
            halves,
            config,
            rng.next_u64(),
            boxed,
            id.port.endpoint(),
        )
        .expect("every plan's configuration is within its ranges");
        let room = usize::try_from(work.sizes.room()).unwrap_or(largest);
        register(&mut rpc, &shared, id.port, room);
        let host = net.borrow().host_of(id.port);
        let control = Control::new(id, host, plan, &mut rng);
        let mut node = Self {
            rpc,
            net: Rc::clone(net),
            clock,
            shared,
            workers,
            rng,
            control,
            paced: plan.paced,
            budget: plan.endpoint.receive_budget,
        };
        if plan.hoards {
            let (app, mut cx) = node.rpc.with();
            app.hoard(largest, &mut cx);
        }
        for peer in (0..plan.processes())
            .map(PortId)
            .filter(|peer| *peer != id.port)
        {
            for _ in 0..plan.workload.sessions {
                node.rpc.app_mut().reopen.push((Nanos::ZERO, peer));
            }
        }
        node
    }

    /// Begins the calls of a phase.
    pub(crate) fn begin(&mut self, phase: Phase) {
        let now = self.net.borrow().now();
        if phase != Phase::Chaos {
            self.control.on_phase(phase == Phase::Calm, now);
        }
        let (app, mut cx) = self.rpc.with();
        app.begin(phase, &mut cx);
    }

    /// Waits until the transport has finished with all packets.
    pub(crate) fn flush(&mut self) {
        self.rpc.flush();
    }

    /// Packets for sessions that were gone, or did not exist yet.
    pub(crate) fn unknown_sessions(&self) -> u64 {
        let drops = &self.rpc.counters().drops;
        drops.session + drops.token
    }

    /// The numbers of sessions and of msgbufs in use.
    pub(crate) fn in_use(&mut self) -> (usize, usize) {
        (
            self.rpc.session_count() + self.control.session_count(),
            self.rpc.pool_use().1,
        )
    }

    /// Describes the uses of channels, sessions and turns that have not been given back.
    pub(crate) fn left(&mut self) -> Option<String> {
        self.control.left(&mut self.rpc)
    }

    /// The number of calls that the application has not issued yet.
    pub(crate) fn left_to_issue(&self) -> u32 {
        self.rpc.app().remaining()
    }

    /// A session that is not idle, if there is one.
    pub(crate) fn busy_session(&self) -> Option<SessionInfo> {
        let infos = self
            .rpc
            .sessions()
            .filter_map(|session| self.rpc.session_info(session).ok());
        infos
            .into_iter()
            .find(|info| info.in_flight + info.backlog > 0 || info.credits != info.credit_limit)
    }

    /// Ends all sessions permanently.
    pub(crate) fn disconnect_all(&mut self) {
        let (app, mut cx) = self.rpc.with();
        app.release_hoard(&mut cx);
        let sessions: Vec<_> = self.rpc.sessions().collect();
        for session in sessions {
            let ended = self.rpc.disconnect(session);
            ended.expect("it is in the endpoint's own list");
        }
    }

    /// The time at which to open the next session, if this phase opens any.
    fn next_opening(&self) -> Nanos {
        let Some(at) = self.rpc.app().reopen.iter().map(|(at, _)| *at).min() else {
            return Nanos::MAX;
        };
        let opens = matches!(self.shared.lock().phase, Phase::Chaos | Phase::Calm);
        if opens { at } else { Nanos::MAX }
    }

    /// Opens the sessions whose time has come.
    fn open_due(&mut self) {
        let now = self.clock.read();
        if self.next_opening() > now {
            return;
        }
        let reopen = std::mem::take(&mut self.rpc.app_mut().reopen);
        let (due, later): (Vec<_>, _) = reopen.into_iter().partition(|(at, _)| *at <= now);
        self.rpc.app_mut().reopen = later;
        for (_, peer) in due {
            self.open(peer);
        }
    }

    fn open(&mut self, peer: PortId) {
        let (window, credits) = {
            let (app, rng) = (self.rpc.app(), &mut self.rng);
            (*rng.pick(&app.work.windows), *rng.pick(&app.work.credits))
        };
        let (options, now) = (
            SessionOptions::DEFAULT
                .with_window(window)
                .with_credits(credits),
            self.net.borrow().now(),
        );
        if self
            .control
            .connect(&mut self.rpc, peer, &options, now)
            .is_none()
        {
            // The endpoint has reached its limit of sessions.
            let again = self.clock.read() + REOPEN;
            self.rpc.app_mut().reopen.push((again, peer));
        }
    }

    /// Gives new sessions a congestion control scheme.
    fn pace(&mut self) {
        let unpaced = std::mem::take(&mut self.rpc.app_mut().unpaced);
        for session in unpaced.into_iter().filter(|_| self.paced) {
            // It may have ended already.
            let _ = self
                .rpc
                .set_own_scheme(session, Box::new(Whim::new(self.rng.fork())));
        }
    }

    /// Moves what handlers and continuations have noted into the trace.
    fn report_notes(&mut self) {
        if !self.shared.take_news() {
            return;
        }
        let mut ledger = self.shared.lock();
        let mut net = self.net.borrow_mut();
        for note in ledger.notes.drain(..) {
            net.note(|| note);
        }
        if let Some(what) = ledger.take_violation() {
            net.violate(what);
        }
    }

    /// Bytes of requests that have arrived in part: the sum over the requests, and the sum over the
    /// budgets.
    pub(crate) fn receiving(&self) -> (u64, u64) {
        let sessions = self.rpc.sessions();
        let infos = sessions.filter_map(|session| self.rpc.session_info(session).ok());
        (infos.map(|info| info.receiving).sum(), self.rpc.receiving())
    }

    /// Checks that each credit of a session is free or held by a call, that calls in slots never
    /// exceed the number of slots, and that the budgets of the sessions add up to the endpoint's.
    fn check_sessions(&mut self) {
        let App {
            sessions,
            shared,
            id,
            ..
        } = self.rpc.app();
        for known in sessions {
            let Ok(info) = self.rpc.session_info(known.session) else {
                continue;
            };
            if info.credits + info.credits_held != info.credit_limit || info.in_flight > info.window
            {
                let what = format!(
                    "port {}: credits or slots do not add up: {info:?}",
                    id.port.0
                );
                shared.lock().violate(what);
            }
        }
        let (parts, whole) = self.receiving();
        if parts != whole || whole > self.budget {
            let what = format!(
                "port {}: requests hold {parts} bytes, budgets {whole}",
                id.port.0
            );
            shared.lock().violate(what);
        }
    }
}

/// The facts of a run that is compared.
impl RpcNode {
    /// Records an iteration.
    fn note_iteration(&mut self, progress: Progress) {
        let record = self.shared.record();
        if !record.is_on() {
            return;
        }
        let pool = self.rpc.pool_use();
        let standing = Standing {
            counters: self.rpc.counters(),
            measured: self.rpc.histograms(),
            pool,
            receiving: self.rpc.receiving(),
            sessions: self.rpc.session_count(),
            calls: self.rpc.call_count(),
        };
        let (at, port) = (self.clock.read(), self.rpc.app().id.port);
        record.note(at, port, &EndpointFact::Iteration(progress, standing));
    }

    /// Addresses that were proven to this process.
    pub(crate) fn proofs(&self) -> u64 {
        self.control.proofs()
    }

    /// Sessions of this process whose deadline passed before they were open, by stage.
    pub(crate) const fn overdue(&self) -> Overdue {
        self.control.overdue()
    }

    /// Records the visible state of the endpoint, at the end of a phase or of the process.
    pub(crate) fn note_state(&self) {
        let record = self.shared.record();
        if !record.is_on() {
            return;
        }
        let (at, port) = (self.clock.read(), self.rpc.app().id.port);
        let sessions = self.rpc.sessions();
        for info in sessions.filter_map(|session| self.rpc.session_info(session).ok()) {
            record.note(at, port, &EndpointFact::SessionIs(&info));
        }
        record.note(at, port, &EndpointFact::Measured(self.rpc.histograms()));
    }
}

impl Node for RpcNode {
    fn run_once(&mut self) {
        let now = self.net.borrow().now();
        self.workers.advance(self.clock.read());
        self.control.deliver_events(&mut self.rpc, now);
        self.open_due();
        self.pace();
        let progress = self.rpc.run_once();
        self.control.report_closed(&mut self.rpc, now);
        if let Some(what) = self.control.take_violation() {
            self.net.borrow_mut().violate(what);
        }
        if progress.frames != 0 {
            self.check_sessions();
        }
        self.report_notes();
        self.note_iteration(progress);
    }

    fn next_wakeup(&mut self) -> Nanos {
        let event = self.control.next_event();
        if event == Nanos::ZERO {
            return event;
        }
        let jobs = self.workers.advance(self.clock.read());
        self.rpc
            .next_wakeup()
            .min(jobs)
            .min(self.next_opening())
            .min(event)
    }

    fn on_tick(&mut self) {
        let now = self.net.borrow().now();
        self.control.tick(now);
    }

    fn next_tick(&mut self) -> Nanos {
        self.control.next_tick()
    }

    fn on_incoming(&mut self, local: bool) -> Option<u64> {
        let now = self.net.borrow().now();
        self.control.on_incoming(local, now)
    }

    fn on_stream(&mut self, event: StreamEvent) {
        let port = self.rpc.app().id.port;
        let now = self.net.borrow().now();
        let record = self.shared.record();
        record.note(now, port, &event);
        self.net
            .borrow_mut()
            .note(|| format!("control    {}: {}", port.0, describe_event(&event)));
        self.control.on_stream(event, now);
    }

    fn on_exit(&mut self) {
        let now = self.net.borrow().now();
        self.control.shut_down(now);
        self.rpc.flush();
    }

    fn on_end(&mut self) {
        self.note_state();
        self.shared.record().end_endpoint(self.rpc.counters());
    }

    fn take_requests(&mut self, out: &mut Vec<StreamRequest>) {
        self.control.take_requests(out);
    }
}

/// Describes a control message for a trace.
fn describe_event(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Frame(name, frame, _) => match Message::decode(frame) {
            Ok(message) => format!("{name} {message:?}"),
            Err(why) => format!("{name} no message: {why}"),
        },
        other => format!("{other:?}"),
    }
}
