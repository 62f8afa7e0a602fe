//! A simulated process: an endpoint with its application, its workers, and its part of the control
//! plane (design §9, §13).
//!
//! The control plane here is the least that sessions need: connect, accept, refuse, close, and
//! what a broken connection means. Called by `world`.

use std::rc::Rc;

use dunlin_core::transport::PeerId;
use dunlin_core::{CloseReason, Config, Nanos, Session, SessionInfo, SessionOffer, SessionOptions};
use dunlin_wire::{SessionNum, Token};

use super::app::{App, Known};
use super::handlers::{Endpoint, register};
use super::ledger::{Phase, Shared};
use super::workers::SimWorkers;
use crate::clock::SimClock;
use crate::net::{NetHandle, PortId, SimTransport};
use crate::plan::Plan;
use crate::rng::Rng;
use crate::world::{Node, ProcessId, Target};

/// What processes tell each other beside packets.
#[derive(Clone, Copy, Debug)]
pub enum ControlMessage {
    /// The sender asks for a session; the number is its own.
    Connect(u32, SessionOffer),
    /// Granted.
    Accept(u32, SessionOffer),
    /// Not granted.
    Refuse(u32),
    /// The session with this number and token, of the receiver, is over.
    Close(SessionNum, Token, CloseReason),
}

/// A process.
#[derive(Debug)]
pub struct RpcNode {
    rpc: Endpoint,
    net: NetHandle,
    clock: SimClock,
    shared: Shared,
    workers: SimWorkers,
    rng: Rng,
    /// Sessions that wait for an answer, by the number of the attempt.
    connecting: Vec<(u32, Session)>,
    attempts: u32,
    outbox: Vec<(Target, ControlMessage)>,
}

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
        let work = plan.workload.clone();
        let workers = SimWorkers::new(rng.fork(), work.worker_queue, work.slow.2);
        let app = App::new(id, shared.clone(), rng.fork(), clock.clone(), work);
        let largest = halves.limits.data_size as usize;
        let boxed = Some(Box::new(workers.clone()) as Box<dyn dunlin_core::Workers>);
        let mut rpc = Endpoint::new(app, clock.clone(), halves, config, rng.next_u64(), boxed)
            .expect("every plan's configuration is within its ranges");
        register(&mut rpc, &shared, id.port, largest);
        let mut node = Self {
            rpc,
            net: Rc::clone(net),
            clock,
            shared,
            workers,
            rng,
            connecting: Vec::new(),
            attempts: 0,
            outbox: Vec::new(),
        };
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
        let (app, mut cx) = self.rpc.with();
        app.begin(phase, &mut cx);
    }

    /// Waits until the transport is done with everything.
    pub(crate) fn flush(&mut self) {
        self.rpc.flush();
    }

    /// Sessions, and msgbufs of the pool, that are in use.
    pub(crate) fn in_use(&mut self) -> (usize, usize) {
        (self.rpc.session_count(), self.rpc.pool_use().1)
    }

    /// Calls that the application has not issued yet.
    pub(crate) fn left_to_issue(&self) -> u32 {
        self.rpc.app().remaining()
    }

    /// A session that is not idle, if there is one.
    pub(crate) fn busy_session(&self) -> Option<SessionInfo> {
        let infos = self
            .rpc
            .sessions()
            .filter_map(|session| self.rpc.session_info(session));
        infos.into_iter().find(|info| {
            !info.open || info.in_flight + info.backlog > 0 || info.credits != info.credit_limit
        })
    }

    /// Ends all sessions, for good.
    pub(crate) fn disconnect_all(&mut self) {
        let sessions: Vec<_> = self.rpc.sessions().collect();
        for session in sessions {
            self.rpc.disconnect(session);
        }
    }

    /// When the next session is to be opened, if any are in this phase.
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
        let Ok(session) = self.rpc.open(&SessionOptions { window, credits }) else {
            return self
                .shared
                .lock()
                .violate("a session could not be opened".to_owned());
        };
        self.attempts += 1;
        self.connecting.push((self.attempts, session));
        self.rpc.app_mut().sessions.push(Known {
            session,
            peer,
            life: None,
            ours: true,
        });
        if let Some(offer) = self.rpc.offer_of(session) {
            let connect = ControlMessage::Connect(self.attempts, offer);
            self.outbox.push((Target::Listener(peer), connect));
        }
    }

    fn on_connect(&mut self, from: ProcessId, attempt: u32, offer: &SessionOffer) {
        let answer = match self.rpc.accept(peer_id(from.port), offer) {
            Ok((session, answer)) => {
                let (peer, life) = (from.port, Some(from.life));
                let known = Known {
                    session,
                    peer,
                    life,
                    ours: false,
                };
                self.rpc.app_mut().sessions.push(known);
                ControlMessage::Accept(attempt, answer)
            }
            Err(_) => ControlMessage::Refuse(attempt),
        };
        self.outbox.push((Target::Process(from), answer));
    }

    fn on_accept(&mut self, from: ProcessId, attempt: u32, answer: &SessionOffer) {
        let session = self.take_attempt(attempt);
        let opened = session.filter(|session| {
            self.rpc
                .opened(*session, peer_id(from.port), answer)
                .is_ok()
        });
        for known in &mut self.rpc.app_mut().sessions {
            if Some(known.session) == opened {
                known.life = Some(from.life);
            }
        }
        if opened.is_none() {
            // The user did not want to wait; the other side has a session that nobody uses.
            let reason = CloseReason::Disconnected;
            let close = ControlMessage::Close(answer.session, answer.token, reason);
            self.outbox.push((Target::Process(from), close));
        }
    }

    fn take_attempt(&mut self, attempt: u32) -> Option<Session> {
        let at = self
            .connecting
            .iter()
            .position(|(other, _)| *other == attempt)?;
        Some(self.connecting.swap_remove(at).1)
    }

    fn on_close(&mut self, number: SessionNum, token: Token, reason: CloseReason) {
        let named = self.rpc.sessions().find(|session| {
            let offer = self.rpc.offer_of(*session);
            offer.is_some_and(|offer| offer.session == number && offer.token == token)
        });
        if let Some(session) = named {
            self.rpc.close(session, reason);
        }
    }

    /// Tells the other sides of sessions that ended here.
    fn report_closed(&mut self) {
        while let Some(closed) = self.rpc.take_closed() {
            let Some(remote) = closed.remote.filter(|_| closed.tell) else {
                continue;
            };
            let reason = match closed.reason {
                CloseReason::Disconnected => CloseReason::Disconnected,
                _ => CloseReason::Reset,
            };
            let app = self.rpc.app();
            let mut known = app.ended.iter().chain(&app.sessions);
            let known = known.find(|known| known.session == closed.session);
            let Some((port, life)) = known.and_then(|known| Some((known.peer, known.life?))) else {
                continue;
            };
            let close = ControlMessage::Close(remote.session, remote.token, reason);
            self.outbox
                .push((Target::Process(ProcessId { port, life }), close));
        }
        self.rpc.app_mut().ended.clear();
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

    /// Credits are never more than agreed on, and calls in slots never more than slots.
    fn check_sessions(&mut self) {
        let App {
            sessions,
            shared,
            id,
            ..
        } = self.rpc.app();
        for known in sessions {
            let Some(info) = self.rpc.session_info(known.session) else {
                continue;
            };
            if info.credits + info.in_flight != info.credit_limit || info.in_flight > info.window {
                let what = format!("port {}: credits are not conserved: {info:?}", id.port.0);
                shared.lock().violate(what);
            }
        }
    }
}

