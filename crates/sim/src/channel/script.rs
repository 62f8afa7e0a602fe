//! A run whose servers, calls and faults a program defines, instead of a seed: scenario files of
//! channels are such scripts. The seed still determines when calls begin, how long handlers take,
//! and which frames are lost; the laws of the ledger hold as in all runs. Called by the crate
//! `scenario`.

use dunlin_channel::Config;
use dunlin_core::Nanos;

use super::faults::Fault;
use super::ledger::Tally;
use super::plan::{Plan, ServerPlan, Takes};
use super::run::{Failure, Report, Run};
use super::stage::Event;
use crate::world::net::FaultRates;
use crate::world::rng::{Ppm, Rng};

/// A run.
#[derive(Clone, Debug)]
pub struct Script {
    /// The seed of all choices that the script leaves open.
    pub seed: u64,
    /// Calls begin until about this time. The run then waits for their ends.
    pub end: Nanos,
    /// The options of every channel.
    pub channel: Config,
    /// The servers, which every channel knows.
    pub servers: Vec<Answers>,
    /// Number of clients, each with a channel.
    pub clients: usize,
    /// The time at which the first calls begin.
    pub begin: Nanos,
    /// The mean time between two calls of a client, which begin at random times.
    pub gap: Nanos,
    /// The share of calls that are idempotent.
    pub idempotent: Ppm,
    /// The share of calls that their callers drop.
    pub dropped: Ppm,
    /// The number of different keys of calls; 0: each call has its own.
    pub keys: u64,
    /// The window of each session.
    pub window: u32,
    /// The faults of the network.
    pub rates: FaultRates,
    /// The faults of servers.
    pub strikes: Vec<Strike>,
}

/// How a server answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answers {
    /// The mean time of a handler; the times are exponentially distributed.
    pub mean: Nanos,
    /// The share of requests that it refuses as overloaded, before a handler gets them.
    pub refuses: Ppm,
    /// The share of requests that its handlers answer with an error.
    pub fails: Ppm,
}

/// A fault of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strike {
    /// When it begins.
    pub at: Nanos,
    /// The server's index in the list.
    pub server: usize,
    /// The kind of fault.
    pub what: What,
    /// How long it lasts.
    pub span: Nanos,
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The process is killed, and another one starts after the span.
    Crash,
    /// The process is stopped (SIGSTOP), and continues after the span.
    Stop,
    /// The process drains and ends, and another one starts a span after its end.
    Drain,
    /// Look-ups do not find the address until the span has passed.
    Unlist,
}

/// The results of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    /// The figures of the run.
    pub report: Report,
    /// The ends of its calls.
    pub tally: Tally,
}

/// The longest drain. After it, the server ends even if handlers run.
const LONGEST_DRAIN: Nanos = Nanos::from_secs(30);

/// Calls must end within this time after the last one has begun, plus the time for which a channel
/// waits for a server. Handlers take much less.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// The time after the last call in which handlers may still begin.
const LATE: Nanos = Nanos::from_millis(100);

/// Runs a script. Between two steps it calls `go_on` with the virtual time, and ends without
/// results if `go_on` returns false.
///
/// # Errors
/// The first broken invariant.
pub fn play(
    script: &Script,
    mut go_on: impl FnMut(Nanos) -> bool,
) -> Result<Option<Played>, Failure> {
    let rng = Rng::new(script.seed);
    let mut run = Run::of(script.seed, script.plan(), Nanos::MAX, rng);
    for strike in &script.strikes {
        strike.schedule(&mut run);
    }
    let played = script.steps(&mut run, &mut go_on).map_err(|what| Failure {
        seed: script.seed,
        option: "",
        what,
    })?;
    Ok(played.then(|| Played {
        report: run.report(),
        tally: run.stage().world.cluster.ledger.borrow().tally().clone(),
    }))
}

impl Script {
    fn plan(&self) -> Plan {
        let servers = self.servers.iter().map(|answers| ServerPlan {
            takes: Takes::Mean(answers.mean),
            refuses: answers.refuses,
            fails: answers.fails,
            precise: true,
        });
        let calls = self.end.since(self.begin).0 / self.gap.0.max(1);
        Plan {
            channel: Config {
                // As in a hub, where more sessions are behind a link instead.
                links_per_endpoint: 1,
                ..self.channel
            },
            servers: servers.collect(),
            clients: self.clients,
            channels: 1,
            drops: None,
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
            in_flight: 0,
            keys: self.keys,
            first_key: 0,
            notices: false,
            versions: false,
            window: self.window,
            begin: self.begin,
            gap: self.gap,
            idempotent: self.idempotent,
            deadlines: Ppm::NEVER,
            cancels: self.dropped,
            faults: 0,
            leaves: None,
            bug: None,
            rates: self.rates,
        }
    }

    /// False if `go_on` ended the run.
    fn steps(&self, run: &mut Run, go_on: &mut impl FnMut(Nanos) -> bool) -> Result<bool, String> {
        let last = self.strikes.iter().map(|strike| strike.at + strike.span);
        let end = last.fold(self.end, Nanos::max);
        let patience = PATIENCE + self.channel.patience;
        let step = Nanos::from_millis(1);
        let (mut now, mut begun) = (Nanos::ZERO, end);
        while now < end || run.left() > 0 {
            if now > begun && run.not_begun() > 0 {
                begun = now;
            }
            if now > begun + patience {
                return Err(format!("{} calls or attempts have not ended", run.left()));
            }
            if !go_on(now) {
                return Ok(false);
            }
            now += step;
            run.run_until(now)?;
        }
        run.run_until(now + LATE)?;
        let ledger = run.stage().world.cluster.ledger.clone();
        ledger.borrow_mut().check_all();
        run.check()?;
        Ok(true)
    }
}

impl Strike {
    fn schedule(&self, run: &mut Run) {
        let Self {
            at, server, span, ..
        } = *self;
        let mut strike = |at, fault| run.stage().schedule(at, Event::Strike(fault));
        match self.what {
            What::Crash => strike(at, Fault::Crash(server, Some(span))),
            What::Stop => strike(at, Fault::Stop(server, Some(span))),
            What::Drain => {
                let times = [LONGEST_DRAIN, span].map(Some);
                strike(at, Fault::Drain(server, times));
            }
            What::Unlist => {
                strike(at, Fault::List(server, false));
                strike(at + span, Fault::List(server, true));
            }
        }
    }
}

#[cfg(test)]
mod tests;
