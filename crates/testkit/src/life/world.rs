//! Two hosts, the frames between them, a slow control plane, and the faults that can strike them.
//! Every step of an input is one call of a function here; any order of calls is valid.

mod faults;

use std::collections::VecDeque;
use std::sync::Arc;

use super::challenges::Challenges;
use super::host::{Host, SharedLedger, req_type};
use super::ledger::{Ledger, Terms};
use super::letter::{LETTER_LEN, Mode, write_answer};
use super::net::{Datagram, Device, PEER};
use super::record::{Fact, Recorder};
use crate::clock::StepClock;
use dunlin_core::{
    Account, CallOptions, CloseReason, Config, Nanos, Question, Report, Session, SessionOffer,
    SessionOptions, Tag,
};

/// The most sessions at the same time.
const SESSIONS: usize = 3;
/// Number of rounds without faults within which all calls and sessions must end.
const ROUNDS: usize = 20_000;
const SOUND: &str = "a failed checker ends the run";

/// The parameters of a call that a step asks for.
pub(super) struct Order {
    pub(super) session: usize,
    pub(super) kind: u8,
    pub(super) mode: Mode,
    pub(super) len: usize,
    pub(super) answer_len: u16,
    pub(super) room: usize,
    pub(super) deadline: Option<Nanos>,
}

pub(super) struct World {
    clock: StepClock,
    ledger: SharedLedger,
    hosts: [Host; 2],
    /// The most data bytes in one packet.
    data_size: u32,
    options: SessionOptions,
    record: Recorder,
    /// Sessions whose opener has not received the answer yet.
    opening: VecDeque<(usize, Session, SessionOffer)>,
    /// Sessions whose host has not learned of the end.
    closing: VecDeque<(usize, Session)>,
    /// Questions that the other host has not received yet.
    asking: VecDeque<(usize, Question)>,
    challenges: Challenges,
}

impl World {
    pub(super) fn new(
        options: SessionOptions,
        config: &Config,
        device: Device,
        record: Recorder,
    ) -> Self {
        let clock = StepClock::at(Nanos(1_000_000));
        let ledger = SharedLedger::new(Ledger::new(record.clone()).into());
        let hosts = [0, 1].map(|me| Host::new(me, &ledger, &clock, config.clone(), device));
        let mut world = Self {
            clock,
            ledger,
            hosts,
            data_size: device.data_size,
            options,
            record,
            opening: VecDeque::new(),
            closing: VecDeque::new(),
            asking: VecDeque::new(),
            challenges: Challenges::default(),
        };
        world.connect(0);
        world.complete_opening();
        world
    }

    fn now(&self) -> Nanos {
        self.clock.read()
    }

    fn sessions(&self, host: usize) -> Vec<Session> {
        self.hosts[host].rpc.sessions().collect()
    }

    pub(super) fn connect(&mut self, opener: usize) {
        if self
            .hosts
            .iter()
            .any(|host| host.rpc.session_count() >= SESSIONS)
        {
            return;
        }
        let rpc = &mut self.hosts[opener].rpc;
        let session = rpc.lifecycle().open(&self.options).expect("there is room");
        let offer = rpc
            .lifecycle()
            .offer_of(session)
            .expect("it was just opened");
        let other = &mut self.hosts[1 - opener].rpc;
        let (accepted, answer) = other
            .lifecycle()
            .accept(PEER, &offer)
            .expect("a good offer");
        let mut sessions = [session, accepted];
        let mut tokens = [offer.token, answer.token];
        if opener == 1 {
            sessions.reverse();
            tokens.reverse();
        }
        let mut ledger = self.ledger.lock().expect(SOUND);
        ledger.add_pair(sessions, tokens);
        self.opening.push_back((opener, session, answer));
    }

    pub(super) fn complete_opening(&mut self) {
        if let Some((host, session, answer)) = self.opening.pop_front() {
            // The session may have been closed in the meantime.
            let _ended = self.hosts[host]
                .rpc
                .lifecycle()
                .opened(session, PEER, &answer);
        }
    }

    pub(super) fn disconnect(&mut self, host: usize, which: usize) {
        let sessions = self.sessions(host);
        if !sessions.is_empty() {
            let session = sessions[which % sessions.len()];
            let ended = self.hosts[host].rpc.disconnect(session);
            ended.expect("it is alive");
        }
    }

    pub(super) fn deliver_control(&mut self) {
        if let Some((host, session)) = self.closing.pop_front() {
            self.hosts[host]
                .rpc
                .lifecycle()
                .close(session, CloseReason::Disconnected);
        }
        if let Some((host, question)) = self.asking.pop_front() {
            self.answer(host, &question);
        }
    }

