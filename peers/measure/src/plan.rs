//! The order of measurements: in every round each peer has its turn at each size, so that other
//! work on the machine disturbs all of them alike.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::args::Name;
use crate::child::Process;
use crate::load::Report;
use crate::progress::Progress;
use crate::row::{self, Row};

/// Calls in flight where the rate is measured.
const MANY: usize = 60;

/// How long a process may take in addition to the measurement itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The measurements to make.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) peers: Vec<Name>,
    pub(crate) sizes: Vec<usize>,
    pub(crate) rounds: u32,
    pub(crate) span: Duration,
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

type Reports = BTreeMap<PlanCase, Vec<Report>>;

impl Plan {
    /// Measures, until the end or until `stop`.
    pub(crate) fn run(&self, stop: &AtomicBool) -> Results {
        let turns = self.peers.len() * self.sizes.len();
        let progress = Progress::start(turns as u64 * u64::from(self.rounds), self.rounds);
        let mut reports = Reports::new();
        let mut failures: Vec<String> = Vec::new();
        let mut rounds = 0;
        for round in 1..=self.rounds {
            for (peer, size) in self.turns() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                progress.measuring(round, &format!("{} {size} B", self.peers[peer].text()));
                if let Err(error) = self.turn(peer, size, &mut reports, stop) {
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
        let rows = reports.iter();
        let rows =
            rows.flat_map(|(place, reports)| row::of(self.peers[place.peer], *place, reports));
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
        reports: &mut Reports,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let name = self.peers[peer];
        let mut server = Process::serve(name)?;
        let Some(address) = server.receive::<String>(PATIENCE, stop)? else {
            return Ok(());
        };
        let mut inflights = vec![1, name.peer().inflight(size, MANY)];
        inflights.dedup();
        for inflight in inflights {
            let load = [size, inflight];
            let mut client = Process::call(name, &address, &server, load, self.span)?;
            let Some(report) = client.receive(PATIENCE + self.span, stop)? else {
                return Ok(());
            };
            let place = PlanCase {
                size,
                peer,
                inflight,
            };
            reports.entry(place).or_default().push(report);
        }
        Ok(())
    }
}
