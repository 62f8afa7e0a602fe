//! The judge: the laws that hold at every step, after the faults, and at the end.

use dunlin_core::{CallErrorKind, Nanos, RpcError};
use dunlin_wire::{ErrorCode, Ran};

use crate::driver::{Attempt, Call, Driver};
use crate::state::World;
use dunlin_channel::{AttemptId, CallEnd, CallId, Fault, LinkId, Outcome, State, Why};

/// The longest pause before a repeat, plus a millisecond.
const PAUSE: Nanos = Nanos::from_millis(101);

pub(crate) struct Judge<'a> {
    world: &'a World,
    driver: &'a Driver,
}

impl World {
    pub(crate) fn judge_send(
        &mut self,
        id: CallId,
        link: LinkId,
        deadline: Option<Nanos>,
    ) -> Result<(), String> {
        let driver = &mut self.driver;
        let place = driver
            .calls
            .iter()
            .position(|call| call.id == id && call.end.is_none());
        let place = place.ok_or("no such call")?;
        let is_under_way = driver.attempts.values().any(|it| it.call == place);
        let entry = driver.links.get(&link).filter(|entry| entry.is_open);
        let entry = entry.ok_or("the link is not open")?;
        if !driver.is_ready(entry) {
            return Err("its server drains, or is no longer listed".to_owned());
        }
        let call = &mut driver.calls[place];
        if call.is_cancelled {
            return Err("the call was cancelled".to_owned());
        }
        if deadline != call.terms.deadline || deadline.is_some_and(|end| end <= self.now) {
            return Err(format!("the deadline should be {:?}", call.terms.deadline));
        }
        if call
            .terms
            .endpoint
            .is_some_and(|endpoint| endpoint != entry.endpoint)
        {
            return Err("it was for another endpoint".to_owned());
        }
        if is_under_way && !call.terms.idempotent {
            return Err("two attempts at a call that may not run twice".to_owned());
        }
        call.handed += 1;
        driver.paid += u64::from(!call.is_free);
        (call.is_free, call.idle) = (false, None);
        // In tenths of a repeat.
        let earned = 1000 + driver.calls.len() as u64 + self.now.0.div_ceil(10_000_000);
        match driver.paid * 10 > earned {
            true => Err(format!(
                "{} repeats are paid for with {earned}/10",
                driver.paid
            )),
            false => Ok(()),
        }
    }

    /// Checks a call of which an attempt leaves now.
    pub(crate) fn judge_transmit(&mut self, call: usize) -> Result<(), String> {
        let call = &mut self.driver.calls[call];
        call.sends += 1;
        if call.sends > 1 && call.terms.once {
            return Err(format!("{:?} leaves again", call.id));
        }
        // Attempts that draining servers refused do not count.
        let attempts = call.sends - call.refusals;
        match attempts > self.plan.config.retry.attempts.min(3).into() {
            true => Err(format!("attempt {attempts} at {:?}", call.id)),
            false => Ok(()),
        }
    }

    pub(crate) fn judge_attempt_end(
        &mut self,
        id: AttemptId,
        attempt: &Attempt,
        outcome: &Outcome,
    ) {
        let driver = &mut self.driver;
        let is_last = driver.attempts.values().all(|it| it.call != attempt.call);
        let call = &mut driver.calls[attempt.call];
        let shutting_down = Fault::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true));
        let is_refusal = *outcome == Outcome::Failed(shutting_down);
        call.refusals += u32::from(is_refusal);
        match outcome {
            Outcome::Answered => call.answered_by = Some(id),
            Outcome::Failed(Fault::NotSent(_) | Fault::NotTaken(_)) => call.is_free = is_last,
            Outcome::Failed(_) => call.is_free = is_refusal && is_last,
        }
        if is_last && call.end.is_none() {
            call.idle = Some(self.now);
            let lost = match outcome {
                Outcome::Failed(Fault::Sent(error)) => Some(error),
                _ => None,
            };
            let is_lost = lost.is_some_and(|error| {
                matches!(error, RpcError::PeerFailed(_) | RpcError::SessionClosed(..))
            });
            call.is_over = is_lost && !call.terms.idempotent;
        }
    }

    pub(crate) fn judge_end(&mut self, id: CallId, end: CallEnd) -> Result<(), String> {
        let driver = &self.driver;
        let place = driver.calls.iter().rposition(|call| call.id == id);
        let place = place.ok_or("no such call")?;
        let call = &driver.calls[place];
        if call.end.is_some() {
            return Err("it has ended before".to_owned());
        }
        if call.is_cancelled {
            return Err("it was cancelled".to_owned());
        }
        let mut left = driver.attempts.values().filter(|it| it.call == place);
        if left.any(|attempt| !attempt.is_cancelled) {
            return Err("one of its attempts goes on".to_owned());
        }
        match end {
            CallEnd::Answered(attempt) if call.answered_by != Some(attempt) => {
                Err("another attempt has the answer".to_owned())
            }
            CallEnd::Answered(_) => Ok(()),
            CallEnd::Failed(failure) => self.judge_failure(call, failure.why),
        }
    }

    fn judge_failure(&self, call: &Call, why: Why) -> Result<(), String> {
        let idle = call.idle.map(|idle| self.now.since(idle));
        let is_ready = self.driver.ready_since.is_some();
        let patience = self.plan.config.patience;
        let is_fine = match why {
            Why::DeadlinePassed => call.terms.deadline.is_some_and(|end| end <= self.now),
            Why::NoServer if is_ready && call.terms.endpoint.is_none() => false,
            Why::NoServer => idle.is_some_and(|idle| idle >= patience),
            Why::Closed => self.driver.is_closed,
            Why::Attempt(Fault::NotTaken(CallErrorKind::TooLarge { .. })) => false,
            Why::Attempt(_) => call.handed > 0,
        };
        match is_fine {
            true => Ok(()),
            false => Err("nothing explains that".to_owned()),
        }
    }
}