    /// Makes the other host answer a session's question, unless its side has ended.
    fn answer(&mut self, host: usize, question: &Question) {
        let ledger = self.ledger.lock().expect(SOUND);
        let pair = ledger.pair_of(host, question.session);
        let pair = pair.expect("every session is in the book");
        let there = ledger.pairs[pair].sessions[1 - host];
        drop(ledger);
        let lifecycle = self.hosts[1 - host].rpc.lifecycle();
        let fates = lifecycle.fates_of(there, &question.requests);
        if !fates.is_empty() {
            let account = Account::Fates(fates);
            let mut lifecycle = self.hosts[host].rpc.lifecycle();
            lifecycle.on_account(question.session, &account);
        }
    }

    pub(super) fn challenge(&mut self, from: usize, which: usize) {
        self.challenges.send(&mut self.hosts, from, which);
    }

    pub(super) fn call_again(&mut self, host: usize, times: usize) {
        self.hosts[host].rpc.app_mut().again += times;
    }

    pub(super) fn call(&mut self, host: usize, order: &Order) {
        let sessions = self.sessions(host);
        if sessions.is_empty() {
            return;
        }
        let session = sessions[order.session % sessions.len()];
        let mut ledger = self.ledger.lock().expect(SOUND);
        let pair = ledger
            .pair_of(host, session)
            .expect("every session is in the book");
        let rpc = &mut self.hosts[host].rpc;
        let (mut request, response) = match (rpc.buf(order.len), rpc.buf(order.room)) {
            (Ok(request), Ok(response)) => (request, response),
            // The pool is used up.
            _ => return,
        };
        let short = order.len < LETTER_LEN;
        let id = ledger.add_call(Terms {
            issuer: host,
            pair,
            kind: order.kind,
            mode: order.mode,
            len: order.len,
            answer_len: if short { 0 } else { order.answer_len },
            room: response.capacity(),
            limit: self.data_size,
            deadline: order.deadline.map_or(Nanos::MAX, |span| self.now() + span),
        });
        ledger.letter(id).write(request.data_mut());
        let (tag, options) = (
            Tag(u64::from(id)),
            CallOptions {
                deadline: order.deadline,
            },
        );
        let rpc = &mut self.hosts[host].rpc;
        match rpc.call_with(
            session,
            req_type(order.kind),
            request,
            response,
            tag,
            options,
        ) {
            Ok(call) => rpc.app_mut().calls.push((call, id)),
            Err(refused) => {
                let why = refused.kind;
                self.record
                    .note(|| Fact::Told(host, format!("call {id} is refused: {why:?}")));
                ledger.refuse(id);
                rpc.cx().recycle([refused.request, refused.response]);
            }
        }
    }

    pub(super) fn cancel(&mut self, host: usize, which: usize) {
        let (app, mut cx) = self.hosts[host].rpc.with();
        if app.calls.is_empty() {
            return;
        }
        let (call, id) = app.calls[which % app.calls.len()];
        let could = cx.cancel(call).is_ok();
        self.record
            .note(|| Fact::Told(host, format!("call {id} is cancelled: {could}")));
        if could {
            let mut ledger = self.ledger.lock().expect(SOUND);
            ledger.cancel(id);
        }
    }

    pub(super) fn run_once(&mut self, host: usize) {
        self.hosts[host].rpc.run_once();
    }

    /// Runs a host until it has read the clock, which only every 64th idle iteration does.
    pub(super) fn run(&mut self, host: usize) {
        for _ in 0..65 {
            let progress = self.hosts[host].rpc.run_once();
            if !progress.busy && self.hosts[host].rpc.next_wakeup() > self.now() {
                return;
            }
        }
    }

    /// Delivers all frames, and runs both hosts.
    pub(super) fn exchange(&mut self) {
        for host in [0, 1] {
            let flight = std::mem::take(&mut self.hosts[host].out.borrow_mut().flight);
            self.hosts[1 - host].inbox.borrow_mut().extend(flight);
        }
        self.run(0);
        self.run(1);
    }

    pub(super) fn pass(&mut self, span: Nanos) {
        self.clock.pass(span);
    }

    pub(super) fn run_jobs(&mut self, host: usize, which: usize) {
        self.hosts[host].jobs.run(which);
    }

    pub(super) fn answer_held(&mut self, host: usize, which: usize, reply: bool) {
        let (app, mut cx) = self.hosts[host].rpc.with();
        if app.held.is_empty() {
            return;
        }
        let (held, letter) = app.held.swap_remove(which % app.held.len());
        app.ledger().on_answer(letter);
        if reply {
            held.reply(&mut cx, usize::from(letter.answer_len), |out| {
                write_answer(letter.id, out);
            });
        }
    }

