//! Every call of a run, with its executions, its attempts and its end, and the laws that these must
//! obey.
//!
//! Invariant: the first breach is kept. Clients and servers report each event when it happens, and
//! `run` asks for the breach after each of its steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use dunlin_channel::{CallEnd, Terms, Why};
use dunlin_core::Nanos;
use dunlin_wire::Ran;

use super::desk::Line;

#[derive(Clone, Debug)]
struct Call {
    client: usize,
    terms: Terms,
    begun: Nanos,
    runs: u32,
    attempts: usize,
    /// Whether an attempt was sent and has ended.
    has_left: bool,
    end: Option<CallEnd>,
    is_cancelled: bool,
    /// The time since which none of its attempts has been in flight.
    idle: Option<Nanos>,
    /// Whether the next attempt costs nothing.
    is_free: bool,
    /// Whether the last attempt was lost with its server and must not be repeated, so that the call
    /// must end at once.
    is_over: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    calls: Vec<Call>,
    /// The calls that have neither ended nor been dropped.
    open: BTreeSet<usize>,
    /// Number of calls that each client has begun.
    begun: BTreeMap<usize, u64>,
    /// The price that each client has paid for repeats so far, in tenths of a repeat.
    paid: BTreeMap<usize, u64>,
    /// For each session with a failed server, the time by which its client must know of the
    /// failure. The session is named by the port of its client and by its number there.
    failed: BTreeMap<(usize, Line), Nanos>,
    /// The time at which the last fault so far is over.
    calm: Nanos,
    tally: Tally,
    violation: Option<String>,
}

/// Counts over all calls of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Calls that ended with an answer.
    pub answered: u64,
    /// Calls that failed, by the result of `ran()`: no, yes, unknown.
    pub failed: [u64; 3],
    /// Calls that their callers dropped.
    pub dropped: u64,
    /// Handlers that began, by server.
    pub runs: BTreeMap<usize, u64>,
    /// Handlers that began after their call had ended. For example, another server may have
    /// answered the repeat of an idempotent call.
    pub late_runs: u64,
    /// The longest time from the beginning of a call to its end.
    pub longest: Nanos,
    /// The servers that ran the first and the last call with each key.
    homes: BTreeMap<u64, (usize, usize)>,
}

pub(super) type Shared = Rc<RefCell<Ledger>>;

/// A call may end this late, because its client's thread is busy or because it pauses before a
/// repeat.
const LATE: Nanos = Nanos::from_millis(1);
const SLACK: Nanos = Nanos::from_millis(110);

impl Ledger {
    pub(super) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(super) fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Notes that a client begins a call. Returns the call's name.
    pub(super) fn begin(&mut self, client: usize, terms: Terms, now: Nanos) -> usize {
        self.calls.push(Call {
            client,
            terms,
            begun: now,
            runs: 0,
            attempts: 0,
            has_left: false,
            end: None,
            is_cancelled: false,
            idle: Some(now),
            is_free: true,
            is_over: false,
        });
        let name = self.calls.len() - 1;
        self.open.insert(name);
        *self.begun.entry(client).or_default() += 1;
        name
    }

    /// Notes that a request is sent. `live`: the number of other attempts at this call that are in
    /// flight.
    pub(super) fn send(
        &mut self,
        name: usize,
        (live, most): (usize, usize),
        deadline: Option<Nanos>,
        now: Nanos,
    ) {
        let call = &mut self.calls[name];
        let client = call.client;
        call.attempts += 1;
        call.idle = None;
        if !std::mem::replace(&mut call.is_free, false) {
            self.pay(client, now);
        }
        let call = &self.calls[name];
        let problem = if call.attempts > most {
            "has too many attempts"
        } else if live > 0 && !call.terms.idempotent {
            "has two attempts at once, and may not run twice"
        } else if call.terms.once && (live > 0 || call.has_left) {
            "is a notification, and is sent again"
        } else if call.end.is_some() || call.is_cancelled {
            "is sent after its end"
        } else if deadline != call.terms.deadline {
            "is sent with another deadline"
        } else {
            return;
        };
        let what = format!("call {name} {problem}: {call:?}");
        self.violate(what);
    }

    /// Notes the end of an attempt that may have been sent.
    pub(super) fn leave(&mut self, name: usize) {
        self.calls[name].has_left = true;
    }

    /// Notes that a request does not count as an attempt. It was never sent, because the endpoint
    /// refused it or its session ended while it waited; or a draining server refused it.
    pub(super) fn take_back(&mut self, name: usize) {
        self.calls[name].attempts -= 1;
    }

    /// Notes that a client repeats or hedges. Its retry bucket must have held enough tokens, in
    /// tenths of a repeat.
    fn pay(&mut self, client: usize, now: Nanos) {
        let paid = self.paid.entry(client).or_default();
        *paid += 10;
        let begun = self.begun.get(&client).copied().unwrap_or(0);
        let earned = 1000 + begun + now.0.div_ceil(10_000_000);
        if *paid > earned {
            let what =
                format!("client {client} has spent {paid}/10 repeats, and earned only {earned}/10");
            self.violate(what);
        }
    }

    /// Notes that a call's last attempt in flight has ended. `is_free`: after such an end a repeat
    /// is free; `is_lost`: the attempt was sent, and its server has failed.
    pub(super) fn idle(&mut self, name: usize, now: Nanos, (is_free, is_lost): (bool, bool)) {
        let call = &mut self.calls[name];
        (call.idle, call.is_free) = (Some(now), is_free);
        call.is_over = is_lost && !call.terms.idempotent;
    }

    /// Notes a fault that is over at `end`.
    pub(super) fn strike(&mut self, end: Nanos) {
        self.calm = self.calm.max(end);
    }

