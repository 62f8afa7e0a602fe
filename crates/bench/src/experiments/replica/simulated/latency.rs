//! One put at a time (eRPC, table 6), and before that echoes of 32 bytes, which show whether the
//! network is the paper's.

use std::time::Duration;

use anyhow::{Context, ensure};
use dunlin_core::Nanos;

use super::nodes::Work;
use super::{CLIENT, Stage};
use crate::harness::probe::{Against, Measurement, Metric, Probe};

/// The last value is the round trip of an echo.
const METRICS: [Metric; 5] = [
    Metric {
        name: "put_p50",
        unit: "ns",
        against: Against::Own {
            index: 4,
            name: "an echo of 32 bytes",
        },
    },
    Metric::alone("put_p99", "ns"),
    Metric::alone("leader_p50", "ns"),
    Metric::alone("leader_p99", "ns"),
    Metric::alone("echo_p50", "ns"),
];

/// An election takes less time than this.
const ELECTING: Nanos = Nanos::from_secs(2);

/// Time until sessions are made and the endpoint's caches are filled.
const WARM_UP: Nanos = Nanos::from_millis(5);

/// Simulated time of echoes, and of puts: some heartbeats long.
const ECHOES: Nanos = Nanos::from_millis(5);
const PUTS: Nanos = Nanos::from_millis(200);

/// Puts on the paper's cluster. Each measurement has its own seed.
#[derive(Debug, Default)]
pub(in super::super) struct Latency {
    seed: u64,
}

/// Times in ns.
struct Times {
    echo: f64,
    put: [f64; 2],
    leader: [f64; 2],
}

impl Probe for Latency {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        self.seed += 1;
        let times = run(self.seed)?;
        let [put, leader] = [times.put, times.leader];
        Ok(vec![put[0], put[1], leader[0], leader[1], times.echo].into())
    }
}

fn run(seed: u64) -> anyhow::Result<Times> {
    let mut stage = Stage::new(seed);
    let leader = stage.elect(ELECTING).context("no replica leads")?;
    let session = stage
        .connect(CLIENT, leader)
        .context("no session with the leader")?;
    let echo = time_of(&mut stage, Work::Echo(session), ECHOES)?[0];
    work(&mut stage, Work::Put(Nanos::ZERO), WARM_UP)?;
    let replica = stage.replica(leader).context("the leader has ended")?;
    replica.took.clear();
    let put = time_of(&mut stage, Work::Put(Nanos::ZERO), PUTS)?;
    let replica = stage.replica(leader).context("the leader has ended")?;
    let leader = quantiles(&mut replica.took)?;
    Ok(Times { echo, put, leader })
}

/// Lets the client work, and returns the median and the 99th percentile of an operation.
fn time_of(stage: &mut Stage, kind: Work, time: Nanos) -> anyhow::Result<[f64; 2]> {
    work(stage, kind, time)?;
    quantiles(&mut stage.client().took)
}

fn work(stage: &mut Stage, kind: Work, time: Nanos) -> anyhow::Result<()> {
    stage.client().took.clear();
    stage.client().set_work(kind);
    stage.world.poke(CLIENT);
    stage.run_for(time);
    stage.client().set_work(Work::Rest);
    while stage.client().is_busy() {
        stage.run_for(Nanos::from_micros(100));
    }
    match stage.client().wrong.take() {
        Some(what) => anyhow::bail!(what),
        None => Ok(()),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a put are far below 2^53"
)]
fn quantiles(times: &mut [Nanos]) -> anyhow::Result<[f64; 2]> {
    ensure!(
        times.len() >= 100,
        "only {} operations have ended",
        times.len()
    );
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].0 as f64;
    Ok([at(50), at(99)])
}

#[cfg(test)]
mod tests;
