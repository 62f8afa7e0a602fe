//! The checkers that see all processes at once: the calls that were issued, the handlers that ran,
//! and how the calls ended (design §13).
//!
//! Checked here: a handler runs at most once per call, and only at the process to which the call
//! was sent; a call ends exactly once, in a way that its handler and the faults allow; a response
//! belongs to its request; a session has no more live handlers than its window. Called by handlers,
//! continuations and `run`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_core::{HandleError, Nanos, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use super::message::Kind;
use crate::world::ProcessId;
use crate::world::net::PortId;
use crate::world::record::Recorder;
use judge::Call;

mod judge;

/// A session's name: the process that opened it, and the token that this process chose.
pub(super) type SessionName = (PortId, u32);

/// A phase of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Faults strike.
    Chaos,
    /// No more faults, and no new calls: pending calls must end.
    Settle,
    /// New calls over a sound network: they must succeed.
    Calm,
    /// Sessions close; nothing may be left.
    Close,
}

/// The record of a run.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) phase: Phase,
    /// Whether packets may have been lost even in the calm phase, because bounded queues have
    /// overflowed.
    pub(super) lossy: bool,
    /// From this time on, no process may be declared failed, because each has received packets from
    /// all others since the faults ended.
    pub(super) trusted_from: Nanos,
    /// How many empty requests were issued, and how many ran. They have no room for the name of a
    /// call.
    empties: (u64, u64),
    allowed: Allowed,
    /// The sessions that their openers gave up before they were open.
    given_up: BTreeSet<SessionName>,
    calls: Vec<Call>,
    pending: usize,
    violation: Option<String>,
    traced: bool,
    /// Lines for the trace.
    pub(super) notes: Vec<String>,
    pub(super) counts: Counts,
}

/// Failures that are allowed in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Allowed {
    /// Whether an attacker that knows the tokens forges packets. Then any request may run, and any
    /// answer may arrive.
    pub(super) anything: bool,
    /// Whether memory, sessions or credits may run out.
    pub(super) shortage: bool,
    /// Whether endpoints soon forget responses, and requests that have arrived in part.
    pub(super) forgetting: bool,
}

/// How calls ended, over all processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls that an endpoint took.
    pub issued: u64,
    /// Calls that it refused.
    pub refused: u64,
    /// Handlers that ran.
    pub executed: u64,
    /// Calls that ended with a response.
    pub succeeded: u64,
    /// Calls that the server rejected with another code than "response gone", and calls whose
    /// response did not fit their buffer.
    pub rejected: u64,
    /// Calls whose deadline passed.
    pub expired: u64,
    /// Calls that were cancelled.
    pub cancelled: u64,
    /// Calls that ended with their session or peer.
    pub failed: u64,
    /// Calls whose own process ended before them.
    pub void: u64,
    /// Calls answered with "response gone".
    pub gone: u64,
}

/// A ledger that handlers in workers can reach.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledger: Mutex<Ledger>,
    /// Whether the ledger has changed. This is outside the lock, because every iteration reads it.
    news: AtomicBool,
    record: Recorder,
}

/// The facts about a call that the ledger gets when the call is issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Issue {
    pub(super) kind: Kind,
    pub(super) from: ProcessId,
    pub(super) to: PortId,
    pub(super) session: SessionName,
    /// The time at the caller.
    pub(super) at: Nanos,
    pub(super) deadline: Option<Nanos>,
    pub(super) answer_len: u32,
    pub(super) room: u32,
    /// Whether the request has more than one packet, and whether the answer does.
    pub(super) parts: (bool, bool),
}

impl Shared {
    /// Notes a violation if an endpoint took one of its own handles for a handle of another
    /// endpoint. If the handle's session or call has ended, this is not a violation.
    pub(super) fn check_handle(&self, used: Result<(), HandleError>) {
        if used == Err(HandleError::WrongEndpoint) {
            let what = "an endpoint does not know its own handle".to_owned();
            self.lock().violate(what);
        }
    }