    /// The time at which the last fault so far is over.
    pub(super) fn calm(&self) -> Nanos {
        self.calm
    }

    /// Notes that a server has failed, and that the client of this session must know it by the time
    /// `by`.
    pub(super) fn fail(&mut self, session: (usize, Line), by: Nanos) {
        let first = self.failed.entry(session).or_insert(by);
        *first = by.min(*first);
    }

    /// Checks a call with an attempt in flight on this session.
    pub(super) fn check_attempt(&mut self, name: usize, session: (usize, Line), now: Nanos) {
        let failed = self.failed.get(&session).copied();
        if let Some(by) = failed.filter(|by| now > *by + LATE) {
            let what = format!(
                "at {} ns an attempt at call {name} continues, although its server has failed, \
                 which its client should have known at {} ns",
                now.0, by.0
            );
            self.violate(what);
        }
    }

    /// Notes that a handler of a server runs.
    pub(super) fn run(&mut self, name: usize, server: usize) {
        let Some(call) = self.calls.get_mut(name) else {
            return self.violate(format!("a handler runs for an unknown call: {name}"));
        };
        call.runs += 1;
        *self.tally.runs.entry(server).or_default() += 1;
        if let Some(key) = call.terms.key {
            self.tally.homes.entry(key).or_insert((server, server)).1 = server;
        }
        self.tally.late_runs += u64::from(call.end.is_some());
        if call.runs > 1 && !call.terms.idempotent {
            self.violate(format!("call {name} runs twice"));
        }
    }

    pub(super) fn cancel(&mut self, name: usize) -> bool {
        let call = &mut self.calls[name];
        let is_open = call.end.is_none() && !call.is_cancelled;
        call.is_cancelled |= is_open;
        self.open.remove(&name);
        self.tally.dropped += u64::from(is_open);
        is_open
    }

    pub(super) fn end(&mut self, name: usize, end: CallEnd, now: Nanos, patience: Nanos) {
        let call = &mut self.calls[name];
        let idle = call.idle.map_or(Nanos::ZERO, |idle| now.since(idle));
        let problem = match end {
            _ if call.is_cancelled => "ends after it was cancelled",
            _ if call.end.is_some() => "ends twice",
            CallEnd::Answered(_) if call.runs == 0 => "is answered, but never ran",
            CallEnd::Failed(failure) if failure.why == Why::NoServer && idle < patience => {
                "has waited less than its patience"
            }
            _ => {
                call.end = Some(end);
                self.open.remove(&name);
                let took = now.since(call.begun);
                return self.tally.on_end(end, took);
            }
        };
        self.violate(format!("call {name} {problem}: {end:?}"));
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Checks that no call of `client` has exceeded its deadline or waited too long. `ready`: the
    /// time since which a server has been ready for its calls.
    pub(super) fn check(
        &mut self,
        client: usize,
        now: Nanos,
        patience: Nanos,
        ready: Option<Nanos>,
    ) {
        let mut open = self.open.iter().map(|name| &self.calls[*name]);
        let is_late = |call: &&Call| {
            let is_its = call.client == client;
            let deadline = call.terms.deadline.is_some_and(|end| now > end + LATE);
            let waits = |span| call.idle.is_some_and(|idle| now.since(idle) > span);
            let is_ready = ready.is_some_and(|ready| now.since(ready) > SLACK);
            let is_over = call.is_over && waits(LATE);
            let waits_too_long = waits(patience + SLACK) || is_ready && waits(SLACK);
            is_its && (deadline || is_over || waits_too_long)
        };
        let late = open.find(is_late).cloned();
        if let Some(late) = late {
            self.violate(format!(
                "at {} ns a call should have ended: {late:?}",
                now.0
            ));
        }
    }

    /// Number of calls that have neither ended nor been dropped.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Number of calls that have ended.
    pub(super) fn ended(&self) -> usize {
        self.calls.iter().filter(|call| call.end.is_some()).count()
    }

    /// Checks that every call has ended with an answer, and has run once.
    pub(super) fn check_answered(&mut self) {
        let is_right =
            |call: &Call| matches!(call.end, Some(CallEnd::Answered(_))) && call.runs == 1;
        let mut calls = self.calls.iter().enumerate();
        if let Some((name, call)) = calls.find(|(_, call)| !is_right(call)) {
            let what = format!("call {name} has no answer, or has not run once: {call:?}");
            self.violate(what);
        }
    }

    /// Checks the ends of all calls after the run.
    pub(super) fn check_all(&mut self) {
        for (name, call) in self.calls.iter().enumerate() {
            let problem = match call.end {
                None if call.is_cancelled => continue,
                None => "has not ended",
                Some(CallEnd::Answered(_)) => continue,
                Some(CallEnd::Failed(failure)) => match failure.ran {
                    Ran::No if call.runs > 0 => "ran, but its end says that it did not",
                    Ran::Yes if call.runs == 0 => "never ran, but its end says that it did",
                    _ => continue,
                },
            };
            let what = format!("call {name} {problem}: {call:?}");
            return self.violate(what);
        }
    }
}

impl Tally {
    /// The number of keys whose last call ran at another server than their first one, and the
    /// number of all keys.
    pub fn moved(&self) -> (usize, usize) {
        let moved = self.homes.values().filter(|(first, last)| first != last);
        (moved.count(), self.homes.len())
    }

    fn on_end(&mut self, end: CallEnd, took: Nanos) {
        self.longest = self.longest.max(took);
        match end {
            CallEnd::Answered(_) => self.answered += 1,
            CallEnd::Failed(failure) => {
                let [no, yes, unknown] = &mut self.failed;
                *match failure.ran {
                    Ran::No => no,
                    Ran::Yes => yes,
                    Ran::Unknown => unknown,
                } += 1;
            }
        }
    }
}
