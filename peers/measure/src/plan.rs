//! The order of measurements: in every round each peer has its turn at each size, so that other
//! work on the machine disturbs all of them alike.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::args::Name;
use crate::child::{Process, processors};
use crate::load::Report;
use crate::ping::round_trip;
use crate::progress::Progress;
use crate::row::{self, Row};
use crate::state::State;
use crate::system_calls;

/// Calls in flight where the rate is measured.
pub(crate) const MANY: usize = 64;

/// The time before and after a count of system calls for which its client makes calls.
const AROUND: Duration = Duration::from_millis(200);

/// How long a process may take in addition to the measurement itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The measurements to make.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) peers: Vec<Name>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) rounds: u32,
    pub(crate) span: Duration,
    /// Whether system calls are counted.
    pub(crate) counts: bool,
}

/// One measurement: a peer, a size and a number of calls in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PlanCase {
    pub(crate) size: usize,
    /// Index in the order of the table.
    pub(crate) peer: usize,
    pub(crate) inflight: usize,
}

/// The results.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// Failures, each once.
    pub(crate) failures: Vec<String>,
    /// Complete rounds.
    pub(crate) rounds: u32,
}

/// The report of a client, with the ping-pongs before and after its measurement, in ns.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) report: Report,
    pub(crate) pings: Vec<f64>,
    /// System calls of both sides a call, in a run of its own with many calls in flight; `None`:
    /// not counted.
    pub(crate) system_calls: Option<f64>,
}

type Samples = BTreeMap<PlanCase, Vec<Sample>>;

impl Plan {
    /// Measures, until the end or until `stop`.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Results {
        let turns = self.peers.len() * self.sizes.len();
        let progress = Progress::start(turns as u64 * u64::from(self.rounds), self.rounds);
        let mut samples = Samples::new();
        let mut failures: Vec<String> = Vec::new();
        let mut rounds = 0;
        for round in 1..=self.rounds {
            for (peer, size) in self.turns() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                progress.measuring(round, &format!("{} {size} B", self.peers[peer].text()));
                if let Err(error) = self.turn(peer, size, &mut samples, stop) {
                    let failure = format!("{} at {size} B: {error:#}", self.peers[peer].text());
                    if !failures.contains(&failure) {
                        progress.say(&failure);
                        failures.push(failure);
                    }
                }
                progress.advance();
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
            rounds = round;
            progress.round_done(round);
        }
        drop(progress);
        let state = State::most_frequent(samples.values().flatten());
        let rows = samples.iter().flat_map(|(place, samples)| {
            row::of(self.peers[place.peer], *place, samples, state.as_ref())
        });
        Results {
            rows: rows.collect(),
            failures,
            rounds,
        }
    }

    fn turns(&self) -> impl Iterator<Item = (usize, usize)> {
        let sizes = self.sizes.iter();
        sizes.flat_map(|&size| (0..self.peers.len()).map(move |peer| (peer, size)))
    }

    /// One peer at one size: latency, and then the rate.
    fn turn(
        &self,
        peer: usize,
        size: usize,
        samples: &mut Samples,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let name = self.peers[peer];
        let processors = processors()?;
        let mut server = Process::serve(name)?;
        let Some(address) = server.receive::<String>(PATIENCE, stop)? else {
            return Ok(());
        };
        let mut inflights = vec![1, name.peer().inflight(size, MANY)];
        inflights.dedup();
        for inflight in inflights {
            let load = [size, inflight];
            let before = round_trip(processors);
            let mut client = Process::call(name, &address, &server, load, self.span)?;
            let Some(report) = client.receive(PATIENCE + self.span, stop)? else {
                return Ok(());
            };
            let place = PlanCase {
                size,
                peer,
                inflight,
            };
            drop(client);
            let pings = before.into_iter().chain(round_trip(processors)).collect();
            let mut sample = Sample {
                report,
                pings,
                system_calls: None,
            };
            if self.counts && inflight > 1 {
                // A count that fails costs only itself.
                sample.system_calls = self
                    .count(name, &address, &server, load, stop)
                    .unwrap_or_default();
            }
            samples.entry(place).or_default().push(sample);
        }
        Ok(())
    }

    /// Counts the system calls for each call of a client. The count is a run of its own, so that it
    /// disturbs no figure.
    fn count(
        &self,
        name: Name,
        address: &str,
        server: &Process,
        load: [usize; 2],
        stop: &AtomicBool,
    ) -> anyhow::Result<Option<f64>> {
        let span = self.span + 2 * AROUND;
        let mut client = Process::call(name, address, server, load, span)?;
        thread::sleep(AROUND);
        let counted = system_calls::per_second([server.id(), client.id()], self.span);
        let report: Option<Report> = client.receive(PATIENCE + span, stop)?;
        Ok(counted
            .zip(report)
            .map(|(of_second, report)| of_second / report.calls_per_s))
    }
}