    pub(super) fn new(allowed: Allowed, traced: bool, record: Recorder) -> Self {
        let ledger = Mutex::new(Ledger {
            phase: Phase::Chaos,
            lossy: true,
            trusted_from: Nanos::MAX,
            empties: (0, 0),
            allowed,
            given_up: BTreeSet::new(),
            calls: Vec::new(),
            pending: 0,
            violation: None,
            traced,
            notes: Vec::new(),
            counts: Counts::default(),
        });
        Self(Arc::new(Inner {
            ledger,
            news: AtomicBool::new(false),
            record,
        }))
    }

    /// The recorder, for a run that is compared.
    pub(super) fn record(&self) -> &Recorder {
        &self.0.record
    }

    /// Whether the ledger has changed since the last call.
    pub(super) fn take_news(&self) -> bool {
        self.0.news.load(Relaxed) && self.0.news.swap(false, Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ledger> {
        // No code that panics on purpose holds the lock.
        self.0.news.store(true, Relaxed);
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Calls that have not ended.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Takes out the report of the first broken invariant.
    pub(super) fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }

    /// Records that an invariant was broken.
    pub(super) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Reports that a handler had no room for its answer, although callers ask for no more than was
    /// registered.
    pub(super) fn no_room(&mut self, kind: Kind) {
        if !self.allowed.anything {
            self.violate(format!("a {kind:?} request had no room for its answer"));
        }
    }

    /// Names a call that is about to be issued.
    pub(super) fn issue(&mut self, issue: Issue) -> u64 {
        let Issue {
            kind,
            from,
            to,
            session,
            at,
            deadline,
            answer_len,
            room,
            parts,
        } = issue;
        self.empties.0 += u64::from(kind == Kind::Empty);
        self.counts.issued += 1;
        self.pending += 1;
        let name = self.calls.len();
        self.note(|| {
            format!(
                "call       {}->{}: {kind:?}, call {name}",
                from.port.0, to.0
            )
        });
        self.calls.push(Call {
            kind,
            from,
            to,
            session,
            phase: self.phase,
            issued: at,
            deadline,
            answer_len,
            room,
            parts,
            cancelled: false,
            runs: 0,
            ended: false,
            never_runs: false,
        });
        self.calls.len() as u64 - 1
    }

    /// Notes that a session's opener has given it up before it was open.
    pub(super) fn give_up(&mut self, session: SessionName) {
        self.given_up.insert(session);
    }

    /// Notes that the endpoint did not take the call.
    pub(super) fn refuse(&mut self, call: u64) {
        let is_empty = self.find(call).is_some_and(|it| it.kind == Kind::Empty);
        self.empties.0 -= u64::from(is_empty);
        self.counts.issued -= 1;
        self.counts.refused += 1;
        self.end(call);
    }

    /// Notes that the caller cancels.
    pub(super) fn cancel(&mut self, call: u64) {
        self.note(|| format!("cancel     call {call}"));
        if let Some(call) = self.find(call) {
            call.cancelled = true;
        }
    }

    /// Notes that a handler of `kind` runs at `at`. False if it should not answer as usual.
    pub(super) fn execute(&mut self, name: Option<u64>, kind: Kind, at: PortId) -> bool {
        self.counts.executed += 1;
        self.note(|| format!("run        {}: {kind:?} for call {name:?}", at.0));
        let lenient = self.allowed.anything;
        let Some((name, call)) = name.and_then(|name| Some((name, self.find(name)?))) else {
            if !lenient {
                self.violate(format!("port {}: {kind:?} runs for no call", at.0));
            }
            return false;
        };
        call.runs = call.runs.saturating_add(1);
        let problem = if call.never_runs {
            "runs although its end says that it does not"
        } else if call.runs > 1 {
            "ran more than once"
        } else if call.to != at {
            "ran at the wrong process"
        } else if call.kind != kind {
            "ran the wrong handler"
        } else {
            return true;
        };
        if !lenient {
            self.violate(format!(
                "call {name} ({kind:?}) {problem}, at port {}",
                at.0
            ));
        }
        true
    }

    /// Notes that the handler of empty requests runs at `at`.
    pub(super) fn execute_empty(&mut self, request: &[u8], at: PortId) {
        self.counts.executed += 1;
        self.empties.1 += 1;
        let (issued, run) = self.empties;
        self.note(|| format!("run        {}: Empty, {run} of {issued}", at.0));
        if !self.allowed.anything && (run > issued || !request.is_empty()) {
            let len = request.len();
            self.violate(format!(
                "empty request {run} of {issued} runs with {len} bytes"
            ));
        }
    }

    /// The kind of a call.
    pub(super) fn kind_of(&self, name: u64) -> Option<Kind> {
        Some(self.calls.get(usize::try_from(name).ok()?)?.kind)
    }

    /// Notes that a call has ended at its caller.
    pub(super) fn complete(
        &mut self,
        name: u64,
        at: ProcessId,
        now: Nanos,
        result: Result<(), RpcError>,
        response: &[u8],
    ) {
        let (phase, allowed, lossy) = (self.phase, self.allowed, self.lossy);
        let trusted = now >= self.trusted_from;
        self.count(&result);
        self.note(|| format!("end        {}: call {name} with {result:?}", at.port.0));
        let abandoned = self.is_abandoned(name);
        let Some(call) = self.find(name) else {
            return self.violate(format!("a call that was not issued has ended: {name}"));
        };
        let ours = call.from == at;
        let problem = if call.ended {
            Some("ended twice".to_owned())
        } else if !ours {
            Some("ended at another process".to_owned())
        } else if allowed.anything {
            None
        } else {
            let must_succeed = phase == Phase::Calm && call.phase == Phase::Calm && !lossy;
            let strict = (must_succeed, trusted, abandoned);
            call.judge(name, &result, response, now, strict, allowed)
        };
        let kind = call.kind;
        call.never_runs |= result.is_err_and(|error| error.ran() == Ran::No);
        self.end(name);
        if let Some(problem) = problem {
            self.violate(format!(
                "call {name} ({kind:?}) {problem}; its result is {result:?}"
            ));
        }
    }

    /// Ends a process, and its calls with it.
    pub(super) fn end_process(&mut self, process: ProcessId) {
        for call in &mut self.calls {
            if call.from == process && !call.ended {
                call.ended = true;
                self.pending -= 1;
                self.counts.void += 1;
            }
        }
    }

    /// The first calls that have not ended, for a report.
    pub(super) fn stuck(&self) -> String {
        let mut out = format!("{} calls have not ended:", self.pending);
        let stuck = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, call)| !call.ended);
        for (name, call) in stuck.take(5) {
            out.push_str(&format!(
                " [{name}: {:?} {}->{} at {} ns, ran {} times]",
                call.kind, call.from.port.0, call.to.0, call.issued.0, call.runs
            ));
        }
        out
    }