impl<'a> Judge<'a> {
    pub(crate) fn of(world: &'a World) -> Self {
        let driver = &world.driver;
        Self { world, driver }
    }

    /// Checks the laws that hold when no action is pending.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_outstanding()?;
        let mut attempts = self.driver.attempts.iter();
        let is_gone = |link| !self.driver.is_closed && !self.driver.links.contains_key(link);
        if let Some((id, attempt)) = attempts.find(|(_, attempt)| is_gone(&attempt.link)) {
            return Err(format!("{id:?} outlives its link: {attempt:?}"));
        }
        let open = self.driver.calls.iter();
        for call in open.filter(|call| call.end.is_none() && !call.is_cancelled) {
            self.check_open(call)
                .map_err(|what| format!("{} ns: {call:?} {what}", self.world.now.0))?;
        }
        Ok(())
    }

    fn check_open(&self, call: &Call) -> Result<(), &'static str> {
        let now = self.world.now;
        if self.driver.is_closed {
            return Err("outlives the channel");
        }
        if call.terms.deadline.is_some_and(|end| end <= now) {
            return Err("outlives its deadline");
        }
        if call.is_over {
            return Err("goes on after its server has failed");
        }
        let Some(idle) = call.idle else { return Ok(()) };
        if now.since(idle) > self.world.plan.config.patience + PAUSE {
            return Err("has waited longer than its patience");
        }
        let since = self.driver.ready_since.unwrap_or(now).max(idle);
        let is_any = call.terms.endpoint.is_none();
        match is_any && now.since(since) > PAUSE {
            true => Err("waits although a server is ready"),
            false => Ok(()),
        }
    }

    fn check_outstanding(&self) -> Result<(), String> {
        for view in self.driver.machine().addresses() {
            let there = self.driver.attempts.values();
            let count = there.filter(|attempt| attempt.address == view.id).count();
            if count != view.outstanding as usize {
                return Err(format!("{count} attempts are outstanding at {view:?}"));
            }
        }
        Ok(())
    }

    /// Checks that everything works after some time without faults.
    pub(crate) fn check_settled(&self) -> Result<(), String> {
        let machine = self.driver.machine();
        let mut views = machine.addresses();
        let ill = views.find(|view| view.state != State::Ready && view.state != State::Degraded);
        match ill {
            Some(ill) => Err(format!("all is well, and {ill:?}")),
            None if machine.addresses().count() != self.world.servers.len() => {
                Err("an address is missing".to_owned())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn check_end(&self) -> Result<(), String> {
        for call in &self.driver.calls {
            let problem = match (&call.end, call.is_cancelled) {
                (None, true) => continue,
                (None, false) => "has not ended",
                (Some(CallEnd::Answered(_)), _) if call.runs == 0 => "has an answer, and never ran",
                (Some(CallEnd::Answered(_)), _) => continue,
                (Some(CallEnd::Failed(failure)), _) => match failure.ran {
                    Ran::No if call.runs > 0 => "ran, but says that it did not",
                    Ran::Yes if call.runs == 0 => "never ran, but says that it did",
                    Ran::Unknown if call.sends == 0 => "never left, but perhaps ran",
                    _ => continue,
                },
            };
            return Err(format!("{call:?} {problem}"));
        }
        match self.driver.attempts.is_empty() {
            true => Ok(()),
            false => Err("attempts are left".to_owned()),
        }
    }
}