impl Node for RpcNode {
    type Message = ControlMessage;

    fn run_once(&mut self) {
        self.workers.advance(self.clock.read());
        self.open_due();
        let progress = self.rpc.run_once();
        self.report_closed();
        if progress.frames != 0 {
            self.check_sessions();
        }
        self.report_notes();
    }

    fn next_wakeup(&mut self) -> Nanos {
        let jobs = self.workers.advance(self.clock.read());
        self.rpc.next_wakeup().min(jobs).min(self.next_opening())
    }

    fn on_message(&mut self, from: ProcessId, message: ControlMessage) {
        let (peer, port) = (from.port.0, self.rpc.app().id.port.0);
        self.net
            .borrow_mut()
            .note(|| format!("control    {peer}->{port} {message:?}"));
        match message {
            ControlMessage::Connect(attempt, offer) => self.on_connect(from, attempt, &offer),
            ControlMessage::Accept(attempt, answer) => self.on_accept(from, attempt, &answer),
            ControlMessage::Refuse(attempt) => {
                if let Some(session) = self.take_attempt(attempt) {
                    self.rpc.close(session, CloseReason::Refused);
                }
            }
            ControlMessage::Close(number, token, reason) => self.on_close(number, token, reason),
        }
    }

    fn on_broken(&mut self, peer: ProcessId) {
        let port = self.rpc.app().id.port;
        self.net
            .borrow_mut()
            .note(|| format!("broken     {}->{}", peer.port.0, port.0));
        // An attempt that has no answer may have been meant for the process that is gone.
        let gone = |known: &&Known| {
            known.peer == peer.port && known.life.is_none_or(|life| life == peer.life)
        };
        let lost: Vec<_> = self
            .rpc
            .app()
            .sessions
            .iter()
            .filter(gone)
            .copied()
            .collect();
        for known in lost {
            self.rpc.close(known.session, CloseReason::PeerFailed);
        }
    }

    fn take_messages(&mut self, out: &mut Vec<(Target, ControlMessage)>) {
        self.report_closed();
        out.append(&mut self.outbox);
    }
}

fn peer_id(port: PortId) -> PeerId {
    PeerId(u32::try_from(port.0).expect("a world has fewer than 2^32 ports"))
}
