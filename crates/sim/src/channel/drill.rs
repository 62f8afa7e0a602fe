//! Repeated drains under load, as in rolling upgrades: servers drain in turn, and come back as
//! another process. Meanwhile a client has 200 calls in flight. Each must end with its value and
//! run once, and no drain may take much longer than the longest handler.
//!
//! The same drill with real processes is in `crates/dunlin/tests/programs/server/drill.rs`. Called
//! by `bin/seeds` and by tests.

use std::fmt;

use dunlin_channel::Config;
use dunlin_core::Nanos;

use super::plan::{Plan, ServerPlan, Takes};
use super::run::{Failure, Report, Run};
use crate::world::net::{FaultRates, PortId};
use crate::world::rng::{Ppm, Rng};

/// Calls in flight at the same time.
const CALLS: usize = 200;

/// The longest handler.
const LONGEST: Nanos = Nanos::from_millis(50);

/// A drain may take at most this long.
const MOST: Nanos = Nanos::from_millis(150);

/// If there is only one server, it is away for at most this long.
const AWAY: Nanos = Nanos::from_secs(1);

/// The number of drains in one world.
const ROUNDS: u32 = 10;

/// The longest wait for a server that has restarted, and for the calls at the end.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// The interval at which a drain is polled.
const LOOK: Nanos = Nanos::from_micros(500);

/// Servers, and the network to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drill {
    /// Whether there are three servers, each of which restarts at once. If not, there is one, which
    /// restarts within a second.
    pub has_others: bool,
    /// Whether the network loses 1 % of the frames. If not, it loses none, like shared memory.
    pub has_loss: bool,
}

/// The results of a drill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drains {
    /// How long each drain took.
    pub took: Vec<Nanos>,
    /// The figures of the run.
    pub report: Report,
}

impl Drill {
    /// All drills.
    pub const ALL: [Self; 4] = [
        Self::of(true, false),
        Self::of(true, true),
        Self::of(false, false),
        Self::of(false, true),
    ];

    const fn of(has_others: bool, has_loss: bool) -> Self {
        Self {
            has_others,
            has_loss,
        }
    }

    const fn servers(self) -> usize {
        if self.has_others { 3 } else { 1 }
    }

    fn plan(self) -> Plan {
        let server = ServerPlan {
            takes: Takes::UpTo(LONGEST),
            refuses: Ppm::NEVER,
            fails: Ppm::NEVER,
            precise: true,
        };
        let loss = match self.has_loss {
            true => Ppm::percent(1),
            false => Ppm::NEVER,
        };
        Plan {
            channel: Config {
                lookup: Some(Nanos::from_secs(1)),
                patience: PATIENCE,
                links_per_endpoint: 1,
                ..Config::DEFAULT
            },
            servers: vec![server; self.servers()],
            clients: 1,
            channels: 1,
            drops: None,
            calls: 0,
            in_flight: CALLS,
            keys: 0,
            first_key: 0,
            notices: false,
            versions: false,
            window: 64,
            begin: Nanos::ZERO,
            gap: Nanos::ZERO,
            idempotent: Ppm::NEVER,
            deadlines: Ppm::NEVER,
            cancels: Ppm::NEVER,
            faults: 0,
            leaves: None,
            bug: None,
            rates: FaultRates {
                loss,
                ..FaultRates::NONE
            },
        }
    }
}

impl fmt::Display for Drill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loss = if self.has_loss { "1 %" } else { "no" };
        write!(f, "{} servers, {loss} loss", self.servers())
    }
}

/// Runs a drill of ten drains.
///
/// # Errors
/// A call that ends without its value or runs twice, or a drain that takes too long.
pub fn run_drains(seed: u64, drill: Drill) -> Result<Drains, Failure> {
    let mut rng = Rng::new(seed);
    let fork = rng.fork();
    let run = Run::of(seed, drill.plan(), Nanos::MAX, fork);
    let mut drains = Drainage { drill, run, rng };
    let took = drains.go().map_err(|what| Failure {
        seed,
        option: "--drains",
        what: format!("{drill}: {what}"),
    })?;
    let report = drains.run.report();
    Ok(Drains { took, report })
}

/// A drill in progress.
struct Drainage {
    drill: Drill,
    run: Run,
    rng: Rng,
}

impl Drainage {
    fn go(&mut self) -> Result<Vec<Nanos>, String> {
        let servers = self.drill.servers();
        let mut took = Vec::new();
        for round in 0..ROUNDS {
            let server = round as usize % servers;
            self.wait(
                |this| this.client().is_ready(server),
                "a server is not ready",
            )?;
            let enough = self.ended() + CALLS;
            self.wait(|this| this.ended() >= enough, "calls do not end")?;
            let pause = Nanos(self.rng.below(100_000_000));
            self.run_for(pause)?;
            took.push(self.drain(server)?);
            let away = match self.drill.has_others {
                true => Nanos::ZERO,
                false => Nanos(self.rng.below(AWAY.0)),
            };
            let back = self.now() + away;
            self.run.stage().replace(server, back);
        }
        self.client().stop();
        self.wait(|this| this.client().calls() == 0, "calls have not ended")?;
        self.run
            .stage()
            .world
            .cluster
            .ledger
            .borrow_mut()
            .check_answered();
        self.run.check()?;
        Ok(took)
    }

    /// Drains a server. Returns the time that this takes.
    fn drain(&mut self, server: usize) -> Result<Nanos, String> {
        let begin = self.now();
        let calls = self.client().calls();
        // A call may have just ended, and the next one not begun.
        if calls < CALLS * 9 / 10 {
            return Err(format!("only {calls} calls are under way"));
        }
        self.run.stage().drain_in_order(server);
        loop {
            self.run_for(LOOK)?;
            let took = self.now().since(begin);
            let left = self
                .run
                .stage()
                .server(server)
                .map_or(0, |rpc| rpc.session_count());
            match left {
                0 => return Ok(took),
                _ if took > MOST => {
                    return Err(format!(
                        "a drain has not ended after {took:?}; {left} sessions are left"
                    ));
                }
                _ => {}
            }
        }
    }

    /// Runs until the condition holds.
    fn wait(&mut self, is_so: impl Fn(&mut Self) -> bool, what: &str) -> Result<(), String> {
        let end = self.now() + PATIENCE;
        while !is_so(self) {
            if self.now() >= end {
                return Err(format!("{what} after {PATIENCE:?}"));
            }
            self.run_for(Nanos::from_millis(1))?;
        }
        Ok(())
    }

    fn run_for(&mut self, span: Nanos) -> Result<(), String> {
        let end = self.now() + span;
        self.run.run_until(end)
    }

    fn now(&mut self) -> Nanos {
        self.run.stage().world.now()
    }

    fn ended(&mut self) -> usize {
        self.run.stage().world.cluster.ledger.borrow().ended()
    }

    fn client(&mut self) -> &mut super::client::Channel {
        let port = PortId(self.drill.servers());
        let channels = self.run.stage().channels(port);
        channels
            .first_mut()
            .expect("the client's process does not end")
    }
}

#[cfg(test)]
mod tests;
