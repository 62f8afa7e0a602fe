//! Failover: the time from a leader's death to the client's next acknowledged put. Each leader has
//! a cluster of its own. No acknowledged put may be lost.

use std::time::Duration;

use anyhow::{Context, ensure};
use dunlin::replica::Options;
use dunlin_core::{Nanos, Rng};

use super::super::client::{KEY, value_of};
use super::nodes::Work;
use super::{CLIENT, Stage};
use crate::harness::probe::{Against, Measurement, Metric, Probe};

/// A measurement has one value more than these: the shortest election time-out, their baseline.
const METRICS: [Metric; 2] = [failover("failover_p50"), failover("failover_p99")];

const fn failover(name: &'static str) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Own {
            index: 2,
            name: "the shortest election time-out",
        },
    }
}

/// Clusters of a measurement, in each of which one leader is killed.
pub(in super::super) const KILLS: u64 = 1000;

/// An election takes less time than this.
const ELECTING: Nanos = Nanos::from_secs(2);

/// The pause between two puts.
const PAUSE: Nanos = Nanos::from_millis(1);

/// Answers that were in flight when the leader ended arrive within this time.
const UNDER_WAY: Nanos = Nanos::from_micros(20);

/// A cluster that has acknowledged nothing for this long has failed.
const LOST: Nanos = Nanos::from_secs(4);

/// Leaders that are killed. Each measurement has its own seeds.
#[derive(Debug, Default)]
pub(in super::super) struct Failover {
    seed: u64,
}

impl Probe for Failover {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of an election are far below 2^53"
    )]
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let mut took = Vec::new();
        for _ in 0..KILLS {
            harness::signal::check()?;
            self.seed += 1;
            let time = kill(self.seed);
            took.push(time.with_context(|| format!("seed {}", self.seed))?);
        }
        took.sort_unstable();
        let at = |percent: usize| took[(took.len() - 1) * percent / 100].0 as f64;
        let election = Options::DEFAULT.election.0 as f64;
        Ok(vec![at(50), at(99), election].into())
    }
}

/// Kills the leader of a cluster, and returns the time until the next acknowledged put.
///
/// # Errors
/// No put is acknowledged after the leader's end, or a put that was acknowledged before it is lost.
fn kill(seed: u64) -> anyhow::Result<Nanos> {
    let mut stage = Stage::new(seed);
    let leader = stage.elect(ELECTING).context("no replica leads")?;
    stage.client().set_work(Work::Put(PAUSE));
    stage.world.poke(CLIENT);
    let busy = Nanos::from_micros(20_000 + u64::from(Rng::new(seed).below(20_000)));
    stage.run_for(busy);
    let killed = stage.world.now();
    stage.kill(leader);
    stage.run_for(UNDER_WAY);
    let before = stage.client().put.context("no put was acknowledged")?;
    let ended = loop {
        let put = stage.client().put.context("one was acknowledged")?;
        if put.number > before.number {
            break put.ended;
        }
        ensure!(
            stage.world.now() < killed + LOST,
            "nothing is acknowledged after the leader's end"
        );
        stage.run_for(Nanos::from_millis(1));
    };
    stage.client().set_work(Work::Rest);
    while stage.client().is_busy() {
        stage.run_for(Nanos::from_micros(100));
    }
    for (key, number) in std::mem::take(&mut stage.client().acknowledged) {
        check(&mut stage, key, number)?;
    }
    Ok(ended.since(killed))
}

/// Reads the key of a put that was acknowledged.
fn check(stage: &mut Stage, key: [u8; KEY], number: u64) -> anyhow::Result<()> {
    stage.client().set_work(Work::Get(key));
    stage.world.poke(CLIENT);
    let end = stage.world.now() + LOST;
    let found = loop {
        stage.run_for(Nanos::from_micros(10));
        let client = stage.client();
        if let Some(what) = client.wrong.take() {
            anyhow::bail!(what);
        }
        if let Some(found) = client.found.take() {
            break found;
        }
        ensure!(stage.world.now() < end, "a get does not end");
    };
    ensure!(found == value_of(number), "an acknowledged put is lost");
    Ok(())
}

#[cfg(test)]
mod tests;