    fn end(&mut self, name: u64) {
        if let Some(call) = self.find(name)
            && !call.ended
        {
            call.ended = true;
            self.pending -= 1;
        }
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.traced {
            self.notes.push(what());
        }
    }

    /// Whether the called process has given up the call's session. The caller may have accepted the
    /// session, which ends when the caller learns of this.
    fn is_abandoned(&self, name: u64) -> bool {
        let call = usize::try_from(name).ok().and_then(|at| self.calls.get(at));
        let is_its = |call: &Call| call.session.0 == call.to;
        call.is_some_and(|call| is_its(call) && self.given_up.contains(&call.session))
    }

    fn find(&mut self, name: u64) -> Option<&mut Call> {
        self.calls.get_mut(usize::try_from(name).ok()?)
    }

    fn count(&mut self, result: &Result<(), RpcError>) {
        let counts = &mut self.counts;
        let counter = match result {
            Ok(()) => &mut counts.succeeded,
            Err(RpcError::DeadlinePassed(_)) => &mut counts.expired,
            Err(RpcError::Cancelled(_)) => &mut counts.cancelled,
            Err(RpcError::Rejected(ErrorCode::RESPONSE_GONE, _)) => &mut counts.gone,
            Err(RpcError::Rejected(..) | RpcError::ResponseTooLarge { .. }) => &mut counts.rejected,
            Err(_) => &mut counts.failed,
        };
        *counter += 1;
    }
}

/// Application errors of the scenario's handlers.
pub(super) const REJECTED: ErrorCode = ErrorCode::application(7);
/// A nested call failed or was refused.
pub(super) const NESTED_FAILED: ErrorCode = ErrorCode::application(8);
/// The handler could not decode the request.
pub(super) const GARBAGE: ErrorCode = ErrorCode::application(9);

#[cfg(test)]
mod tests;