    pub(super) fn set_stuck(&mut self, host: usize, stuck: bool) {
        let mut out = self.hosts[host].out.borrow_mut();
        out.stuck = stuck;
        if !stuck {
            out.catch_up();
        }
    }

    /// Checks, after every step, that credits are conserved and no law is broken. Tells the control
    /// plane which sessions have ended.
    pub(super) fn check(&mut self) {
        for me in [0, 1] {
            let rpc = &mut self.hosts[me].rpc;
            let mut receiving = 0;
            for session in rpc.sessions() {
                let info = rpc.session_info(session).expect("it is alive");
                assert_eq!(
                    info.credits + info.credits_held,
                    info.credit_limit,
                    "{info:?}"
                );
                assert!(info.in_flight <= info.window, "{info:?}");
                receiving += info.receiving;
            }
            assert_eq!(receiving, rpc.receiving(), "the budgets do not add up");
            let ledger = self.ledger.lock().expect(SOUND);
            while let Some(report) = rpc.lifecycle().take_report() {
                self.record.note(|| Fact::Told(me, format!("{report:?}")));
                let closed = match report {
                    Report::Closed(closed) => closed,
                    Report::Challenged(challenged) => {
                        self.challenges.check(me, challenged, &ledger);
                        continue;
                    }
                    Report::Question(question) => {
                        self.asking.push_back((me, question));
                        continue;
                    }
                };
                let pair = ledger.pair_of(me, closed.session).expect("it is known");
                let broken = matches!(closed.reason, CloseReason::Inconsistent(_));
                assert!(!broken, "{:?}", closed.reason);
                if closed.tell {
                    let there = ledger.pairs[pair].sessions[1 - me];
                    self.closing.push_back((1 - me, there));
                }
            }
        }
    }

    /// Records the counters and resources of both hosts after a step.
    pub(super) fn note_standing(&mut self) {
        for (me, host) in self.hosts.iter_mut().enumerate() {
            self.record.note_standing(me, || host.standing());
        }
    }

    /// Records all sessions and all measurements.
    fn note_state(&self) {
        for (me, host) in self.hosts.iter().enumerate() {
            let rpc = &host.rpc;
            for session in rpc.sessions() {
                let info = rpc.session_info(session);
                self.record.note(|| Fact::Told(me, format!("{info:?}")));
            }
            let measured = rpc.histograms();
            self.record.note(|| Fact::Told(me, format!("{measured:?}")));
        }
    }

    /// Ends the faults. All calls must complete, and all resources must be given back.
    pub(super) fn finish(mut self) {
        self.note_state();
        for host in [0, 1] {
            self.set_stuck(host, false);
            let (app, mut cx) = self.hosts[host].rpc.with();
            app.hurry(&mut cx);
        }
        for _ in 0..ROUNDS {
            self.settle();
            self.note_standing();
            let due = self.hosts.each_ref().map(|host| host.rpc.next_wakeup());
            match due[0].min(due[1]) {
                Nanos::MAX => {
                    self.note_state();
                    return self.assert_clean();
                }
                due => self.clock.set(self.clock.read().max(due)),
            }
        }
        self.ledger.lock().expect(SOUND).assert_all_completed();
        panic!("all calls have completed, but the endpoints do not come to rest");
    }

    /// Handles all events that are pending now.
    fn settle(&mut self) {
        loop {
            self.exchange();
            for host in [0, 1] {
                self.run_jobs(host, 0);
                self.answer_held(host, 0, true);
            }
            self.complete_opening();
            self.deliver_control();
            self.check();
            if self.is_still() {
                return;
            }
        }
    }

    fn is_still(&self) -> bool {
        let is_still = |host: &Host| {
            let app = host.rpc.app();
            host.inbox.borrow().is_empty()
                && host.out.borrow().flight.is_empty()
                && app.held.is_empty()
                && host.jobs.is_idle()
                && host.rpc.next_wakeup() > self.now()
        };
        self.opening.is_empty() && self.closing.is_empty() && self.hosts.iter().all(is_still)
    }

    fn assert_clean(&mut self) {
        let ledger: &SharedLedger = &Arc::clone(&self.ledger);
        let ledger = ledger.lock().expect(SOUND);
        ledger.assert_all_completed();
        for host in &mut self.hosts {
            for session in host.rpc.sessions().collect::<Vec<_>>() {
                let info = host.rpc.session_info(session).expect("it is alive");
                assert_eq!((info.in_flight, info.backlog), (0, 0), "{info:?}");
            }
            assert_eq!(host.rpc.pool_use().1, 0, "msgbufs are missing");
            assert_eq!(host.rpc.receiving(), 0, "a budget does not come back");
        }
    }
}
